//! Every number and name that an operator does not choose, and the default of each that they may.
//!
//! The one place: configuration, generator and verifier take these, so that they cannot disagree.

use std::time::Duration;

/// The first token of every subject.
pub const PREFIX: &str = "wh";
/// Ingest streams, N.
pub const PARTITIONS: u32 = 1;
/// Durables on each ingest stream, V.
pub const SHARDS: u32 = 32;
/// Copies of each stream.
pub const REPLICAS: u32 = 3;
/// The durables' names are this, a dash and the shard.
pub const INGEST_CONSUMER: &str = "wh-ingest";
/// The priority group of every durable.
pub const PRIORITY_GROUP: &str = "wavehouse";
/// What the volume of one server holds, in bytes.
pub const FILE_STORE: u64 = 100 << 30;
/// How long one attempt of a publish may take.
pub const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a claim on a dedupe key is held.
pub const DEDUPE_LEASE: Duration = Duration::from_secs(30);
/// How long a member's lease lasts.
pub const COORD_LEASE: Duration = Duration::from_secs(15);
/// How long the history keeps what it heard.
pub const HISTORY_MAX_AGE: Duration = Duration::from_mins(15);

/// How long connecting to one server may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a start waits for a topology without required findings.
pub const TOPOLOGY_WAIT: Duration = Duration::from_mins(1);
/// How often a running process checks the topology again, give or take a fifth.
pub const TOPOLOGY_RECHECK: Duration = Duration::from_mins(5);

/// Most ingest streams.
pub const MAX_PARTITIONS: u32 = 1_024;
/// Most durables on an ingest stream.
pub const MAX_SHARDS: u32 = 256;
/// Most durables altogether: each is a Raft group of its own.
pub const MAX_UNITS: u32 = 65_536;
/// Most copies of a stream that JetStream can keep.
pub const MAX_REPLICAS: u32 = 5;
/// Longest name, in bytes; names are joined, and JetStream ends at 255.
pub const MAX_NAME: usize = 64;
/// Shortest and longest member lease.
pub const COORD_LEASE_BOUNDS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_mins(1));
/// Shortest and longest attempt of a publish.
pub const PUBLISH_TIMEOUT_BOUNDS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_mins(5));
/// Shortest and longest time to connect to one server.
pub const CONNECT_TIMEOUT_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_mins(1));
/// Shortest and longest wait of a start for its topology.
pub const TOPOLOGY_WAIT_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_hours(1));
/// Shortest and longest time between two checks of the topology.
pub const TOPOLOGY_RECHECK_BOUNDS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_hours(24));
/// Longest span that is taken from an operator.
pub const MAX_SPAN: Duration = Duration::from_hours(24 * 366);

/// A publish is attempted this often within its budget.
pub const PUBLISH_ATTEMPTS: u32 = 3;
/// What the budget of a publish has beyond its attempts.
pub const PUBLISH_SLACK: Duration = Duration::from_millis(500);
/// What a dedupe lease needs beyond the attempts of a publish: the last attempt must start, and its answer must be
/// read, well inside the lease.
pub const DEDUPE_SLACK: Duration = Duration::from_millis(10_500);
/// The duplicate window that is generated at least; also the server's own default.
pub const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);
/// The duplicate window of the dead letters.
pub const DEAD_LETTER_WINDOW: Duration = Duration::from_hours(1);

/// How long a delivered block may stay unsettled; workers extend it every third of it.
pub const ACK_WAIT: Duration = Duration::from_mins(1);
/// Unsettled blocks of a durable, as generated.
pub const MAX_ACK_PENDING: i64 = 100_000;
/// The fewest that will do.
pub const MIN_ACK_PENDING: i64 = 10_000;
/// Waiting pulls of a durable, as generated; also the server's own default.
pub const MAX_WAITING: i64 = 512;
/// The fewest that will do: an owner's pull and its renewals, beside those of owners that left.
pub const MIN_WAITING: i64 = 8;
/// The most messages that one pull asks for.
pub const PULL_BATCH: i64 = 128;
/// How long a pin outlives its last renewal, as generated.
pub const PINNED_TTL: Duration = Duration::from_secs(10);
/// The shortest that will do; it is renewed every third of it.
pub const MIN_PINNED_TTL: Duration = Duration::from_secs(5);

/// Blocks that one table may have in a partition.
pub const PARTITION_PER_SUBJECT: i64 = 200_000;
/// Dead letters that one table may have.
pub const DEAD_LETTERS_PER_SUBJECT: i64 = 100_000;
/// Share of the file store that one partition reserves, in hundredths.
pub const PARTITION_PERCENT: u64 = 15;
/// Share of the file store that the history reserves, in hundredths.
pub const HISTORY_PERCENT: u64 = 10;
/// Share of the file store that the dead letters reserve, in hundredths.
pub const DEAD_LETTER_PERCENT: u64 = 5;

/// The oldest server that will do: RESET came with it.
pub const MIN_SERVER: (u32, u32, u32) = (2, 14, 0);
/// The release lines that are tested.
pub const TESTED_SERVERS: [(u32, u32); 2] = [(2, 14), (2, 15)];
/// The release that the generated values name.
pub const SERVER: &str = "2.14.6";
