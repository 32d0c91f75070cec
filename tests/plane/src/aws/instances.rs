//! Instances that the front lists itself, for measurements of how fast instances come and go. In every listing moto writes each
//! instance anew, terminated ones too. That takes at least two milliseconds of a core for each, and moto does nothing else
//! meanwhile.
//!
//! The content is moto's. The front asks once about each launched instance, and again about each instance that a call names which
//! may have changed it.
//!
//! Shape: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html>.

use std::collections::{BTreeMap, BTreeSet};

use super::account::texts;
use super::answers::whole;
use super::listing::items;
use super::request::Request;

/// The largest number of instances in one query.
pub(super) const NAMED: usize = 100;

/// All instances launched since the front keeps its own listing.
#[derive(Debug, Default)]
pub(super) struct Instances {
    /// The instances by id, each as a reservation of its own in moto's XML.
    known: BTreeMap<String, String>,
    /// The instances to ask moto about.
    changed: BTreeSet<String>,
}

impl Instances {
    /// Marks these as changed.
    pub fn change(&mut self, ids: impl IntoIterator<Item = String>) {
        self.changed.extend(ids);
    }

    /// Marks every instance that a call names as changed, unless the call only describes.
    pub fn told(&mut self, asked: &Request) {
        if !asked.action.starts_with("ec2:Describe") {
            self.change(asked.parameters.values().filter(|value| value.starts_with("i-")).cloned());
        }
    }

    /// Takes the instances to ask moto about. The caller must pass moto's response to `learn`.
    pub fn changed(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.changed)
    }

    /// Stores a response of moto, with each instance as a reservation of its own.
    pub fn learn(&mut self, listing: &str) {
        for reservation in items(listing, "reservationSet") {
            let (open, close) = ("<instancesSet>", "</instancesSet>");
            let (Some(begin), Some(end)) = (reservation.find(open), reservation.rfind(close)) else {
                continue;
            };
            let (before, after) = (&reservation[..begin + open.len()], &reservation[end..]);
            for instance in items(reservation, "instancesSet") {
                let Some(id) = texts(instance, "instanceId").into_iter().next() else { continue };
                self.known.insert(id, format!("<item>{before}<item>{instance}</item>{after}</item>"));
            }
        }
    }

    /// Answers a query for instances. Returns `None` if the query uses filters other than tags.
    pub fn answer(&self, asked: &Request) -> Option<String> {
        let ids: Vec<&str> =
            asked.indices("InstanceId.").iter().map(|at| asked.get(&format!("InstanceId.{at}"))).collect();
        let mut wanted: Vec<(String, Vec<&str>)> = Vec::new();
        for at in asked.indices("Filter.") {
            let (name, prefix) = (asked.get(&format!("Filter.{at}.Name")), format!("Filter.{at}.Value."));
            let key = name.strip_prefix("tag:")?;
            let values =
                asked.indices(&prefix).iter().map(|at| asked.get(&format!("{prefix}{at}"))).collect();
            wanted.push((format!("<key>{key}</key>"), values));
        }
        let is_wanted = |id: &str, reservation: &str| {
            let has_tags = wanted.iter().all(|(key, values)| {
                items(reservation, "tagSet").iter().any(|tag| {
                    tag.contains(key)
                        && texts(tag, "value").iter().any(|value| values.contains(&value.as_str()))
                })
            });
            has_tags && (ids.is_empty() || ids.contains(&id))
        };
        let listed: Vec<&str> =
            self.known.iter().filter(|(id, one)| is_wanted(id, one)).map(|(_, one)| one.as_str()).collect();
        Some(whole("DescribeInstances", &format!("<reservationSet>{}</reservationSet>", listed.concat())))
    }
}

/// Returns the body of the query for these instances.
pub(super) fn question(ids: &[String]) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("Action", "DescribeInstances").append_pair("Version", "2016-11-15");
    for (at, id) in ids.iter().enumerate() {
        form.append_pair(&format!("InstanceId.{}", at + 1), id);
    }
    form.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "<reservationSet><item><reservationId>r-1</reservationId><groupSet><item><groupId>g</groupId></item></groupSet>\
                       <instancesSet><item><instanceId>i-1</instanceId><tagSet><item><key>of</key><value>a</value></item></tagSet></item>\
                       <item><instanceId>i-2</instanceId><tagSet><item><key>of</key><value>b</value></item></tagSet></item>\
                       </instancesSet><ownerId>1</ownerId></item></reservationSet>";

    fn asked(parameters: &[(&str, &str)]) -> Request {
        let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Request {
            action: "ec2:DescribeInstances".to_owned(),
            parameters: parameters.collect(),
            json: serde_json::Value::Null,
        }
    }

    #[test]
    fn an_instance_is_listed_by_its_tags_and_its_id_with_all_that_was_said_of_it() {
        let mut instances = Instances::default();
        instances.learn(TWO);
        let listed = |parameters: &[(&str, &str)]| {
            texts(&instances.answer(&asked(parameters)).expect("it is understood"), "instanceId")
        };
        assert_eq!(listed(&[]), ["i-1", "i-2"]);
        assert_eq!(listed(&[("InstanceId.1", "i-2")]), ["i-2"]);
        let by_tag = |value: &str| listed(&[("Filter.1.Name", "tag:of"), ("Filter.1.Value.1", value)]);
        assert_eq!(by_tag("a"), ["i-1"]);
        assert!(by_tag("c").is_empty());
        let whole = instances.answer(&asked(&[("InstanceId.1", "i-2")])).expect("it is understood");
        assert_eq!(texts(&whole, "groupId"), ["g"]);
        assert_eq!(texts(&whole, "ownerId"), ["1"]);
        let other = asked(&[("Filter.1.Name", "capacity-reservation-id"), ("Filter.1.Value.1", "cr-1")]);
        assert!(instances.answer(&other).is_none(), "moto answers that");
    }

    #[test]
    fn whatever_a_call_names_is_asked_about_once_more() {
        let mut instances = Instances::default();
        let mut call = asked(&[("InstanceId.1", "i-2"), ("Filter.1.Value.1", "b")]);
        instances.told(&call);
        assert!(instances.changed().is_empty(), "a question changes nothing");
        call.action = "ec2:TerminateInstances".to_owned();
        instances.told(&call);
        assert_eq!(instances.changed().into_iter().collect::<Vec<_>>(), ["i-2"]);
        assert!(instances.changed().is_empty());
    }
}
