//! One run: processes come and go under faults while rows are published; then everything heals, and what must be true is
//! checked.

use crate::{
    chance::Chance,
    process::{LEASE, Process, Surroundings, options},
    script::{Event, Temper, Trouble},
    sink::Weather,
    truth::Truth,
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use wh_coord::sim as leases;
use wh_mq::{Allowance, Broker, sim};
use wh_types::{Block, BlockId, Clock, Encoding, Epoch, Mono, SimClock, Stop, Table, Tasks, Tenant, Timestamp, frame};

const SHARDS: u32 = 8;
const TABLES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
/// Most processes at a time.
const MOST: usize = 5;
/// How long a stopped worker may take beyond its budget: halting, giving back, releasing, resigning.
const STOP_SLACK: Duration = Duration::from_secs(30);
/// How long everything may take once nothing fails any more. A lease and a silence must pass where somebody died last,
/// and a back-off; waiting for the queue's own redelivery (a minute) would be too long.
const PATIENCE: Duration = Duration::from_secs(50);

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Rows that were accepted.
    pub accepted: u64,
    /// Rows in the sink; more than accepted where some doubled.
    pub stored: u64,
    /// Stands for everything that happened: the same for the same seed.
    pub trace: u64,
}

/// Runs a seed, in a runtime of its own.
///
/// # Errors
/// What was wrong, after the last things that happened.
pub fn run(seed: u64) -> Result<Outcome, String> {
    tell(seed).1
}

/// The same with everything that happened.
pub fn tell(seed: u64) -> (Vec<String>, Result<Outcome, String>) {
    play(|| World::new(seed, None))
}

fn play(world: impl FnOnce() -> World) -> (Vec<String>, Result<Outcome, String>) {
    match tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build() {
        Ok(runtime) => runtime.block_on(async {
            let world = world();
            let truth = world.truth().clone();
            let outcome = world.run().await;
            (truth.told(), outcome)
        }),
        Err(error) => (Vec::new(), Err(error.to_string())),
    }
}

/// A run in which happens what it says and nothing else. The seed chooses to whom.
#[derive(Clone, Debug)]
pub struct Story {
    /// Processes at the beginning.
    pub processes: u64,
    /// What happens so many milliseconds after the beginning, in order.
    pub events: Vec<(u64, Event)>,
    /// Whether each row must come once and in order.
    pub exactly: bool,
}

impl Story {
    /// Plays it; for some time beyond its last event.
    ///
    /// # Errors
    /// As [`run`].
    pub fn play(&self, seed: u64) -> Result<Outcome, String> {
        play(|| World::new(seed, Some(self.clone()))).1
    }
}

struct World {
    seed: u64,
    chance: Chance,
    temper: Temper,
    story: Option<Story>,
    around: Surroundings,
    processes: Vec<Process>,
    started: u64,
    /// What ends by itself, and when.
    heals: Vec<(Mono, u64, Trouble)>,
}

