//! Seeded chance: the same seed, the same throws.

use std::process::Command;

/// What stands for the commit where there is no git.
const NO_COMMIT: u64 = 1;

/// A source of numbers.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Dice that throw what every other of this seed throws.
    pub fn new(seed: u64) -> Self {
        let mut dice = Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d };
        dice.throw();
        dice
    }

    /// Dice of their own for somebody: what others throw does not change theirs.
    pub fn fork(&mut self) -> Self {
        Self::new(self.throw())
    }

    /// Any number.
    pub fn throw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of 0 to `below` - 1; 0 of nothing.
    pub fn below(&mut self, below: u64) -> u64 {
        if below == 0 { 0 } else { self.throw() % below }
    }

    /// An index into something of this length; 0 where it has none.
    ///
    /// # Panics
    /// Never: an index is below a length.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below a length")
    }

    /// From `from` to `to`, both possible.
    ///
    /// # Panics
    /// The span is larger than an `i64`.
    pub fn span(&mut self, from: i64, to: i64) -> i64 {
        from + i64::try_from(self.below((to - from + 1).max(1) as u64)).expect("below a span")
    }

    /// True in so many of a thousand throws.
    pub fn permille(&mut self, chance: u32) -> bool {
        self.below(1_000) < u64::from(chance)
    }
}

/// The seed of tests that take another course with each commit, and the same one with the same commit.
pub fn seed_of_the_commit() -> u64 {
    let head = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"]).output();
    let hash = head.ok().and_then(|head| String::from_utf8(head.stdout).ok());
    let first = hash.and_then(|hash| u64::from_str_radix(hash.get(..16)?, 16).ok());
    first.unwrap_or(NO_COMMIT)
}
