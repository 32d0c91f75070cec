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
                // Moto knows no capacity blocks, and would launch nothing.
                "TargetCapacitySpecification.DefaultTargetCapacityType" if value == "capacity-block" => {
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

/// The answer of a fleet.
pub(super) fn answer(wanted: &Wanted, outcomes: &[(Override, Outcome)]) -> String {
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
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<CreateFleetResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>stand-in</requestId><fleetId>fleet-00000000-0000-0000-0000-000000000000</fleetId>\
         <fleetInstanceSet>{instances}</fleetInstanceSet><errorSet>{errors}</errorSet></CreateFleetResponse>"
    )
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
