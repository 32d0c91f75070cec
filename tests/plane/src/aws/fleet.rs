//! CreateFleet as EC2 answers it: pool by pool, with client tokens, and with what could not be had inside the answer.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::request::Request;

/// One pool of capacity that a fleet may take from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Override {
    /// `LaunchTemplateConfigs.1.`
    config: usize,
    /// `Overrides.2.`
    index: usize,
    pub instance_type: String,
    pub subnet: String,
    priority: f64,
}

/// What a fleet asks for.
pub(super) struct Wanted {
    pub token: String,
    pub spot: bool,
    pub count: usize,
    /// Best first.
    pub overrides: Vec<Override>,
    /// All that the token stands for.
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
        // Stable: without priorities the order of the request stays.
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

/// The body of a request for `count` instances of one pool alone.
pub(super) fn just(request: &Request, pool: &Override, count: usize) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (key, value) in &request.parameters {
        let Some(rest) = key.strip_prefix("LaunchTemplateConfigs.") else {
            match key.as_str() {
                "TargetCapacitySpecification.TotalTargetCapacity" => {
                    form.append_pair(key, &count.to_string());
                }
                // Moto knows no capacity blocks, and would launch nothing; and what is spot is shown as such here.
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

/// What one pool had to say.
pub(super) enum Outcome {
    /// These instances.
    Instances(Vec<String>),
    /// An error with its message.
    Refused(String, String),
}

/// Fleets that were asked for with a token, by that.
#[derive(Default)]
pub(super) struct Fleets(BTreeMap<String, Kept>);

/// A fleet that has answered.
struct Kept {
    id: String,
    /// All that the token stands for.
    content: BTreeMap<String, String>,
    /// What came of it, as EC2 writes it.
    outcome: String,
}

impl Fleets {
    /// What a fleet is answered with whose token was used; `Err` when that was for something else.
    pub fn answered(&self, wanted: &Wanted) -> Option<Result<String, ()>> {
        let kept = self.0.get(&wanted.token).filter(|_| !wanted.token.is_empty())?;
        Some(if kept.content == wanted.content { Ok(created(kept)) } else { Err(()) })
    }

    /// The answer of a fleet, which is kept with its token.
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

    /// What each asked for.
    pub fn contents(&self) -> Vec<BTreeMap<String, String>> {
        self.0.values().map(|kept| kept.content.clone()).collect()
    }

    /// The answer to a question about fleets: by their tags, or by their ids.
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
    /// Whether the fleet itself has this tag.
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

/// What came of a fleet, as EC2 writes it in its answer and in its description.
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

/// Ids of the instances in an answer of moto.
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
