//! The rules of a well-formed problem. A well-formed problem that cannot be satisfied is not an error: the solver reports the
//! pods that it leaves out, and the reasons.

use poolwright_catalog::{MigGeometry, MigProfile, UsdPerHour};

use super::{Candidate, GPU_UNITS, GpuRequest, GpuState, PodClass, Problem, risk};

/// The maximum amount of money for one item, in micro-dollars: nine billion dollars an hour. Above it, fractions of a
/// price do not fit 64 bits.
const MOST_MONEY: u64 = 1 << 53;
/// The maximum total cost of all pods and nodes.
const MOST_TOGETHER: u128 = 1 << 62;

/// The reason why a problem is malformed: a bug of the caller, or an error in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// A vector has the wrong number of entries.
    #[error("{what} has {got} resource amounts where the problem has {want} resources")]
    WrongLength {
        /// The object.
        what: String,
        /// Its length.
        got: usize,
        /// The number of resources.
        want: usize,
    },
    /// An index does not exist, or a list of indices is not strictly ascending.
    #[error("{what} names {list} number {index}, which does not exist or is out of order")]
    BadIndex {
        /// The object.
        what: String,
        /// The list.
        list: &'static str,
        /// The index.
        index: u32,
    },
    /// A number is out of range.
    #[error("{what}: {field} is {value}, but {rule}")]
    BadNumber {
        /// The object.
        what: String,
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The rule for the value.
        rule: &'static str,
    },
    /// A class is in two groups that exclude each other.
    #[error("class `{class}` is in {first} and in {second}; a class may be in one of them only")]
    TwoGroups {
        /// The class.
        class: String,
        /// A gang or a spread.
        first: String,
        /// Another.
        second: String,
    },
    /// The state of a GPU is impossible.
    #[error("GPU {gpu} of {node} cannot be in its state: {why}")]
    BadGpu {
        /// The node.
        node: String,
        /// The number of the GPU.
        gpu: usize,
        /// The reason.
        why: &'static str,
    },
}

type Valid = Result<(), ProblemError>;

/// Checks that indices exist and ascend strictly.
fn ascending(what: &str, list: &'static str, indices: impl IntoIterator<Item = u32>, size: usize) -> Valid {
    let mut previous = None;
    for index in indices {
        if index as usize >= size || previous.is_some_and(|p| p >= index) {
            return Err(ProblemError::BadIndex { what: what.to_owned(), list, index });
        }
        previous = Some(index);
    }
    Ok(())
}

fn number(what: &str, field: &'static str, value: u64, good: bool, rule: &'static str) -> Valid {
    if good { Ok(()) } else { Err(ProblemError::BadNumber { what: what.to_owned(), field, value, rule }) }
}

impl Problem {
    /// Checks that vectors have the right length, indices exist and ascend, and numbers are in range.
    pub fn validate(&self) -> Valid {
        for class in &self.classes {
            self.class(class)?;
        }
        for candidate in &self.candidates {
            self.candidate(candidate)?;
        }
        self.nodes()?;
        // Conflicts can be very many, so a name is formatted only for a wrong one.
        let wrong = |(i, j): &&(u32, u32)| i >= j || *j as usize >= self.classes.len();
        if let Some((i, j)) = self.conflicts.iter().find(wrong) {
            ascending(&format!("conflict ({i}, {j})"), "class", [*i, *j], self.classes.len())?;
        }
        if let Some(pair) = self.conflicts.windows(2).find(|pair| pair[0] >= pair[1]) {
            let (index, _) = pair[1];
            return Err(ProblemError::BadIndex { what: "the conflicts".to_owned(), list: "class", index });
        }
        self.groups()?;
        self.rules()?;
        self.money()
    }

