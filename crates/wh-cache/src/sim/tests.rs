//! No old answer is served after an invalidation that returned, whatever the order of things and whatever is lost.

use super::*;
use crate::{Cache as _, Change, Filled, Key, Landing, Outcome, Read, View};
use proptest::prelude::*;
use std::time::Duration;
use tokio::time::sleep;
use wh_types::{Entropy, SeededEntropy, SystemClock, Table, Tasks, Tenant};

const MS: Duration = Duration::from_millis(1);

fn options(seed: u64) -> Options {
    let entropy = Arc::new(SeededEntropy::new(seed));
    Options { pause: 300 * MS, recycle: 700 * MS, ..Options::new(Arc::new(SystemClock), entropy, Tasks::new()) }
}

fn tenant() -> Tenant {
    Tenant::new("t").unwrap()
}

/// Tables by number, each with a count that writes raise, and what nobody may be served less than.
#[derive(Debug, Default)]
struct Database {
    rows: [u64; 3],
    /// Invalidated for all members.
    landed: [u64; 3],
    /// Invalidated for one member at least.
    owed: [[u64; 3]; 3],
}

#[derive(Debug)]
struct World {
    database: Mutex<Database>,
    chance: SeededEntropy,
    hits: std::sync::atomic::AtomicU64,
    images: Mutex<Vec<Image>>,
    cluster: Cluster,
    links: Vec<Link>,
    /// Whether the store comes back older now and then: then nobody knows what another member had ended.
    restores: bool,
}

impl World {
    fn below(&self, bound: u64) -> usize {
        usize::try_from(self.chance.next_u64() % bound).unwrap()
    }

    async fn wait(&self, most: u64) {
        sleep(MS * u32::try_from(self.below(most)).unwrap()).await;
    }

    fn reads(&self) -> Vec<usize> {
        (0..3).filter(|_| self.chance.unit() < 0.5).collect()
    }

    async fn query(&self, member: usize, cache: &Cache) {
        let tables = self.reads();
        let read = |n: &usize| Read::from(Table::new(&format!("t{n}")).unwrap());
        let view = View::new(tenant(), tables.iter().map(read)).unwrap();
        let floor: Vec<u64> = {
            let database = self.database.lock();
            let landed = |n: usize| if self.restores { 0 } else { database.landed[n] };
            tables.iter().map(|n| landed(*n).max(database.owed[member][*n])).collect()
        };
        let found = cache.lookup(&view, &Key::of([&b"q"[..]])).await;
        if let Outcome::Hit(hit) = &found.outcome {
            let counts: Vec<u64> = hit.value.chunks(8).map(|b| u64::from_be_bytes(b.try_into().unwrap())).collect();
            let fresh = counts.iter().zip(&floor).all(|(count, floor)| count >= floor);
            assert!(fresh, "member {member} was served {counts:?} of {tables:?}, under {floor:?}");
            self.hits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return;
        }
        // the query reads its tables one after the other, and its answer is late
        let mut answer = Vec::new();
        for n in &tables {
            self.wait(20).await;
            answer.extend(self.database.lock().rows[*n].to_be_bytes());
        }
        self.wait(150).await;
        let kept = cache.put(&found.at, &Key::of([&b"q"[..]]), answer.into(), 60_000 * MS).await;
        assert!(!found.at.is_blind() || !matches!(kept, Ok(Filled::Kept)));
    }

    async fn write(&self, member: usize, cache: &Cache) {
        let n = self.below(3);
        let count = {
            let mut database = self.database.lock();
            database.rows[n] += 1;
            database.rows[n]
        };
        let table = Table::new(&format!("t{n}")).unwrap();
        let change = match self.below(8) {
            0 => Change::tenant(tenant()),
            _ => Change::table(tenant(), table),
        };
        let landing = cache.invalidate(&[change]).await.pop().unwrap().unwrap();
        let mut database = self.database.lock();
        if landing == Landing::Landed {
            database.landed[n] = database.landed[n].max(count);
        }
        database.owed[member][n] = database.owed[member][n].max(count);
    }

    async fn trouble(&self, cache: &Cache) {
        let link = cache.link();
        match self.below(if self.restores { 8 } else { 6 }) {
            0 => link.black_hole(true),
            1 => link.down(true),
            2 => link.read_only(true),
            3 => link.deafen(true),
            4 => link.slow(MS, 90 * MS),
            5 => self.cluster.wipe(),
            6 => self.images.lock().push(self.cluster.image()),
            _ => {
                let image = self.images.lock().pop();
                if let Some(image) = image {
                    self.cluster.restore(image);
                    self.links.iter().for_each(Link::drop_connection);
                }
            }
        }
        self.wait(400).await;
        self.heal(cache);
    }

    fn heal(&self, cache: &Cache) {
        let link = cache.link();
        link.black_hole(false);
        link.down(false);
        link.read_only(false);
        link.deafen(false);
        link.slow(Duration::ZERO, 3 * MS);
    }
}

