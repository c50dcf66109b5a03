//! The rights that are shipped are enough for everything the queue does, and no line is one too many.
//!
//! Each line names the operation that needs it. For each line a server is started whose user has all the others, and
//! that operation is carried out: the server must refuse it a subject of the line that is missing. A line that no
//! operation is named for fails, and so does an operation that is refused anything while nothing is missing.
//!
//! What nobody may do (make, change, purge or delete streams, make consumers, publish to the history …) is asked for
//! on a server in `wh-topology`'s own tests: the lists are allow lists, without deny lines that could be widened.

mod cases;

use crate::stand::{choices, create};
use anyhow::{Context as _, Result, bail, ensure};
use cases::{Actor, CASES, Case};
use futures::StreamExt as _;
use std::time::Duration;
use wh_nats::{Connection, Credentials};
use wh_testkit::{
    nats::{ACK_V2, Leaf, Options, PASSWORD, Server, Shape},
    servers::NATS_VERSIONS,
};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, overlap};
use wh_types::Secret;

/// How long an operation may take, its waits for a quiet unit included.
const WITHIN: Duration = Duration::from_secs(90);
/// What a leafnode with a JetStream of its own does not let through: `$KV.>` ends there.
const HEAR: &str = "hear of leases";
/// Servers at once: each is two processes in the worst case.
const AT_ONCE: usize = 4;

/// Where the queue is, and where our process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// One server.
    Plain,
    /// One server whose acks carry domain and account.
    AckV2,
    /// A hub with a domain, and our process there.
    Hub,
    /// A hub with a domain, and our process at a leafnode outside of it.
    Leaf,
}

/// The servers, kept for as long as the operation runs.
enum Servers {
    One(Box<Server>),
    Two(Box<Leaf>),
}

impl Place {
    fn domain(self) -> Option<&'static str> {
        matches!(self, Self::Hub | Self::Leaf).then_some("hub")
    }

    fn spec(self) -> Result<Spec> {
        Ok(Spec::new(Choices { js_domain: self.domain().map(str::to_owned), ..choices() })?)
    }

    async fn servers(self, version: &'static str, options: Options) -> Result<Servers> {
        let options = options.version(version);
        Ok(match self {
            Self::Plain => Servers::One(Box::new(Server::with(options).await?)),
            Self::AckV2 => Servers::One(Box::new(Server::with(options.lines(ACK_V2)).await?)),
            Self::Hub => Servers::One(Box::new(Server::with(options.domain("hub")).await?)),
            Self::Leaf => Servers::Two(Box::new(Leaf::start(options.domain("hub")).await?)),
        })
    }
}

