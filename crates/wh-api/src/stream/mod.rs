//! `GET /v1/stream?table=`: rows as they are stored, and those that were, as server-sent events.
//!
//! A table is followed once in a process ([`hub`]); what came lately is in its [`ring`], and every stream walks along it at
//! its own pace ([`reader`]). Where the ring does not reach, the stream reads the history by itself ([`replay`]). What is
//! sent is put together in [`connection`].

mod ask;
mod block;
mod channel;
mod committed;
mod connection;
mod frame;
mod handler;
pub(crate) mod hub;
mod latest;
mod lifetime;
mod position;
mod reader;
mod replay;
mod ring;
mod view;
mod way;
mod wish;

pub(crate) use handler::stream;
pub(crate) use hub::Hub;
pub use view::filters_markdown;
