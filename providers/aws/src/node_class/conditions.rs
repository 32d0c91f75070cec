//! Types of the conditions of an EC2NodeClass, beside `Ready`, which sums them up.

/// At least one subnet was found.
pub const SUBNETS_READY: &str = "SubnetsReady";
/// At least one security group was found.
pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
/// At least one image was found.
pub const IMAGES_READY: &str = "ImagesReady";
/// Nodes have an instance profile with a role.
pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
/// The placement group is there; absent where none is asked for.
pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
/// What was asked for as capacity reservations was looked up; absent where none are.
pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
/// The settings of kubelet can be planned with; absent where there are none.
pub const KUBELET_READY: &str = "KubeletReady";
/// A launch as a dry run was allowed; else which permission of IAM is missing.
pub const VALIDATED: &str = "Validated";

/// All of them.
pub const ALL: [&str; 8] = [
    SUBNETS_READY,
    SECURITY_GROUPS_READY,
    IMAGES_READY,
    INSTANCE_PROFILE_READY,
    PLACEMENT_GROUP_READY,
    CAPACITY_RESERVATIONS_READY,
    KUBELET_READY,
    VALIDATED,
];
