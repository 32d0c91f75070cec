//! CreateFleet as EC2 answers it: pool by pool, idempotent by client token, and with failed pools reported as errors inside a
//! successful response.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::request::Request;

/// One capacity pool that a fleet may launch from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Override {
    /// The number in `LaunchTemplateConfigs.1.`.
    config: usize,
    /// The number in `Overrides.2.`.
    index: usize,
    pub instance_type: String,
    pub subnet: String,
    priority: f64,
}

/// A parsed CreateFleet request.
pub(super) struct Wanted {
    pub token: String,
    pub spot: bool,
    pub count: usize,
    /// The pools, highest priority first.
    pub overrides: Vec<Override>,
    /// All parameters but the token. A token may be reused only with the same ones.
    pub content: BTreeMap<String, String>,
}

impl Wanted {
    pub fn read(request: &Request) -> Self {
        let mut overrides = Vec::new();
        for config in request.indices("LaunchTemplateConfigs.") {
            for index in request.indices(&format!("LaunchTemplateConfigs.{config}.Overrides.")) {
                let field = |name: &str| {
                    request
                        .get(&format!("LaunchTemplateConfigs.{config}.Overrides.{index}.{name}"))
                        .to_owned()
                };
                overrides.push(Override {
                    config,
                    index,
                    instance_type: field("InstanceType"),
                    subnet: field("SubnetId"),
                    priority: field("Priority").parse().unwrap_or(f64::MAX),
                });
            }
        }
        // The sort is stable: without priorities the order of the request stays.
        overrides.sort_by(|a, b| a.priority.total_cmp(&b.priority));
        let kind = request.get("TargetCapacitySpecification.DefaultTargetCapacityType");
        let mut content = request.parameters.clone();
        content.remove("ClientToken");
        Self {
            token: request.get("ClientToken").to_owned(),
            spot: kind == "spot",
            count: request.get("TargetCapacitySpecification.TotalTargetCapacity").parse().unwrap_or(1),
            overrides,
            content,
        }
    }
}

/// Returns the body of a request for `count` instances of this pool only.
pub(super) fn just(request: &Request, pool: &Override, count: usize) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (key, value) in &request.parameters {
        let Some(rest) = key.strip_prefix("LaunchTemplateConfigs.") else {
            match key.as_str() {
                "TargetCapacitySpecification.TotalTargetCapacity" => {
                    form.append_pair(key, &count.to_string());
                }
                // With moto, a capacity block would launch nothing. Spot instances are launched as on-demand, and the front lists
                // them as spot.
                "TargetCapacitySpecification.DefaultTargetCapacityType" => {
                    form.append_pair(key, "on-demand");
                }
                _ => {
                    form.append_pair(key, value);
                }
            }
            continue;
        };
        let Some(rest) = rest.strip_prefix(&format!("{}.", pool.config)) else { continue };
        match rest.strip_prefix("Overrides.") {
            None => {
                form.append_pair(&format!("LaunchTemplateConfigs.1.{rest}"), value);
            }
            Some(rest) => {
                if let Some(rest) = rest.strip_prefix(&format!("{}.", pool.index)) {
                    form.append_pair(&format!("LaunchTemplateConfigs.1.Overrides.1.{rest}"), value);
                }
            }
        }
    }
    form.finish()
}

/// The result of one pool.
pub(super) enum Outcome {
    /// The ids of the instances launched.
    Instances(Vec<String>),
    /// An error code with its message.
    Refused(String, String),
}

/// The fleets requested with a client token, by that token.
#[derive(Default)]
pub(super) struct Fleets(BTreeMap<String, Kept>);

/// A fleet that was answered.
struct Kept {
    id: String,
    /// All parameters but the token. A token may be reused only with the same ones.
    content: BTreeMap<String, String>,
    /// The instances and errors, as XML of EC2.
    outcome: String,
}

impl Fleets {
    /// Returns the earlier answer to the client token, or `Err` if that request had other parameters.
    pub fn answered(&self, wanted: &Wanted) -> Option<Result<String, ()>> {
        let kept = self.0.get(&wanted.token).filter(|_| !wanted.token.is_empty())?;
        Some(if kept.content == wanted.content { Ok(created(kept)) } else { Err(()) })
    }

    /// Answers a request, and keeps the answer for its client token.
    pub fn answer(&mut self, wanted: Wanted, outcomes: &[(Override, Outcome)]) -> String {
        let id = format!("fleet-{:08x}-0000-0000-0000-000000000000", self.0.len());
        let outcome = outcome(&wanted, outcomes);
        let kept = Kept { id, content: wanted.content, outcome };
        let answer = created(&kept);
        if !wanted.token.is_empty() {
            self.0.insert(wanted.token, kept);
        }
        answer
    }

