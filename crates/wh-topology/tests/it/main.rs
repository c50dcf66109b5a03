//! The whole of it: what is deployed, judged by other people's readers and by real servers.

mod client;
mod cluster;
mod formats;
mod golden;
mod real;
mod rights;
