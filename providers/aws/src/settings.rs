//! The settings of the provider, and what they say about whose an instance is.

use poolwright_provider_aws_model::InstanceId;
use poolwright_provider_contract::ProviderError;

use crate::clients::Access;
use crate::instances::Listing;
use crate::tags::{self, Tags};

/// The configuration of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Access to AWS.
    pub access: Access,
    /// The name of the cluster. All resources carry it as a tag, so it must not change while there are nodes.
    pub cluster: String,
    /// The id of the cluster: the UID of its namespace `kube-system`. `None` if nobody checks that the name is unique.
    pub cluster_id: Option<String>,
    /// The minor version of Kubernetes, which selects the AMIs: `1.36`.
    pub kubernetes: String,
    /// How nodes reach the API server; `None` if the user data of the node class contains it.
    pub join: Option<Join>,
    /// The name or URL of the SQS queue with the events of instances. With `None` the provider only polls EC2 once a minute.
    pub queue: Option<String>,
    /// Whether the AWS cloud controller manager runs in the cluster. Kubelets started by kubeadm then get the flag
    /// `--cloud-provider=external`.
    pub cloud_controller: bool,
}

impl Settings {
    /// Returns the tag with the id of the cluster.
    pub(crate) fn cluster_tag(&self) -> Option<(String, String)> {
        Some((tags::CLUSTER_ID.to_owned(), self.cluster_id.clone()?))
    }

    /// Checks that no tag of this instance says that it belongs to another cluster or to another key.
    pub(crate) fn check_tags(&self, id: &InstanceId, found: &Tags, key: &str) -> Result<(), ProviderError> {
        let differs = |(tag, own): &(&str, &str)| found.get(*tag).is_some_and(|value| value != own);
        let Some((tag, own)) = self.own_tags(key).find(differs) else { return Ok(()) };
        let value = &found[tag];
        Err(ProviderError::Invalid(format!(
            "the tag {tag} of instance {id} is `{value}`, and was `{own}` at its launch"
        )))
    }

    /// Returns the tags by which the provider finds the instance with this key.
    pub(crate) fn own_tags<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let cluster_id = self.cluster_id.as_deref().map(|id| (tags::CLUSTER_ID, id));
        [(tags::CLUSTER, self.cluster.as_str()), (tags::CLAIM_UID, key)].into_iter().chain(cluster_id)
    }

    /// Checks that all instances are of this cluster. Another cluster of the same name would terminate them as its own.
    pub(crate) fn check_cluster(&self, listed: &Listing) -> Result<(), ProviderError> {
        let Some(own) = &self.cluster_id else { return Ok(()) };
        let Some((id, instance)) = listed.clusters.iter().find(|(id, _)| *id != own) else { return Ok(()) };
        Err(ProviderError::Invalid(format!(
            "instance {instance} is of another cluster that is named `{}`, too: its {} is {id}, and that of this cluster is {own}. Poolwright \
             launches and removes nothing on AWS until one of the two controllers has another --aws-cluster",
            self.cluster,
            tags::CLUSTER_ID
        )))
    }
}

