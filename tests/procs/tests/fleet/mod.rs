//! Several processes over one queue on NATS.

mod alone;
mod whole_way;
