//! The store in the process's own data folder.
