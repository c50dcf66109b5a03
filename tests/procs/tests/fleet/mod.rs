//! Several processes over one queue on NATS.

mod whole_way;
