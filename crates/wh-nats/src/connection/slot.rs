//! One client of the vendor's library: it serves one connection, never reconnects, and is replaced when it is lost.
//!
//! The library would reconnect by itself and then send what was queued in it meanwhile, however old. So it is left
//! nothing to reconnect to: its pool is replaced by an address that fails at once, and its login works only once.

use super::Core;
use crate::{Error, Kind, Result, Version, identity::Identity, options::Options};
use async_nats::{
    ConnectOptions, Event, HeaderMap, PublishError, ServerAddr, Subject, client::traits::Publisher as _,
    message::OutboundMessage,
};
use bytes::Bytes;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};
use wh_types::Stop;

/// A connected client.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) client: async_nats::Client,
    pub(crate) generation: u64,
    /// Given when the connection is lost.
    pub(crate) lost: Stop,
}

/// A client that was just made.
#[derive(Debug)]
pub(super) struct Dialled {
    pub(super) slot: Slot,
    /// Ends with the client.
    pub(super) guard: async_nats::Subscriber,
    pub(super) server: String,
    pub(super) version: Version,
    /// Servers that this one knows of.
    pub(super) others: Vec<ServerAddr>,
}

impl Slot {
    /// Hands a message to the client.
    pub(crate) async fn send(
        &self,
        subject: Subject,
        reply: Option<Subject>,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Result<()> {
        let (bytes, shown) = (payload.len(), subject.clone());
        let message = OutboundMessage { subject, reply, payload, headers };
        self.client.publish_message(message).await.map_err(|cause| self.refused(&shown, bytes, &cause))
    }

    /// What the client's refusal of a message means.
    pub(crate) fn refused(&self, subject: &Subject, bytes: usize, cause: &PublishError) -> Error {
        use async_nats::client::PublishErrorKind as Vendor;
        let kind = match cause.kind() {
            Vendor::MaxPayloadExceeded => Kind::TooLarge { bytes, limit: self.client.max_payload() },
            Vendor::InvalidSubject => Kind::Invalid("not a subject".into()),
            Vendor::Send => Kind::Disconnected,
        };
        Error::new(subject.as_str(), kind)
    }
}

/// Where nothing listens, on any machine.
const NOWHERE: &str = "nats://127.0.0.1:0";

/// Room for commands on their way to the connection's task.
const COMMANDS: usize = 8192;

/// Connects to one server.
pub(super) async fn dial(core: &Arc<Core>, address: &ServerAddr, generation: u64) -> Result<Dialled> {
    let (options, lost) = (&core.options, Stop::new());
    let client = settings(core, options, generation, &lost).connect(address.clone());
    let client = client.await.map_err(|cause| failed(address, cause))?;
    let shown = || address.as_url_str().to_owned();
    let vanished = || Error::new(shown(), Kind::Disconnected);
    client.set_server_pool(NOWHERE).await.map_err(|cause| vanished().caused(cause))?;
    let guard = client.subscribe(core.inbox()).await.map_err(|cause| vanished().caused(cause))?;
    let info = client.server_info();
    // a server without a name has its id for one, another one after each start
    let named = !info.server_name.is_empty() && info.server_name != info.server_id;
    let server = if named { info.server_name } else { format!("{}:{}", address.host(), address.port()) };
    let others = info.connect_urls.iter().filter_map(|url| url.parse().ok()).collect();
    let version = Version::read(&info.version);
    Ok(Dialled { slot: Slot { client, generation, lost }, guard, server, version, others })
}

fn settings(core: &Arc<Core>, options: &Options, generation: u64, lost: &Stop) -> ConnectOptions {
    let (identity, used) = (core.identity.clone(), Arc::new(AtomicBool::new(false)));
    let mut settings = ConnectOptions::with_auth_callback(move |nonce| {
        let login = login(&identity, &used, &nonce);
        std::future::ready(login)
    });
    settings = settings.tls_client_config(core.identity.tls());
    if options.tls.handshake_first {
        settings = settings.tls_first();
    }
    let (core, lost) = (Arc::downgrade(core), lost.clone());
    settings
        .name(&options.name)
        .require_tls(options.tls.required)
        .connection_timeout(options.connect_timeout)
        .ping_interval(options.ping_interval)
        .custom_inbox_prefix(&options.inbox_prefix)
        .subscription_capacity(options.subscription_capacity)
        .client_capacity(COMMANDS)
        .max_reconnects(1)
        .reconnect_delay_callback(|_| std::time::Duration::ZERO)
        .event_callback(move |event| {
            note(&core, &lost, generation, event);
            std::future::ready(())
        })
}

fn login(identity: &Identity, used: &AtomicBool, nonce: &[u8]) -> Result<async_nats::Auth, async_nats::AuthError> {
    if used.swap(true, Ordering::AcqRel) {
        return Err(async_nats::AuthError::new("this client connects once"));
    }
    identity.login(nonce).map_err(async_nats::AuthError::new)
}

/// Must not wait: events beyond 128 are dropped while it runs.
fn note(core: &Weak<Core>, lost: &Stop, generation: u64, event: Event) {
    let Some(core) = core.upgrade() else { return };
    match event {
        Event::Disconnected | Event::Closed => lost.give(),
        Event::LameDuckMode => core.leave(generation),
        Event::SlowConsumer(_) => core.state.send_modify(|state| state.slow_consumers += 1),
        Event::ServerError(error) => core.said(&error.to_string()),
        Event::Connected | Event::Draining | Event::ClientError(_) => {}
    }
}

fn failed(address: &ServerAddr, cause: async_nats::ConnectError) -> Error {
    use async_nats::ConnectErrorKind as Vendor;
    let kind = match cause.kind() {
        Vendor::AuthorizationViolation => Kind::Refused { subject: "the connection".into() },
        Vendor::Authentication => Kind::Config("the credentials cannot be used".into()),
        Vendor::ServerParse => Kind::Config("not a server's address".into()),
        Vendor::TimedOut => Kind::Timeout,
        Vendor::Dns | Vendor::Tls | Vendor::Io | Vendor::MaxReconnects => Kind::Disconnected,
    };
    Error::new(address.as_url_str().to_owned(), kind).caused(cause)
}
