//! The tags by which we know what is ours.
//!
//! Whatever has the tag [`CLUSTER`] with our cluster's name was made by Poolwright for this cluster, and nothing else is ever
//! terminated or deleted.

use std::collections::BTreeMap;

use poolwright_terms::keys::{NODECLAIM_LABEL, NODEPOOL_LABEL};
use poolwright_terms::labels;

/// The cluster that an instance or a launch template is for.
pub(crate) const CLUSTER: &str = "poolwright.dev/cluster";
/// UID of the NodeClaim: the key of the launch.
pub(crate) const CLAIM_UID: &str = "poolwright.dev/nodeclaim-uid";
/// Name of the NodeClaim.
pub(crate) const CLAIM: &str = NODECLAIM_LABEL;
/// Name of the EC2NodeClass.
pub(crate) const CLASS: &str = "poolwright.dev/ec2nodeclass";
/// Name of the NodePool.
pub(crate) const POOL: &str = NODEPOOL_LABEL;
/// The order that it was launched with, where that was for several claims at once: an instance of such an order gets the tags of its
/// claim after its first moment.
pub(crate) const ORDER: &str = "poolwright.dev/order";
/// The keys that such an order was for, in as many tags as they take: this, and a number.
pub(crate) const ORDER_KEYS: &str = "poolwright.dev/order-keys-";
/// On fleets: the token of the order.
pub(crate) const TOKEN: &str = "poolwright.dev/token";
/// How it was bought, where EC2's own fields do not say: `reserved`.
pub(crate) const CAPACITY_TYPE: &str = labels::CAPACITY_TYPE;
/// What the console shows.
pub(crate) const NAME: &str = "Name";

/// What other parts of a cluster on AWS look for: the cloud controller manager, the CSI driver, load balancers.
pub(crate) fn of_kubernetes(cluster: &str) -> String {
    format!("kubernetes.io/cluster/{cluster}")
}

/// Tags, by key.
pub(crate) type Tags = BTreeMap<String, String>;

/// The tags of a resource.
pub(crate) fn read(tags: &[aws_sdk_ec2::types::Tag]) -> Tags {
    tags.iter()
        .filter_map(|tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned())))
        .collect()
}

/// As the SDK wants them, in order.
pub(crate) fn write(tags: &Tags) -> Vec<aws_sdk_ec2::types::Tag> {
    let tag =
        |(key, value): (&String, &String)| aws_sdk_ec2::types::Tag::builder().key(key).value(value).build();
    tags.iter().map(tag).collect()
}
