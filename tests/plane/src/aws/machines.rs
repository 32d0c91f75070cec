//! The instances launched through the front, for tests that play the start of a machine.

use std::collections::BTreeMap;

use super::request::Request;

/// The tag that names the claim of an instance.
const CLAIM: &str = "poolwright.dev/nodeclaim";

/// An instance that was launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its id.
    pub id: String,
    /// Its instance type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// The claim that its tags name, once they do.
    pub claim: Option<String>,
    /// Whether it was terminated.
    pub ended: bool,
}

/// All instances, by id.
#[derive(Debug, Default)]
pub(super) struct Machines(BTreeMap<String, Machine>);

impl Machines {
    /// Records the instances that a fleet launched from a pool.
    pub fn launched(&mut self, fleet: &Request, instance_type: &str, zone: &str, ids: &[String]) {
        let tags = fleet.indices("TagSpecification.").into_iter().flat_map(|at| {
            let prefix = format!("TagSpecification.{at}.Tag.");
            fleet.indices(&prefix).into_iter().map(move |tag| format!("{prefix}{tag}."))
        });
        let claim = claim(fleet, tags);
        for id in ids {
            let (instance_type, zone) = (instance_type.to_owned(), zone.to_owned());
            let machine = Machine { id: id.clone(), instance_type, zone, claim: claim.clone(), ended: false };
            self.0.insert(id.clone(), machine);
        }
    }

    /// Records the claim or the termination that a successful call sets.
    pub fn told(&mut self, asked: &Request) {
        let named = |prefix: &str| {
            let ids =
                asked.indices(prefix).into_iter().map(|at| asked.get(&format!("{prefix}{at}")).to_owned());
            ids.collect::<Vec<_>>()
        };
        match asked.action.as_str() {
            "ec2:TerminateInstances" => {
                for id in named("InstanceId.") {
                    if let Some(machine) = self.0.get_mut(&id) {
                        machine.ended = true;
                    }
                }
            }
            "ec2:CreateTags" => {
                let tags = asked.indices("Tag.").into_iter().map(|tag| format!("Tag.{tag}."));
                let Some(claim) = claim(asked, tags) else { return };
                for id in named("ResourceId.") {
                    if let Some(machine) = self.0.get_mut(&id) {
                        machine.claim = Some(claim.clone());
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns all instances, terminated ones too.
    pub fn ever(&self) -> Vec<Machine> {
        self.0.values().cloned().collect()
    }
}

/// Returns the claim named by the tags with these prefixes.
fn claim(asked: &Request, tags: impl Iterator<Item = String>) -> Option<String> {
    let mut named = tags.filter(|tag| asked.get(&format!("{tag}Key")) == CLAIM);
    named.next().map(|tag| asked.get(&format!("{tag}Value")).to_owned())
}
