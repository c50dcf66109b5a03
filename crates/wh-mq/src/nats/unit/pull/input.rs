//! What the machine is told, what it wants, and its times.

use std::time::Duration;
use wh_nats::{PinId, Status};
use wh_types::Mono;

/// The spans a unit lives by; all follow from the time its pin outlives its last renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// How long the server keeps a pin that nobody renews.
    pub(crate) pinned_ttl: Duration,
    /// How long a pull waits. Short: a frozen process stays a candidate for as long.
    pub(crate) expires: Duration,
    /// How often the server says that a pull still waits.
    pub(crate) heartbeat: Duration,
    /// How often the pin is renewed.
    pub(crate) renew: Duration,
    /// A pull that nobody spoke of for this long is given up.
    pub(crate) watchdog: Duration,
    /// How long nothing may be delivered before the durable is read.
    pub(crate) silence: Duration,
    /// How long nothing may be delivered, with blocks pending, before the unit counts as stalled.
    pub(crate) stall: Duration,
    /// Before something that failed is tried again.
    pub(crate) retry: Duration,
    /// Most blocks of one pull.
    pub(crate) most: u32,
    /// Most unsettled blocks of the durable.
    pub(crate) max_unsettled: u64,
}

impl Times {
    /// The times that go with a durable.
    pub(crate) fn new(pinned_ttl: Duration, max_unsettled: u64) -> Self {
        // shorter than the time between renewals, so that an idle unit's pulls renew its pin
        let expires = (pinned_ttl * 3 / 10).clamp(Duration::from_millis(500), Duration::from_secs(30));
        Self {
            pinned_ttl,
            expires,
            heartbeat: expires / 2,
            renew: (pinned_ttl / 3).min(Duration::from_secs(5)),
            watchdog: expires + Duration::from_secs(1),
            silence: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            retry: Duration::from_millis(250),
            most: u32::try_from(wh_topology::defaults::PULL_BATCH).unwrap_or(1),
            max_unsettled,
        }
    }
}

/// The pull that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// What its answers are numbered with, once it was sent.
    pub(super) number: Option<u64>,
    /// Blocks it may still bring.
    pub(super) left: u32,
    /// When the server last spoke of it.
    pub(super) heard: Mono,
}

/// What the durable says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// When the durable was made.
    pub(crate) created: String,
    /// The last consumer sequence delivered.
    pub(crate) delivered: u64,
    /// Delivered and not settled.
    pub(crate) unsettled: u64,
    /// Not delivered yet.
    pub(crate) pending: u64,
    /// Pulls that wait, anybody's.
    pub(crate) waiting: u64,
    /// Who is pinned.
    pub(crate) pinned: Option<PinId>,
    /// How long ago anything was delivered or settled, by the server's own clock. `None`: never, or before a reset.
    pub(crate) quiet: Option<Duration>,
    /// The same of deliveries alone.
    pub(crate) undelivered: Option<Duration>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// How many blocks may be asked for from now on. Also where only time went by.
    Room(u32),
    /// The pull went out under this number.
    Sent(u64),
    /// The pull could not be sent.
    NotSent,
    /// A block came.
    Block {
        /// Its consumer sequence.
        sequence: u64,
        /// Whose pin it came under.
        pin: Option<PinId>,
    },
    /// A pull was answered.
    Status {
        /// Which.
        number: u64,
        /// With what.
        status: Status,
    },
    /// A renewal was answered.
    Renewed(Status),
    /// The connection was lost, or is there, a new one.
    Link(bool),
    /// The durable was read.
    Read {
        /// What it says.
        reading: Reading,
        /// Blocks unsettled here, those included whose ack nobody confirmed yet.
        ours: u64,
    },
    /// The durable was looked for, and the server says there is none.
    Missing,
    /// The durable is another one of that name.
    Replaced,
    /// The durable could not be read.
    Unread,
    /// Whether the reset was answered.
    Reset(bool),
    /// Nothing more shall be taken.
    Halt,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Ask for blocks; tell [`Input::Sent`] or [`Input::NotSent`].
    Pull {
        /// At most so many.
        blocks: u32,
        /// Under this pin.
        pin: Option<PinId>,
    },
    /// Renew the pin, taking nothing.
    Renew(PinId),
    /// Read the durable; tell [`Input::Read`], [`Input::Missing`] or [`Input::Unread`].
    Read,
    /// Make everything unsettled due; tell [`Input::Reset`].
    Reset,
    /// The block that just came is the next one.
    Take,
    /// The block that just came counts as not delivered.
    Drop,
    /// Take what is there already, then give the inbox up.
    Drain,
    /// No pull of ours is left.
    Halted,
    /// Whether the unit moves (decision D11).
    Progress(bool),
    /// Delivery is over.
    End(End),
    /// Worth counting.
    Note(Event),
}

/// Why delivery of a unit ended for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The durable or its stream is gone, or was made anew.
    Gone,
    /// The server refuses our pulls: the durable is configured otherwise than we need it.
    Refused(String),
}

/// What is counted and logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The unit is ours.
    Pinned,
    /// The pin is not ours any more.
    PinLost,
    /// Blocks after this consumer sequence were delivered and did not come.
    Gap {
        /// The last one that came.
        seen: u64,
    },
    /// The leader of the durable changed.
    LeaderChanged,
    /// Nobody spoke of a pull for too long.
    Silent,
    /// The server refused a pull for now.
    Limited(String),
    /// The connection broke again with deliveries on their way, and nothing came between.
    Cut {
        /// So often in a row.
        times: u32,
    },
}
