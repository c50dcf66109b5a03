//! The counts that publishers put into their blocks: a jump says that a block is missing (decision D1). Pure.

use std::{collections::HashMap, sync::Arc};
use wh_types::Chain;

/// Publishers that are remembered. With more, all are forgotten: then a missing block is not noticed by its count.
const PUBLISHERS: usize = 64;

/// Where each publisher of a table stands.
#[derive(Debug, Default)]
pub(super) struct Chains(HashMap<Arc<str>, Link>);

#[derive(Clone, Copy, Debug)]
struct Link {
    n: u64,
    /// Everything since was heard: what is missing in the count was never stored.
    heard: bool,
}

impl Chains {
    /// From here on the history is read, which may lack something.
    pub(super) fn doubt(&mut self) {
        self.0.values_mut().for_each(|link| link.heard = false);
    }

    /// A block comes from the history. Gives whether one of the same publisher is missing before it.
    pub(super) fn replayed(&mut self, chain: &Chain) -> bool {
        self.jumps(chain, false)
    }

    /// A block comes from the ring. Gives whether one of the same publisher is missing before it.
    pub(super) fn heard(&mut self, chain: &Chain) -> bool {
        self.jumps(chain, true)
    }

    fn jumps(&mut self, chain: &Chain, heard: bool) -> bool {
        let Some(link) = self.0.get_mut(&chain.process) else {
            if self.0.len() >= PUBLISHERS {
                self.0.clear();
            }
            self.0.insert(Arc::clone(&chain.process), Link { n: chain.n, heard });
            return false;
        };
        let jumps = !link.heard && chain.n > link.n.saturating_add(1);
        *link = Link { n: chain.n.max(link.n), heard };
        jumps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_one_publisher_is_noticed_whoever_comes_between() {
        let mut chains = Chains::default();
        let mut next = |process: &str, n| chains.replayed(&Chain { process: Arc::from(process), n });
        assert!(!next("a", 5), "where it began is not known");
        assert!(!next("b", 1) && !next("a", 6) && !next("b", 2));
        assert!(next("a", 8));
        assert!(!next("a", 9) && !next("b", 3));
        assert!(!next("b", 3) && !next("b", 0) && !next("b", 4), "what is read again changes nothing");
        for n in 0..1_000 {
            next(&n.to_string(), 1);
        }
        assert!(chains.0.len() <= PUBLISHERS);
    }

    #[test]
    fn where_everything_was_heard_a_jump_is_no_loss() {
        let mut chains = Chains::default();
        let chain = |n| Chain { process: Arc::from("a"), n };
        assert!(!chains.replayed(&chain(1)));
        assert!(chains.heard(&chain(3)), "between the history and the ring something is missing");
        assert!(!chains.heard(&chain(5)));
        chains.doubt();
        assert!(chains.heard(&chain(7)));
        assert!(!chains.heard(&chain(9)));
    }
}