async fn run(seed: u64, restores: bool) -> u64 {
    let cluster = Cluster::new();
    let members: Vec<_> = (0..3).map(|n| Arc::new(cluster.join(options(seed * 3 + n)))).collect();
    let world = Arc::new(World {
        database: Mutex::default(),
        chance: SeededEntropy::new(seed),
        hits: Default::default(),
        images: Mutex::default(),
        cluster: cluster.clone(),
        links: members.iter().map(|cache| cache.link()).collect(),
        restores,
    });
    let tasks = Tasks::new();
    let mut all = Vec::new();
    for (n, cache) in members.iter().enumerate() {
        cache.link().lose_randomly(0.02);
        world.heal(cache);
        for role in 0..5 {
            let (world, cache) = (Arc::clone(&world), Arc::clone(cache));
            let acts = async move {
                for _ in 0..60 {
                    match role {
                        0 => world.write(n, &cache).await,
                        1 => world.trouble(&cache).await,
                        _ => world.query(n, &cache).await,
                    }
                    world.wait(if role == 0 { 200 } else { 60 }).await;
                }
            };
            all.push(tasks.spawn("acts", acts));
        }
    }
    for task in all {
        task.await.unwrap();
    }
    // longer than connections are used: by then everybody went through every loss
    sleep(3_000 * MS).await;
    // in the end everything owed lands, and everybody is served the newest
    let settled = async {
        while members.iter().any(|cache| cache.status().owed > 0 || cache.status().away.is_some()) {
            sleep(50 * MS).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), settled).await.expect("what is owed lands");
    let rows = world.database.lock().rows;
    world.database.lock().owed = [rows; 3];
    for (n, cache) in members.iter().enumerate() {
        for _ in 0..20 {
            world.query(n, cache).await;
        }
    }
    for cache in &members {
        cache.close().await;
    }
    world.hits.load(std::sync::atomic::Ordering::Relaxed)
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn no_old_answer_is_served_after_an_invalidation_that_returned(seed in 0..1_000_000_u64) {
        let hits = paused().block_on(run(seed, false));
        prop_assert!(hits > 20, "the run proves little: {hits} hits");
    }

    #[test]
    fn a_store_that_comes_back_older_serves_no_member_what_it_had_ended(seed in 0..1_000_000_u64) {
        let hits = paused().block_on(run(seed, true));
        prop_assert!(hits > 20, "the run proves little: {hits} hits");
    }
}

#[test]
fn a_run_replays_from_its_seed() {
    assert_eq!(paused().block_on(run(7, true)), paused().block_on(run(7, true)));
}

#[tokio::test(start_paused = true)]
async fn a_replayed_invalidation_is_not_needed_when_the_store_kept_it() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.join(options(1)), cluster.join(options(2)));
    let (table, key) = (Table::new("a").unwrap(), Key::of([&b"q"[..]]));
    let view = View::new(tenant(), [Read::from(table.clone())]).unwrap();
    a.invalidate(&[Change::table(tenant(), table)]).await;
    let found = b.lookup(&view, &key).await;
    b.put(&found.at, &key, "answer".into(), 60_000 * MS).await.unwrap();
    // a goes through a failure of its link; the store had none
    a.link().down(true);
    assert!(a.lookup(&view, &key).await.outcome.hit().is_none());
    a.link().down(false);
    while a.status().away.is_some() {
        sleep(50 * MS).await;
    }
    sleep(1_000 * MS).await;
    assert_eq!(b.lookup(&view, &key).await.outcome.hit().unwrap().value, "answer");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_emptied_and_then_comes_back_older_serves_nothing_that_was_ended() {
    let cluster = Cluster::new();
    let a = cluster.join(options(1));
    let (table, key) = (Table::new("a").unwrap(), Key::of([&b"q"[..]]));
    let view = View::new(tenant(), [Read::from(table.clone())]).unwrap();
    let found = a.lookup(&view, &key).await;
    a.put(&found.at, &key, "answer".into(), 60_000 * MS).await.unwrap();
    assert!(a.lookup(&view, &key).await.outcome.hit().is_some());
    let image = cluster.image();
    assert!(matches!(a.invalidate(&[Change::table(tenant(), table)]).await[..], [Ok(Landing::Landed)]));
    let goes_through_a_loss = async || {
        a.link().drop_connection();
        while a.status().away.is_none() {
            assert!(a.lookup(&view, &key).await.outcome.hit().is_none());
        }
        while a.status().away.is_some() || a.status().owed > 0 {
            sleep(50 * MS).await;
        }
    };
    cluster.wipe();
    goes_through_a_loss().await;
    cluster.restore(image);
    goes_through_a_loss().await;
    assert!(a.lookup(&view, &key).await.outcome.hit().is_none());
}
