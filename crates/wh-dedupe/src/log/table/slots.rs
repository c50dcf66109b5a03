//! Places for open claims, used again when they are free.

use super::Claim;

#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Vec<Option<Claim>>,
    free: Vec<u32>,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub(super) fn put(&mut self, claim: Claim) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.all[slot as usize] = Some(claim);
            return slot;
        }
        self.all.push(Some(claim));
        // fewer than the claims of a store, which are bounded far below
        u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
    }

    /// A claim that is there.
    #[expect(clippy::expect_used, reason = "an entry of the table names a slot only while the slot is taken")]
    pub(super) fn of(&mut self, slot: u32) -> &mut Claim {
        self.all[slot as usize].as_mut().expect("the slot is taken")
    }

    pub(super) fn get(&mut self, slot: u32) -> Option<&mut Claim> {
        self.all.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn take(&mut self, slot: u32) -> Option<Claim> {
        let claim = self.all.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        if self.free.len() == self.all.len() && self.all.capacity() > 64 {
            // a burst is over
            *self = Self::default();
        }
        Some(claim)
    }

    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Claim> {
        self.all.iter_mut().flatten()
    }
}
