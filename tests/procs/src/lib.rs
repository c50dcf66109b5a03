//! Whole systems for tests: real binaries over a real ClickHouse engine, and over a real NATS server where there are
//! several of them, each in its own folder on its own port.

mod fleet;
mod follower;
mod handover;
mod load;
mod member;
mod servers;
mod stops_at;
mod system;
mod traffic;

pub use fleet::{Fleet, Own, Setup, even};
pub use follower::{Followed, Follower};
pub use handover::{ALL_ROWS, Handover};
pub use load::{Sent, Writers};
pub use member::Member;
pub use servers::Servers;
pub use stops_at::StopsAt;
pub use system::{System, TABLE, config};
pub use traffic::{Accepted, Found, Traffic, create_tables, table};
pub use wh_topology::Role;
