//! The tags of AWS resources that Poolwright creates.
//!
//! Every such resource has the tag [`CLUSTER`] with the name of the cluster. Poolwright terminates and deletes only resources with
//! this tag. The one exception is an instance whose tags somebody removed, and whose id a deleted NodeClaim records. The policy in
//! `deploy` does not allow that exception, so there a person must restore the tags.

use std::collections::BTreeMap;

use poolwright_terms::keys::{NODECLAIM_LABEL, NODEPOOL_LABEL};
use poolwright_terms::labels;

/// The name of the cluster, on all resources.
pub(crate) const CLUSTER: &str = "poolwright.dev/cluster";
/// The id of the cluster, on instances: the UID of its namespace `kube-system`. Two clusters may have the same name.
pub(crate) const CLUSTER_ID: &str = "poolwright.dev/cluster-id";
/// The UID of the NodeClaim, which is the key of the launch.
pub(crate) const CLAIM_UID: &str = "poolwright.dev/nodeclaim-uid";
/// The name of the NodeClaim.
pub(crate) const CLAIM: &str = NODECLAIM_LABEL;
/// The name of the EC2NodeClass.
pub(crate) const CLASS: &str = "poolwright.dev/ec2nodeclass";
/// The name of the NodePool.
pub(crate) const POOL: &str = NODEPOOL_LABEL;
/// The token of an order for several claims. An instance of such an order gets the tags of its claim only after the launch.
pub(crate) const ORDER: &str = "poolwright.dev/order";
/// The prefix of the tags with the keys of an order for several claims. A number follows, because one tag cannot hold all keys.
pub(crate) const ORDER_KEYS: &str = "poolwright.dev/order-keys-";
/// The token of the order, on fleets.
pub(crate) const TOKEN: &str = "poolwright.dev/token";
/// The capacity type `reserved`, which no field of EC2 shows. Other instances do not have this tag.
pub(crate) const CAPACITY_TYPE: &str = labels::CAPACITY_TYPE;
/// The name in the AWS console.
pub(crate) const NAME: &str = "Name";

/// Returns the tag by which the AWS cloud controller manager, the EBS CSI driver and the load balancer controller recognise
/// resources of the cluster.
pub(crate) fn of_kubernetes(cluster: &str) -> String {
    format!("kubernetes.io/cluster/{cluster}")
}

/// Tags by key.
pub(crate) type Tags = BTreeMap<String, String>;

/// Reads the tags of a resource.
pub(crate) fn read(tags: &[aws_sdk_ec2::types::Tag]) -> Tags {
    tags.iter()
        .filter_map(|tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned())))
        .collect()
}

/// Converts tags to the type of the SDK, sorted by key.
pub(crate) fn write(tags: &Tags) -> Vec<aws_sdk_ec2::types::Tag> {
    let tag =
        |(key, value): (&String, &String)| aws_sdk_ec2::types::Tag::builder().key(key).value(value).build();
    tags.iter().map(tag).collect()
}