/// How nodes reach the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The address of the API server, as nodes reach it: `https://host`.
    pub endpoint: String,
    /// The CA certificates of the API server, as base64-encoded PEM.
    pub ca: String,
    /// The address range of Services: `10.100.0.0/16`.
    pub service_cidr: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use aws_sdk_ec2::types::{Instance, InstanceState, InstanceStateName, Placement};
    use poolwright_provider_contract::LaunchRequest;
    use poolwright_terms::{CapacityType, NodeClassRef};

    use super::*;
    use crate::launch::order;

    const ID: &str = "i-0123456789abcdef0";

    fn settings(cluster_id: Option<&str>) -> Settings {
        Settings {
            access: Access::default(),
            cluster: "prod".to_owned(),
            cluster_id: cluster_id.map(str::to_owned),
            kubernetes: "1.36".to_owned(),
            join: None,
            queue: None,
            cloud_controller: false,
        }
    }

    fn request(key: &str) -> LaunchRequest {
        LaunchRequest {
            key: key.to_owned(),
            claim: key.to_owned(),
            node_class: NodeClassRef { group: String::new(), kind: String::new(), name: "gpu".to_owned() },
            offerings: Vec::new(),
            together: 0,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            batch: None,
        }
    }

    fn listing(tags: &Tags) -> Listing {
        let instance = Instance::builder()
            .instance_id(ID)
            .instance_type("g5.xlarge".into())
            .placement(Placement::builder().availability_zone("us-east-1a").build())
            .state(InstanceState::builder().name(InstanceStateName::Running).build())
            .set_tags(Some(tags::write(tags)))
            .build();
        let mut listing = Listing::default();
        listing.add(&instance);
        listing
    }

    #[test]
    fn an_instance_that_is_launched_alone_or_in_a_batch_is_refused_by_another_cluster_of_the_same_name() {
        let (own, other) = (settings(Some("own")), settings(Some("other")));
        let of_class = Tags::from([(tags::CLUSTER_ID.to_owned(), "of the class".to_owned())]);
        let (one, two) = (request("a"), request("b"));
        let alone = order::tags_of_one(&own, &of_class, &one, CapacityType::Spot);
        let batch = order::tags_of_batch(&own, &of_class, "token", &[&one, &two], CapacityType::Spot);
        for tags in [alone, batch] {
            assert_eq!(tags.get(tags::CLUSTER_ID).map(String::as_str), Some("own"), "{tags:?}");
            let listed = listing(&tags);
            assert_eq!(listed.found.len(), 1, "{tags:?}");
            assert_eq!(own.check_cluster(&listed), Ok(()));
            let refused = other.check_cluster(&listed);
            assert!(matches!(&refused, Err(ProviderError::Invalid(why)) if why.contains(ID)), "{refused:?}");
        }
    }

    #[test]
    fn a_cluster_without_an_id_writes_no_tag_for_it() {
        let tags = order::tags_of_one(&settings(None), &Tags::new(), &request("a"), CapacityType::Spot);
        assert!(!tags.contains_key(tags::CLUSTER_ID), "{tags:?}");
        assert_eq!(tags[tags::CLUSTER], "prod");
    }

    #[test]
    fn an_instance_may_have_lost_its_tags_but_may_not_have_those_of_another_claim_or_cluster() {
        let settings = settings(Some("own"));
        let id: InstanceId = ID.parse().expect("an id");
        let check = |found: &[(&str, &str)]| {
            let found: Tags =
                found.iter().map(|(tag, value)| ((*tag).to_owned(), (*value).to_owned())).collect();
            settings.check_tags(&id, &found, "key")
        };
        let own = [(tags::CLUSTER, "prod"), (tags::CLUSTER_ID, "own"), (tags::CLAIM_UID, "key")];
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&own), Ok(()));
        for (tag, value) in own {
            assert_eq!(check(&[(tag, value), ("Name", "x")]), Ok(()));
            let Err(ProviderError::Invalid(why)) = check(&[(tag, "foreign")]) else { panic!("{tag}") };
            assert!([tag, "`foreign`", value, ID].into_iter().all(|part| why.contains(part)), "{why}");
        }
    }

    #[test]
    fn instances_of_another_cluster_of_the_same_name_are_refused_with_both_ids() {
        let settings = settings(Some("own"));
        let id: InstanceId = ID.parse().expect("an id");
        let with = |cluster: &str| Listing {
            clusters: [(cluster.to_owned(), id.clone())].into(),
            ..Listing::default()
        };
        assert_eq!(settings.check_cluster(&with("own")), Ok(()));
        assert_eq!(
            settings.check_cluster(&Listing::default()),
            Ok(()),
            "instances of earlier versions have no id"
        );
        let Err(ProviderError::Invalid(why)) = settings.check_cluster(&with("other")) else {
            panic!("it is refused")
        };
        for part in ["i-0123456789abcdef0", "`prod`", "is other", "is own", "another --aws-cluster"] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }
}