impl World {
    fn new(seed: u64, story: Option<Story>) -> Self {
        let chance = Chance::new(seed);
        let temper = match &story {
            Some(story) if story.exactly => Temper::Gentle,
            Some(_) => Temper::Harsh,
            None => Temper::of(&chance),
        };
        let clock = Arc::new(SimClock::new(Timestamp::from_millis(1_750_000_000_000)));
        let queue = sim::Broker::new(sim::Options {
            epoch: Epoch(7),
            shards: SHARDS,
            ack_wait: Duration::from_secs(60),
            duplicate_window: Duration::from_secs(120),
            default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(1) },
            dead_letter_share: 10,
            clock: clock.clone(),
        });
        let (tasks, truth) = (Tasks::new(), Truth::new(clock, temper == Temper::Gentle));
        let weather = Weather {
            chance: Chance::new(seed ^ 0x5eed),
            tasks: tasks.clone(),
            slow: Mutex::new(Duration::from_millis(50)),
            fails: Mutex::new(if story.is_some() { (0, 0) } else { temper.sink_fails(&chance) }),
            keeps_tokens: story.is_none() && temper == Temper::Harsh && chance.percent(50),
        };
        let around = Surroundings { queue, store: leases::Cluster::new(), weather: Arc::new(weather), truth, tasks };
        Self { seed, chance, temper, story, around, processes: Vec::new(), started: 0, heals: Vec::new() }
    }

    async fn run(mut self) -> Result<Outcome, String> {
        self.truth().note(format!("seed {}: {:?}", self.seed, self.temper));
        let processes = self.story.as_ref().map_or_else(|| 1 + self.chance.below(3), |story| story.processes);
        for _ in 0..processes {
            self.join();
        }
        let (publishing, stop) = (Arc::new(AtomicBool::new(true)), Stop::new());
        let publisher = publish(self.around.clone(), self.seed, publishing.clone(), stop.clone());
        let published = self.around.tasks.spawn("publisher", publisher);
        match self.story.take() {
            Some(story) => self.told(&story).await,
            None => self.by_chance().await,
        }
        stop.give();
        if published.await.is_err() {
            self.truth().wrong("publishing failed");
        }
        self.settle().await;
        self.end().await;
        self.truth().compare();
        self.truth().verdict()?;
        let (accepted, stored) = self.truth().rows();
        Ok(Outcome { accepted, stored, trace: self.truth().trace() })
    }

    async fn by_chance(&mut self) {
        let end = self.now() + self.chance.millis(30_000, 90_000);
        while self.now() < end {
            self.pass(self.now() + self.chance.millis(200, 9_000)).await;
            self.happen(self.temper.event(&self.chance));
            self.nothing_is_lost().await;
        }
    }

    async fn told(&mut self, story: &Story) {
        let began = self.now();
        for (at, event) in &story.events {
            self.pass(began + Duration::from_millis(*at)).await;
            self.happen(*event);
            self.nothing_is_lost().await;
        }
        self.pass(self.now() + LEASE * 2).await;
        self.nothing_is_lost().await;
    }

    async fn pass(&mut self, until: Mono) {
        while self.now() < until {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.heal(false);
            self.look_after();
        }
    }

    /// Every accepted row is in the sink, or in the queue still.
    async fn nothing_is_lost(&self) {
        let (accepted, arrived) = self.truth().arrived();
        let queued = self.unsettled().await;
        if arrived + queued < accepted {
            self.truth().wrong(format!("of {accepted} rows {arrived} are stored, and the queue has {queued}"));
        }
    }

    fn truth(&self) -> &Truth {
        &self.around.truth
    }

    fn now(&self) -> Mono {
        self.around.truth.clock.now()
    }

    fn join(&mut self) {
        self.started += 1;
        self.processes.push(Process::start(self.started, self.seed, &self.around));
    }

    /// Processes that take part, or would if they could.
    fn members(&self) -> Vec<u64> {
        let members = self.processes.iter().filter(|process| process.stopping.is_none());
        members.map(|process| process.number).collect()
    }

    fn one(&mut self) -> Option<&mut Process> {
        let number = self.chance.pick(&self.members())?;
        self.processes.iter_mut().find(|process| process.number == number)
    }

    fn happen(&mut self, event: Event) {
        let (now, truth) = (self.now(), self.truth().clone());
        match event {
            Event::Join if self.members().len() < MOST => self.join(),
            Event::Join => {}
            Event::Inserts(slow) => {
                truth.note(format!("inserts take {slow:?}"));
                *self.around.weather.slow.lock() = slow;
            }
            Event::Stop => {
                if let Some(process) = self.one() {
                    process.stop(&truth);
                }
            }
            Event::Kill => {
                if let Some(number) = self.one().map(|process| process.number) {
                    let at = self.processes.iter().position(|process| process.number == number);
                    if let Some(process) = at.map(|at| self.processes.remove(at)) {
                        process.kill(&truth);
                    }
                }
            }
            Event::SlowLeases(slow) => {
                if let Some(process) = self.one() {
                    truth.note(format!("leases of process {} take {slow:?}", process.number));
                    process.link.slow(slow / 2, slow);
                }
            }
            Event::LoseAnswers(percent) => {
                if let Some(process) = self.one() {
                    truth.note(format!("{percent} % of answers to process {} are lost", process.number));
                    process.link.lose_randomly(f64::from(u32::try_from(percent).unwrap_or(0)) / 100.0);
                }
            }
            Event::For(trouble, span) => {
                let busy: Vec<u64> = self.heals.iter().map(|(_, number, _)| *number).collect();
                if let Some(process) = self.one().filter(|process| !busy.contains(&process.number)) {
                    let number = process.number;
                    process.suffer(trouble, true, &truth);
                    self.heals.push((now + span, number, trouble));
                }
            }
        }
    }

    /// Ends what is over; all of it if asked.
    fn heal(&mut self, all: bool) {
        let (now, truth) = (self.now(), self.truth().clone());
        let (over, left) = std::mem::take(&mut self.heals).into_iter().partition(|(at, _, _)| all || *at <= now);
        self.heals = left;
        let over: Vec<(Mono, u64, Trouble)> = over;
        for (_, number, trouble) in over {
            if let Some(process) = self.processes.iter_mut().find(|process| process.number == number) {
                process.suffer(trouble, false, &truth);
            }
        }
    }

    /// Forgets processes that ended, and sees that a stop keeps its time.
    fn look_after(&mut self) {
        let (now, truth) = (self.now(), self.truth().clone());
        self.processes.retain(|process| {
            let ended = process.ended();
            if ended && process.stopping.is_none() {
                truth.wrong(format!("process {} ended by itself", process.number));
            }
            !ended
        });
        let bound = options().stop_budget + STOP_SLACK;
        for process in &mut self.processes {
            if process.frozen {
                // its time stands still
                process.stopping = process.stopping.map(|_| now);
            }
            if process.stopping.is_some_and(|since| now.saturating_duration_since(since) > bound) {
                truth.wrong(format!("process {} did not stop within {bound:?}", process.number));
                process.stopping = Some(now);
            }
        }
    }

    /// Everything heals; every row arrives, and the units are shared out evenly.
    async fn settle(&mut self) {
        self.heal(true);
        for process in &self.processes {
            process.link.lose_randomly(0.0);
            process.link.slow(Duration::ZERO, Duration::ZERO);
        }
        *self.around.weather.slow.lock() = Duration::from_millis(50);
        *self.around.weather.fails.lock() = (0, 0);
        if self.members().is_empty() {
            self.join();
        }
        self.truth().note("everything heals");
        let patience = self.now() + PATIENCE;
        loop {
            self.look_after();
            let members = self.members();
            let loads = self.truth().loads(&members);
            let (most, least) = (loads.iter().max().copied().unwrap_or(0), loads.iter().min().copied().unwrap_or(0));
            let even = most - least <= 1 && loads.iter().sum::<usize>() == SHARDS as usize;
            let left = self.unsettled().await;
            if even && left == 0 {
                return;
            }
            if self.now() > patience {
                self.truth().wrong(format!("{left} rows are left and {members:?} have {loads:?} units"));
                return;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    async fn unsettled(&self) -> u64 {
        let status = self.around.queue.status().await;
        status.map_or(0, |status| status.tenants.values().filter_map(|tenant| tenant.unsettled_rows).sum())
    }

    /// Everybody stops, and nothing stays held.
    async fn end(&mut self) {
        let truth = self.truth().clone();
        self.processes.iter_mut().filter(|process| process.stopping.is_none()).for_each(|process| process.stop(&truth));
        let patience = self.now() + options().stop_budget + STOP_SLACK;
        while !self.processes.is_empty() && self.now() < patience {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.look_after();
        }
        if !self.processes.is_empty() {
            truth.wrong("not everybody stopped");
        }
        // a unit whose release did not arrive frees itself
        tokio::time::sleep(LEASE).await;
        let held = truth.loads(&(0..=self.started).collect::<Vec<_>>());
        if held.iter().sum::<usize>() > 0 {
            truth.wrong(format!("units are still held: {held:?}"));
        }
    }
}

/// Publishes numbered rows of every table until it is stopped.
async fn publish(around: Surroundings, seed: u64, publishing: Arc<AtomicBool>, stop: Stop) {
    let (chance, mut ids) = (Chance::new(seed ^ 0xb10c), 0_u128);
    while !stop.given() && publishing.load(Ordering::Relaxed) {
        tokio::time::sleep(chance.millis(5, 150)).await;
        let Some(table) = chance.pick(&TABLES).and_then(|name| Table::new(name).ok()) else { continue };
        let rows = around.truth.next_rows(&table, 1 + chance.below(12));
        let count = u32::try_from(rows.end - rows.start).unwrap_or(0);
        let plain: String = rows.map(|n| format!("{{\"n\":{n}}}\n")).collect();
        ids += 1;
        let Ok(body) = frame::encode(Encoding::Zstd, plain.as_bytes()) else { continue };
        let block = Block {
            id: BlockId(ids.to_be_bytes()),
            tenant: Tenant::default(),
            table,
            received: around.truth.clock.wall(),
            rows: count,
            decoded_bytes: u32::try_from(plain.len()).unwrap_or(0),
            encoding: Encoding::Zstd,
            body,
            chain: None,
            trace: None,
        };
        for outcome in around.queue.publish(&[block]).await {
            if let Err(error) = outcome {
                around.truth.wrong(format!("a block was refused: {error}"));
            }
        }
    }
}
