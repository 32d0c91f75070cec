//! Extreme numbers, put into realistic problems.

use poolwright_catalog::UsdPerHour;
use poolwright_solver::Problem;

/// A source of single bytes, which returns zeroes at its end.
pub struct Edits<'a>(pub std::slice::Iter<'a, u8>);

impl Edits<'_> {
    fn byte(&mut self) -> usize {
        self.0.next().copied().unwrap_or(0).into()
    }

    fn large(&mut self) -> u64 {
        let all = [
            0,
            1,
            u64::MAX,
            1 << 50,
            1 << 63,
            u64::MAX - 1,
            10_000_000_000,
            u32::MAX.into(),
            1 << 32,
            i64::MAX as u64,
            999_999_999_999,
            7,
        ];
        all[self.byte() % all.len()]
    }

    fn small(&mut self) -> u32 {
        let all = [0, 1, u32::MAX, 1 << 31, 1000, u32::MAX - 1, 100_000, 3];
        all[self.byte() % all.len()]
    }

    /// Applies some edits to the problem, which may become malformed.
    pub fn apply(&mut self, problem: &mut Problem) {
        for _ in 0..=self.byte() % 6 {
            let what = self.byte();
            let at = self.byte();
            if what.is_multiple_of(3) {
                if let Some(class) = pick(&mut problem.classes, at) {
                    match self.byte() % 15 {
                        0 => class.count = self.small(),
                        1 => *entry(&mut class.requests, at) = self.large(),
                        2 => class.requests.fill(0),
                        3 => class.max_per_node = Some(self.small()),
                        4 => class.candidates.push(self.small()),
                        5 => class.existing.push(self.small()),
                        6 => class.ports.push(self.small()),
                        7 => class.value = self.large(),
                        8 => {
                            let cost = UsdPerHour::from_micros(self.large());
                            class.preferences.push((self.small(), cost));
                        }
                        9 => class.at_risk = self.large(),
                        10 => class.disruption = UsdPerHour::from_micros(self.large()),
                        11 => class.priority = self.small() as i32,
                        12 => class.requests.push(self.large()),
                        13 => class.at_risk_on.push((self.small(), self.large())),
                        _ => {
                            for (_, cost) in &mut class.preferences {
                                *cost = UsdPerHour::from_micros(self.0.next().map_or(u64::MAX, |_| 1 << 62));
                            }
                        }
                    }
                }
            } else if what % 3 == 1 {
                if let Some(candidate) = pick(&mut problem.candidates, at) {
                    match self.byte() % 8 {
                        0 | 1 => candidate.price = UsdPerHour::from_micros(self.large()),
                        2 | 3 => *entry(&mut candidate.capacity, at) = self.large(),
                        4 => candidate.max_nodes = Some(self.small()),
                        5 => candidate.limit_use.iter_mut().for_each(|(_, amount)| *amount = self.large()),
                        6 => candidate.interruptions = self.small(),
                        _ => {
                            if let Some(gpus) = &mut candidate.gpus {
                                gpus.count = self.small() % 70;
                                gpus.memory_mib = self.large();
                            }
                        }
                    }
                }
            } else {
                match self.byte() % 12 {
                    0 => problem.limits.iter_mut().for_each(|limit| limit.bound = self.large()),
                    1 => {
                        problem
                            .existing
                            .iter_mut()
                            .for_each(|node| *entry(&mut node.free, at) = self.large());
                    }
                    2 => problem
                        .commitments
                        .iter_mut()
                        .for_each(|plan| plan.left = UsdPerHour::from_micros(self.large())),
                    3 => {
                        for rate in problem.commitments.iter_mut().flat_map(|plan| &mut plan.rates) {
                            rate.1 = UsdPerHour::from_micros(self.large());
                        }
                    }
                    4 => problem
                        .spreads
                        .iter_mut()
                        .for_each(|spread| spread.running.iter_mut().for_each(|n| *n = self.small())),
                    5 => problem.spreads.iter_mut().for_each(|spread| spread.max_skew = self.small()),
                    6 => problem.flexibility.iter_mut().for_each(|rule| rule.at_least = self.small()),
                    7 => problem.conflicts.push((self.small(), self.small())),
                    8 => {
                        for removal in problem.existing.iter_mut().filter_map(|node| node.removal.as_mut()) {
                            removal.price = UsdPerHour::from_micros(self.large());
                            removal.pods.iter_mut().for_each(|(_, count)| *count = self.small());
                        }
                    }
                    9 => problem.classes.truncate(at % 2),
                    10 => problem.candidates.truncate(at % 2),
                    _ => {
                        problem.disruption.evictions = Some(self.small());
                        problem.disruption.nodes = Some(self.small());
                    }
                }
            }
        }
    }
}

fn pick<T>(of: &mut [T], at: usize) -> Option<&mut T> {
    let size = of.len();
    if size == 0 { None } else { of.get_mut(at % size) }
}

fn entry(of: &mut [u64], at: usize) -> &mut u64 {
    let size = of.len();
    &mut of[at % size]
}
