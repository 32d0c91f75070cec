//! The condition types of an EC2NodeClass. `Ready`, which summarises them, is not in this list.

/// At least one subnet matches.
pub const SUBNETS_READY: &str = "SubnetsReady";
/// At least one security group matches.
pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
/// At least one image matches.
pub const IMAGES_READY: &str = "ImagesReady";
/// The instance profile exists and has a role.
pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
/// The placement group exists. The condition is absent if the class names none.
pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
/// The capacity reservations were looked up. The condition is absent if the class selects none.
pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
/// The kubelet settings are valid. The condition is absent if the class has none.
pub const KUBELET_READY: &str = "KubeletReady";
/// The image family supports the user data and the policy for local disks. The condition is absent if the class has neither.
pub const USER_DATA_READY: &str = "UserDataReady";
/// A dry run of a launch succeeded. Otherwise the message names the missing IAM permission.
pub const VALIDATED: &str = "Validated";

/// All condition types.
pub const ALL: [&str; 9] = [
    SUBNETS_READY,
    SECURITY_GROUPS_READY,
    IMAGES_READY,
    INSTANCE_PROFILE_READY,
    PLACEMENT_GROUP_READY,
    CAPACITY_RESERVATIONS_READY,
    KUBELET_READY,
    USER_DATA_READY,
    VALIDATED,
];
