//! What goes wrong with calls, by chance.

/// What goes wrong, by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Out of a hundred calls, so many are throttled, refused by an error page, fail, or lose their answer after the effect.
    pub percent: u64,
    /// Where chance begins.
    pub seed: u64,
}

/// What chance has for one call.
pub(super) enum Fate {
    Well,
    Throttled,
    Page,
    Failed,
    /// The effect is there, the answer is not.
    Lost,
}

impl Trouble {
    /// What becomes of the next call.
    pub(super) fn fate(&mut self) -> Fate {
        // xorshift64*: any spread of the numbers will do.
        let mut x = self.seed.max(1);
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.seed = x;
        let drawn = x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        if drawn % 100 >= self.percent {
            return Fate::Well;
        }
        match (drawn / 100) % 4 {
            0 => Fate::Throttled,
            1 => Fate::Page,
            2 => Fate::Failed,
            _ => Fate::Lost,
        }
    }
}
