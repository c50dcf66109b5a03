//! Finding an exception in headers, in a body, and at the end of a broken stream.
