//! Random choices from a seed, equal on every machine and in every release (SplitMix64).

/// A random generator.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn number(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Returns true with this probability in percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// Returns one of these.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize].clone()
    }

    /// Returns some of these, at least one, in their order.
    pub fn some<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let certain = self.number(0, of.len() as u64 - 1) as usize;
        let chosen = of.iter().enumerate().filter(|(at, _)| *at == certain || self.chance(40));
        chosen.map(|(_, one)| one.clone()).collect()
    }
}