/// A process of the role with this permissions block, on servers of its own with the topology of the case.
async fn actor(
    (place, version): (Place, &'static str),
    role: Role,
    permissions: String,
    case: &Case,
) -> Result<(Actor, Servers)> {
    let spec = place.spec()?;
    let servers = place.servers(version, Options::default().user("us", permissions)).await?;
    let (mut operator, url) = match &servers {
        Servers::One(server) => (server.operator(), server.url()),
        Servers::Two(both) => (both.operator(), both.leaf.url()),
    };
    // the pin of an owner that is gone lapses soon where that is waited for
    let pinned_ttl = (case.name == "take a unit over").then_some(Duration::from_secs(1));
    let shape = Shape { pinned_ttl, ..Shape::default() };
    create(&mut operator, &Topology::new(spec.clone())?, &shape).await?;
    let mut options = wh_nats::Options::new([url]);
    options.credentials = Credentials::Password { user: "us".into(), password: Secret::from(PASSWORD) };
    options.js_domain = place.domain().map(str::to_owned);
    options.inbox_prefix = spec.names().inbox().to_owned();
    let connection = Connection::open(options).await?;
    Ok((Actor { connection, spec, role, operator: tokio::sync::Mutex::new(operator) }, servers))
}

fn print(spec: &Spec, role: Role) -> String {
    Rights::new(spec, role).print(RightsFormat::Nats)
}

/// Carries an operation out. Its own failure, and anything that was refused meanwhile, also what nobody waited for.
async fn carry_out(case: &Case, actor: &Actor) -> (Result<()>, Vec<String>) {
    let refusals = actor.connection.refusals();
    let ended = tokio::time::timeout(WITHIN, (case.run)(actor)).await;
    let ended = ended.unwrap_or_else(|_| Err(anyhow::anyhow!("not within {WITHIN:?}")));
    // a refusal is told before the answer to whatever was sent after it
    drop(actor.connection.round_trip().await);
    (ended, refusals.since(0).into_iter().map(|refusal| refusal.subject).collect())
}

/// Everything that a role does, with everything that it may.
async fn is_enough(place: Place, version: &'static str) -> Result<()> {
    for role in Role::ALL {
        let rights = print(&place.spec()?, role);
        let cases = CASES.iter().filter(|case| case.roles.contains(&role));
        let mut shared = None;
        for case in cases.filter(|case| place != Place::Leaf || case.name != HEAR) {
            let own;
            let (actor, _servers) = if case.alone {
                own = actor((place, version), role, rights.clone(), case).await?;
                &own
            } else if let Some(shared) = &shared {
                shared
            } else {
                shared.insert(actor((place, version), role, rights.clone(), case).await?)
            };
            let (ended, refused) = carry_out(case, actor).await;
            ended.with_context(|| format!("{place:?}: {role}: {}", case.name))?;
            ensure!(refused.is_empty(), "{place:?}: {role}: {} was refused {refused:?}", case.name);
        }
    }
    Ok(())
}

/// One line of a role's rights.
#[derive(Clone, Debug)]
struct Line {
    role: Role,
    subject: String,
    subscription: bool,
}

/// The lines that an operation at this place needs. Of the shards' lines those of one shard stand for all.
fn lines(place: Place, role: Role) -> Result<Vec<Line>> {
    let spec = place.spec()?;
    let rights = Rights::new(&spec, role);
    let publish = rights.publish.into_iter().map(|right| (right.subject, false));
    let all = publish.chain(rights.subscribe.into_iter().map(|right| (right.subject, true)));
    let lines = all.map(|(subject, subscription)| Line { role, subject, subscription });
    let needed = |line: &Line| {
        let other_shard = line.subject.contains("wh-ingest-0");
        let ack_v2 = line.subject.starts_with("$JS.ACK.*.*.*.");
        let long = line.subject.starts_with("$JS.hub.API.");
        let api = line.subject.starts_with("$JS.API.") || line.subject == "$KV.wh_coord.lease.>" && !line.subscription;
        !other_shard
            && match place {
                Place::Plain => !ack_v2,
                // the rest of it is the same
                Place::AckV2 => line.subject.starts_with("$JS.ACK."),
                // a server inside the domain maps the long form to the plain one before it checks
                Place::Hub => api,
                // one outside checks what was sent
                Place::Leaf => long,
            }
    };
    Ok(lines.filter(needed).collect())
}

/// The operation that breaks without the line.
fn named(line: &Line) -> Result<&'static Case> {
    let subject = line.subject.replace("$JS.hub.API.$KV", "$KV").replace("$JS.hub.API.", "$JS.API.");
    let ingests = line.role.ingests();
    let name = match (subject.as_str(), line.subscription) {
        ("_INBOX_wh.>", true) => "ask",
        ("wh.hist.>", true) => "follow a table live",
        ("wh.done.>", true) => "hear progress",
        ("$KV.wh_coord.lease.>", true) => HEAR,
        ("$JS.API.INFO", false) => "round trip",
        ("$JS.API.STREAM.NAMES" | "$JS.API.STREAM.INFO.*", false) => "open",
        ("$JS.API.CONSUMER.LIST.*", false) => "find units without an owner",
        ("$JS.API.CONSUMER.INFO.*.*", false) if ingests => "take a unit over",
        ("$JS.API.CONSUMER.INFO.*.*", false) => "see how far a unit is",
        ("wh.ingest.>", false) => "publish",
        ("wh.dlq.>", false) => "park a row",
        ("wh.done.>", false) => "announce progress",
        ("$JS.API.DIRECT.GET.WH_HISTORY", false) if line.role.serves() => "replay a table",
        ("$JS.API.DIRECT.GET.WH_HISTORY", false) => "look a block up",
        ("$JS.API.DIRECT.GET.WH_DLQ", false) => "list dead letters",
        ("$JS.API.STREAM.MSG.DELETE.WH_DLQ", false) => "purge a dead letter",
        ("$JS.API.CONSUMER.MSG.NEXT.*.wh-ingest-1", false) => "deliver",
        ("$JS.API.CONSUMER.UNPIN.*.wh-ingest-1", false) => "hand a unit over",
        ("$JS.API.CONSUMER.RESET.*.wh-ingest-1", false) => "take a unit over",
        // the probe at boot asks for the plain form, whichever one the server uses
        ("$JS.ACK.*.wh-ingest-1.>", false) => "start",
        ("$JS.ACK.*.*.*.wh-ingest-1.>", false) => "settle",
        ("$KV.wh_coord.lease.>", false) => "write a lease",
        ("$JS.API.DIRECT.GET.KV_wh_coord.$KV.wh_coord.lease.>", false) => "read a lease",
        ("$JS.API.DIRECT.GET.KV_wh_coord", false) => "read all leases",
        (other, _) => bail!("no operation is named for {other}"),
    };
    let found = CASES.iter().find(|case| case.name == name && case.roles.contains(&line.role));
    found.with_context(|| format!("{} does not {name}", line.role))
}

