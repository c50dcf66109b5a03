//! NATS: a connection that is made again for ever, the JetStream API, raw pinned pulls, publishing and key-value buckets.
//!
//! The client library stops in this crate: none of its types is in a public signature, and its errors are translated in
//! `error.rs`. What is ours and not the library's: the reconnect, which drops what was queued; answers to requests,
//! which end at once when the server refuses the subject; pulls with a group and a pin; publishing over one raw inbox.

mod ack;
mod api;
mod bucket;
mod connection;
mod error;
mod headers;
mod identity;
mod message;
mod options;
mod ordinal;
mod publisher;
mod pull;
mod version;

pub use ack::{Ack, AckSubject};
pub use api::{
    Api, Batch, BatchStart, ConsumerInfo, ConsumerList, DirectBatch, DirectGet, Progress, Stored, StreamState,
};
pub use bucket::{Bucket, Change, Entry, Watch, is_conflict};
pub use connection::{Connection, Refusal, Refusals, State, Subscription};
pub use error::{ApiError, Error, Kind, Result, err_code};
pub use headers::Headers;
pub use message::Message;
pub use options::{Credentials, Options, Tls, masked};
pub use ordinal::{ByOrdinal, Ordinal};
pub use publisher::{PubAck, Publisher, WINDOW};
pub use pull::{Delivered, PinId, PullRequest, Pulled, Puller, Rest, Status};
pub use version::Version;