    /// Checks that no sum of money of any plan can overflow. One pod per node is the most expensive plan.
    fn money(&self) -> Valid {
        let price = |what: &str, field: &'static str, money: UsdPerHour| {
            let rule = "money is at most 2^53 micro-dollars an hour";
            number(what, field, money.micros(), money.micros() <= MOST_MONEY, rule)?;
            Ok(u128::from(money.micros()))
        };
        let (mut dearest, mut interruptions, mut sum) = (0, 0, 0u128);
        for candidate in &self.candidates {
            dearest = dearest.max(price(&candidate.name, "price", candidate.price)?);
            interruptions = interruptions.max(candidate.interruptions);
        }
        for commitment in &self.commitments {
            for (_, rate) in &commitment.rates {
                price(&commitment.name, "rates", *rate)?;
            }
        }
        let mut pods: Vec<u64> = self.classes.iter().map(|class| class.count.into()).collect();
        for node in &self.existing {
            let Some(removal) = &node.removal else { continue };
            sum += price(&node.name, "removal.price", removal.price)?;
            sum += price(&node.name, "removal.disruption", removal.disruption)?;
            removal.pods.iter().for_each(|(class, count)| pods[*class as usize] += u64::from(*count));
        }
        for (class, count) in self.classes.iter().zip(pods) {
            let rule = "those that wait and those on removable nodes may be 4294967295 together";
            number(&class.name, "count", count, u32::try_from(count).is_ok(), rule)?;
            let mut each = dearest + price(&class.name, "disruption", class.disruption)?;
            let lost = class.at_risk_on.iter().map(|(_, lost)| *lost).fold(class.at_risk, u64::max);
            each += price(&class.name, "atRisk", risk(lost, interruptions))?;
            let mut disliked = 0;
            for (_, cost) in &class.preferences {
                disliked = disliked.max(price(&class.name, "preferences", *cost)?);
            }
            sum += (each + disliked) * u128::from(count);
            let rule = "all pods together could cost more than 2^62 micro-dollars an hour";
            number(&class.name, "count", count, sum <= MOST_TOGETHER, rule)?;
        }
        Ok(())
    }

    fn length(&self, what: &str, vector: &[u64]) -> Valid {
        let want = self.resources.len();
        if vector.len() == want {
            Ok(())
        } else {
            Err(ProblemError::WrongLength { what: what.to_owned(), got: vector.len(), want })
        }
    }

    fn class(&self, class: &PodClass) -> Valid {
        let name = &class.name;
        self.length(name, &class.requests)?;
        ascending(name, "candidate", class.candidates.iter().copied(), self.candidates.len())?;
        ascending(name, "existing node", class.existing.iter().copied(), self.existing.len())?;
        ascending(name, "port", class.ports.iter().copied(), usize::MAX)?;
        let disliked = class.preferences.iter().map(|(candidate, _)| *candidate);
        ascending(name, "preferred candidate", disliked, self.candidates.len())?;
        let losing = class.at_risk_on.iter().map(|(candidate, _)| *candidate);
        ascending(name, "candidate with a loss", losing, self.candidates.len())?;
        match class.gpu {
            Some(GpuRequest::Whole(count)) => {
                number(name, "gpu.whole", count.into(), count > 0, "it must be at least 1")
            }
            Some(GpuRequest::Share { units, .. }) => {
                let good = (1..=GPU_UNITS).contains(&units);
                number(name, "gpu.share.units", units.into(), good, "it must be from 1 to 1000")
            }
            Some(GpuRequest::Mig { count, .. }) => {
                number(name, "gpu.mig.count", count.into(), count > 0, "it must be at least 1")
            }
            None => Ok(()),
        }
    }

    fn domains(&self, what: &str, domains: &[(u32, u32)]) -> Valid {
        let topologies = domains.iter().map(|(topology, _)| *topology);
        ascending(what, "topology", topologies, self.topologies.len())?;
        for (topology, value) in domains {
            let values = self.topologies[*topology as usize].values.len();
            ascending(what, "topology value", [*value], values)?;
        }
        Ok(())
    }

    fn candidate(&self, candidate: &Candidate) -> Valid {
        let name = &candidate.name;
        self.length(name, &candidate.capacity)?;
        let limits = candidate.limit_use.iter().map(|(limit, _)| *limit);
        ascending(name, "limit", limits, self.limits.len())?;
        self.domains(name, &candidate.domains)?;
        if let Some(gpus) = &candidate.gpus {
            let good = (1..=64).contains(&gpus.count);
            number(name, "gpus.count", gpus.count.into(), good, "it must be from 1 to 64")?;
        }
        Ok(())
    }

    fn nodes(&self) -> Valid {
        for node in &self.existing {
            let name = &node.name;
            self.length(name, &node.free)?;
            self.domains(name, &node.domains)?;
            for (gpu, state) in node.gpus.iter().enumerate() {
                possible(state).map_err(|why| ProblemError::BadGpu { node: name.clone(), gpu, why })?;
            }
            if let Some(removal) = &node.removal {
                let classes = removal.pods.iter().map(|(class, _)| *class);
                ascending(name, "class", classes, self.classes.len())?;
                for (_, count) in &removal.pods {
                    let rule = "an entry must have at least 1 pod";
                    number(name, "removal.pods", (*count).into(), *count > 0, rule)?;
                }
            }
        }
        Ok(())
    }

    fn groups(&self) -> Valid {
        let mut of: Vec<Option<String>> = vec![None; self.classes.len()];
        let mut join = |what: String, classes: &[u32]| {
            for class in classes {
                if let Some(first) = of[*class as usize].replace(what.clone()) {
                    let class = self.classes[*class as usize].name.clone();
                    return Err(ProblemError::TwoGroups { class, first, second: what });
                }
            }
            Ok(())
        };
        for gang in &self.gangs {
            ascending(&gang.name, "class", gang.classes.iter().copied(), self.classes.len())?;
            ascending(&gang.name, "topology", gang.within, self.topologies.len())?;
            join(format!("gang `{}`", gang.name), &gang.classes)?;
        }
        for spread in &self.spreads {
            let name = &spread.name;
            ascending(name, "class", spread.classes.iter().copied(), self.classes.len())?;
            ascending(name, "topology", [spread.topology], self.topologies.len())?;
            let values = self.topologies[spread.topology as usize].values.len();
            ascending(name, "topology value", spread.values.iter().copied(), values)?;
            number(name, "maxSkew", spread.max_skew.into(), spread.max_skew > 0, "it must be at least 1")?;
            let entries = spread.running.len() as u64;
            let good = spread.running.len() == spread.values.len();
            number(name, "running", entries, good, "it must have one entry per eligible value")?;
            join(format!("spread `{name}`"), &spread.classes)?;
        }
        Ok(())
    }

    fn rules(&self) -> Valid {
        let size = self.candidates.len();
        let mut covered = vec![false; size];
        for commitment in &self.commitments {
            let name = &commitment.name;
            ascending(name, "candidate", commitment.rates.iter().map(|(candidate, _)| *candidate), size)?;
            for (candidate, rate) in &commitment.rates {
                let rule = "a discounted rate must be above zero";
                number(name, "rates", rate.micros(), rate.micros() > 0, rule)?;
                let twice = std::mem::replace(&mut covered[*candidate as usize], true);
                let rule = "a candidate may be covered by one commitment only";
                number(name, "rates", u64::from(*candidate), !twice, rule)?;
            }
        }
        for share in &self.node_shares {
            let name = &share.name;
            ascending(name, "candidate", share.part.iter().copied(), size)?;
            ascending(name, "candidate", share.of.iter().copied(), size)?;
            if let Some(index) = share.part.iter().find(|part| share.of.binary_search(part).is_err()) {
                let (what, list) = (name.clone(), "candidate of the whole");
                return Err(ProblemError::BadIndex { what, list, index: *index });
            }
            let permille = share.at_most_permille;
            number(name, "atMostPermille", permille.into(), permille < 1000, "it must be below 1000")?;
            let (part, of) = (share.running_part, share.running_of);
            number(name, "runningPart", part.into(), part <= of, "it must be at most runningOf")?;
        }
        for flexibility in &self.flexibility {
            let name = &flexibility.name;
            ascending(name, "candidate", flexibility.candidates.iter().copied(), size)?;
            ascending(name, "topology", [flexibility.topology], self.topologies.len())?;
        }
        Ok(())
    }
}

/// Checks that instances in use are where the table allows them and do not overlap, and that shares do not exceed the
/// GPU.
fn possible(state: &GpuState) -> Result<(), &'static str> {
    match state {
        GpuState::Busy => Ok(()),
        GpuState::Shared { units_used, memory_used_mib, memory_mib } => {
            if *units_used > GPU_UNITS || memory_used_mib > memory_mib {
                Err("more is in use than there is")
            } else {
                Ok(())
            }
        }
        GpuState::Mig { geometry, in_use, .. } => {
            let mut taken = 0u32;
            for (profile, start) in in_use {
                let (size, starts) = placements(*geometry, *profile).ok_or("it has no such profile")?;
                if !starts.contains(start) {
                    return Err("no instance of that profile starts there");
                }
                let mask = ((1u32 << size) - 1) << start;
                if taken & mask != 0 {
                    return Err("two instances overlap");
                }
                taken |= mask;
            }
            Ok(())
        }
    }
}

/// Returns the memory slices of an instance, and its possible starts.
fn placements(geometry: MigGeometry, profile: MigProfile) -> Option<(u8, &'static [u8])> {
    geometry.placements(profile).map(|placements| (placements.size, placements.starts))
}