/// Takes the line away and does what needs it.
async fn is_needed(place: Place, version: &'static str, line: Line) -> Result<()> {
    let case = named(&line)?;
    let rights = print(&place.spec()?, line.role);
    let quoted = format!("\"{}\"", line.subject);
    let (head, tail) = rights.split_once("subscribe {").context("two lists")?;
    let without = |list: &str| -> String {
        list.lines().filter(|text| !text.contains(&quoted)).map(|text| format!("{text}\n")).collect()
    };
    let permissions = if line.subscription {
        format!("{head}subscribe {{{}", without(tail))
    } else {
        format!("{}subscribe {{{tail}", without(head))
    };
    ensure!(permissions.len() < rights.len(), "{line:?} is not in the list");
    let (actor, servers) = actor((place, version), line.role, permissions, case).await?;
    // whatever it comes to in the end, it is the refusal that counts
    let refusals = actor.connection.refusals();
    let mut changes = refusals.watch();
    let missed = || {
        let mut seen = refusals.since(0).into_iter();
        seen.any(|refusal| refusal.subscription == line.subscription && covers(&line.subject, &refusal.subject))
    };
    let refused = async {
        while !missed() {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let ended = tokio::select! {
        biased;
        () = refused => None,
        ended = carry_out(case, &actor) => Some(ended),
    };
    drop(servers);
    // the last refusal may come with the end
    ensure!(ended.is_none() || missed(), "{place:?}: {line:?}: {} does without it: {ended:?}", case.name);
    Ok(())
}

/// Whether a refused subject is one of the line's; the server names what it checked, under a domain the plain form.
fn covers(line: &str, subject: &str) -> bool {
    let plain = line.replace("$JS.hub.API.$KV", "$KV").replace("$JS.hub.API.", "$JS.API.");
    overlap(line, subject) || overlap(&plain, subject)
}

async fn each_is_needed(place: Place, version: &'static str, roles: &[Role]) -> Result<()> {
    let mut all = Vec::new();
    for role in roles {
        all.extend(lines(place, *role)?);
    }
    ensure!(!all.is_empty(), "nothing to take away");
    let mut tried = futures::stream::iter(all).map(|line| is_needed(place, version, line)).buffer_unordered(AT_ONCE);
    let mut failed = Vec::new();
    while let Some(outcome) = tried.next().await {
        failed.extend(outcome.err().map(|error| format!("{error:#}")));
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// A test on each supported release.
macro_rules! on_each_release {
    ($($name:ident: $check:ident($place:expr $(, $roles:expr)?);)*) => {
        mod oldest {
            use super::*;
            $(#[tokio::test]
            async fn $name() -> Result<()> { $check($place, NATS_VERSIONS[0] $(, $roles)?).await })*
        }
        mod newest {
            use super::*;
            $(#[tokio::test]
            async fn $name() -> Result<()> { $check($place, NATS_VERSIONS[1] $(, $roles)?).await })*
        }
    };
}

on_each_release! {
    the_shipped_rights_are_enough: is_enough(Place::Plain);
    they_are_enough_where_acks_carry_domain_and_account: is_enough(Place::AckV2);
    they_are_enough_inside_a_domain: is_enough(Place::Hub);
    they_are_enough_across_a_leafnode: is_enough(Place::Leaf);
    no_line_is_one_too_many: each_is_needed(Place::Plain, &[Role::Api, Role::Ingest]);
    both_forms_of_an_ack_are_needed_where_acks_carry_domain_and_account: each_is_needed(Place::AckV2, &[Role::Ingest]);
    inside_a_domain_the_plain_lines_are_needed: each_is_needed(Place::Hub, &[Role::Api, Role::Ingest]);
    across_a_leafnode_the_long_lines_are_needed: each_is_needed(Place::Leaf, &[Role::Api, Role::Ingest]);
    a_lease_is_not_heard_of_there: not_heard(Place::Leaf);
}

#[tokio::test]
async fn no_line_of_a_process_that_does_both_is_one_too_many() -> Result<()> {
    each_is_needed(Place::Plain, NATS_VERSIONS[0], &[Role::Both]).await
}

/// Then leases are noticed by reading them, as they always are in the end (decision D12).
async fn not_heard(place: Place, version: &'static str) -> Result<()> {
    let case = CASES.iter().find(|case| case.name == HEAR).context("the case")?;
    let rights = print(&place.spec()?, Role::Ingest);
    let (actor, servers) = actor((place, version), Role::Ingest, rights, case).await?;
    ensure!(!cases::heard_lease(&actor).await?, "it is: the guide says otherwise");
    drop(servers);
    Ok(())
}

#[test]
fn there_is_no_deny_line_that_a_wider_list_could_lean_on() -> Result<()> {
    for place in [Place::Plain, Place::Leaf] {
        for role in Role::ALL {
            ensure!(!print(&place.spec()?, role).contains("deny"), "{place:?} {role}");
        }
    }
    Ok(())
}
