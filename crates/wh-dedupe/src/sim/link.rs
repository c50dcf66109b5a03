//! What the way to the store is like, and what goes wrong on it.

use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use wh_types::Entropy;

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not reach the store.
    Refused,
    /// The store says that it has too much to do.
    Throttled,
    /// It is done; its answer is lost.
    Lost,
    /// The first half of it is done, the rest does not reach the store. A reservation takes the first half back.
    HalfUndone,
    /// The same, and the first half cannot be taken back.
    HalfLeft,
}

impl Fault {
    const ALL: [Self; 5] = [Self::Refused, Self::Throttled, Self::Lost, Self::HalfUndone, Self::HalfLeft];

    pub(super) fn stops_half_way(self) -> bool {
        matches!(self, Self::HalfUndone | Self::HalfLeft)
    }
}

/// The way from one process to the store.
#[derive(Clone, Debug)]
pub struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ways: Mutex<Ways>,
    entropy: Arc<dyn Entropy>,
}

#[derive(Debug, Default)]
struct Ways {
    cut: bool,
    always: Option<Fault>,
    script: VecDeque<Fault>,
    probability: f64,
    slow: (Duration, Duration),
}

impl Link {
    pub(super) fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self(Arc::new(Inner { ways: Mutex::default(), entropy }))
    }

    /// Cuts it or heals it: no call reaches the store while it is cut.
    pub fn cut(&self, cut: bool) {
        self.0.ways.lock().cut = cut;
    }

    /// What goes wrong with the next calls, one each.
    pub fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.0.ways.lock().script.extend(faults);
    }

    /// What goes wrong with every call from now on, after those of the script.
    pub fn always(&self, fault: Option<Fault>) {
        self.0.ways.lock().always = fault;
    }

    /// Something goes wrong with each call with this probability.
    pub fn fail_randomly(&self, probability: f64) {
        self.0.ways.lock().probability = probability;
    }

    /// How long each way takes: uniform between the two.
    pub fn slow(&self, least: Duration, most: Duration) {
        self.0.ways.lock().slow = (least, most);
    }

    pub(super) async fn way(&self) {
        let (least, most) = self.0.ways.lock().slow;
        if most > Duration::ZERO {
            let wait = least + most.saturating_sub(least).mul_f64(self.0.entropy.unit());
            tokio::time::sleep(wait).await;
        }
    }

    pub(super) fn fault(&self) -> Option<Fault> {
        let mut ways = self.0.ways.lock();
        if ways.cut {
            return Some(Fault::Refused);
        }
        if let Some(fault) = ways.script.pop_front() {
            return Some(fault);
        }
        if ways.always.is_some() {
            return ways.always;
        }
        if ways.probability > 0.0 && self.0.entropy.unit() < ways.probability {
            let nth = self.0.entropy.next_u64() % Fault::ALL.len() as u64;
            return usize::try_from(nth).ok().and_then(|nth| Fault::ALL.get(nth)).copied();
        }
        None
    }
}
