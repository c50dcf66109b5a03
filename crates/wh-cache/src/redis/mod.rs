//! Answers kept in Redis or Valkey: one server, a cluster, or a primary that sentinels choose.
//!
//! Only GET, MGET and SET are sent, everything with a time to live. The client never connects again by itself and never
//! sends anything twice: the cache makes connections itself, proves them with a write, and swaps them in whole.

mod dial;
mod error;
mod options;
mod store;

pub use options::{Address, Login, Options, Servers, Tls};

use crate::{
    Error, Kind, Result,
    remote::{Remote, over_remote},
};
use store::Redis;

/// A cache in Redis or Valkey.
#[derive(Debug)]
pub struct Cache {
    cache: Remote<Redis>,
}

over_remote!(Cache);

impl Cache {
    /// Begins to connect and returns at once: a server that is away or refuses us is no reason not to start.
    ///
    /// # Errors
    /// Invalid: no address is given, or the prefix cannot be part of a name.
    pub fn new(options: Options) -> Result<Self> {
        let invalid = |text: &'static str| Err(Error::new("redis", Kind::Invalid(text.into())));
        let some = match &options.servers {
            Servers::Standalone(_) => true,
            Servers::Cluster(some) => !some.is_empty(),
            Servers::Sentinel { sentinels, primary } => !sentinels.is_empty() && !primary.is_empty(),
        };
        let prefix = &options.cache.prefix;
        let name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
        if !some {
            return invalid("no server is given, or the primary has no name");
        }
        if prefix.is_empty() || prefix.len() > 64 || !prefix.bytes().all(name) {
            return invalid("the prefix is 1 to 64 of A-Z a-z 0-9 _ - . :");
        }
        let cache = options.cache.clone();
        Ok(Self { cache: Remote::new(Redis::new(options), cache, false) })
    }
}