    /// Returns the parameters of each fleet.
    pub fn contents(&self) -> Vec<BTreeMap<String, String>> {
        self.0.values().map(|kept| kept.content.clone()).collect()
    }

    /// Answers a query for fleets, by tags or by ids.
    pub fn describe(&self, asked: &Request) -> Option<String> {
        let mut items = String::new();
        let set = match asked.action.as_str() {
            "ec2:DescribeTags" if asked.get("Filter.1.Value.1") == "fleet" => {
                let (filter, value) = (asked.get("Filter.2.Name"), asked.get("Filter.2.Value.1"));
                let key = filter.strip_prefix("tag:")?;
                for kept in self.0.values().filter(|kept| kept.has_tag(key, value)) {
                    let _ = write!(
                        items,
                        "<item><key>{key}</key><resourceId>{}</resourceId><resourceType>fleet</resourceType><value>{value}</value></item>",
                        kept.id
                    );
                }
                "tagSet"
            }
            "ec2:DescribeFleets" => {
                let ids: Vec<&str> =
                    asked.indices("FleetId.").iter().map(|at| asked.get(&format!("FleetId.{at}"))).collect();
                for kept in self.0.values().filter(|kept| ids.contains(&kept.id.as_str())) {
                    let target = kept.content.get("TargetCapacitySpecification.TotalTargetCapacity");
                    let _ = write!(
                        items,
                        "<item><fleetId>{}</fleetId><type>instant</type><fleetState>active</fleetState><targetCapacitySpecification>\
                         <totalTargetCapacity>{}</totalTargetCapacity></targetCapacitySpecification>{}</item>",
                        kept.id,
                        target.map_or("1", String::as_str),
                        kept.outcome
                    );
                }
                "fleetSet"
            }
            _ => return None,
        };
        let action = asked.action.trim_start_matches("ec2:");
        Some(super::answers::whole(action, &format!("<{set}>{items}</{set}>")))
    }
}

impl Kept {
    /// Checks whether the fleet itself has this tag.
    fn has_tag(&self, key: &str, value: &str) -> bool {
        let of_fleet = self.content.iter().filter(|(name, kind)| {
            name.starts_with("TagSpecification.") && name.ends_with(".ResourceType") && *kind == "fleet"
        });
        let mut prefixes = of_fleet.filter_map(|(name, _)| name.strip_suffix("ResourceType"));
        prefixes.any(|prefix| {
            let mut keys = self.content.iter().filter(|(name, of)| {
                name.starts_with(prefix) && name.ends_with(".Key") && of.as_str() == key
            });
            keys.any(|(name, _)| {
                let of = format!("{}Value", name.trim_end_matches("Key"));
                self.content.get(&of).is_some_and(|of| of == value)
            })
        })
    }
}

fn created(kept: &Kept) -> String {
    super::answers::whole("CreateFleet", &format!("<fleetId>{}</fleetId>{}", kept.id, kept.outcome))
}

/// Returns the instances and errors of a fleet as XML, for the response of CreateFleet and of DescribeFleets.
fn outcome(wanted: &Wanted, outcomes: &[(Override, Outcome)]) -> String {
    let (mut instances, mut errors) = (String::new(), String::new());
    let lifecycle = if wanted.spot { "spot" } else { "on-demand" };
    for (pool, outcome) in outcomes {
        let place = format!(
            "<launchTemplateAndOverrides><overrides><instanceType>{}</instanceType><subnetId>{}</subnetId></overrides>\
             </launchTemplateAndOverrides><lifecycle>{lifecycle}</lifecycle>",
            pool.instance_type, pool.subnet
        );
        match outcome {
            Outcome::Instances(ids) if ids.is_empty() => {}
            Outcome::Instances(ids) => {
                let ids = format!("<item>{}</item>", ids.join("</item><item>"));
                let _ = write!(
                    instances,
                    "<item>{place}<instanceIds>{ids}</instanceIds><instanceType>{}</instanceType></item>",
                    pool.instance_type
                );
            }
            Outcome::Refused(code, message) => {
                let _ = write!(
                    errors,
                    "<item>{place}<errorCode>{code}</errorCode><errorMessage>{message}</errorMessage></item>"
                );
            }
        }
    }
    format!("<fleetInstanceSet>{instances}</fleetInstanceSet><errorSet>{errors}</errorSet>")
}

/// Returns the ids of the instances in a response of moto.
pub(super) fn instance_ids(xml: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut rest = xml;
    while let Some(at) = rest.find("<item>i-") {
        rest = &rest[at + "<item>".len()..];
        let end = rest.find('<').unwrap_or(rest.len());
        ids.push(rest[..end].to_owned());
    }
    ids
}
