//! Dice: numbers that look random and follow from a seed.

pub struct Dice {
    state: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0xd134_2543_de82_ef95) }
    }

    /// The next 64 bits (a Weyl sequence, mixed).
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.bits() % count as u64).expect("below a usize")
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    pub fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// A span in ms: mostly none or short, seldom long, very seldom absurd.
    pub fn span_ms(&mut self) -> i64 {
        match self.below(100) {
            0..=29 => 0,
            30..=59 => 1 + self.below(5_000) as i64,
            60..=89 => 1_000 * (1 + self.below(120) as i64),
            90..=97 => 3_600_000 * (1 + self.below(100) as i64),
            98 => i64::MAX,
            _absurd => -1 - self.below(1_000) as i64,
        }
    }
}
