//! The reasons of the conditions of an EC2NodeClass.

use poolwright_terms::reasons;

reasons! {
    /// Why a condition of an EC2NodeClass has its status.
    pub(crate) enum AwsReason;
    Allowed: "AWS allowed a dry run of a launch.", "Nothing.";
    CapacityReservationsUnusable: "AWS refused to list the capacity reservations.", "Do what the message says. Usually you allow `ec2:DescribeCapacityReservations`.";
    Found: "The condition is met: Poolwright found the resources, or the settings are valid.", "Nothing. If the message counts fewer resources than you expect, correct the selectors.";
    ImagesUnusable: "No image matches, AWS refused to look up images, or `spec.amiFamily` is missing.", "Correct `spec.amiSelectorTerms` or `spec.amiFamily`, or add the permission that the message names.";
    InstanceProfileUnusable: "The instance profile or the role is missing, the profile has no role or another one, or AWS refused a call about them.", "Correct `spec.role` or `spec.instanceProfile`, or add the permission that the message names.";
    InterruptionQueueRead: "Poolwright reads the interruption queue.", "Nothing.";
    InterruptionQueueSilent: "Poolwright has not read the interruption queue for at least two minutes. Until it reads the queue again, it learns of interruptions only by asking EC2 once a minute. It still launches nodes.", "Check the network and the permissions, such as with `poolwright check --provider aws`.";
    InterruptionQueueUndeletable: "Poolwright reads the interruption queue, but AWS refuses to delete its messages. SQS delivers them again until it moves them to the dead-letter queue.", "Do what the message says. Usually you allow `sqs:DeleteMessage`.";
    InterruptionQueueUnreadable: "The interruption queue does not exist, or AWS refuses to let Poolwright read it. Until you correct that, Poolwright learns of interruptions only by asking EC2 once a minute. It still launches nodes.", "Correct the name of the queue, or add the permission that the message names.";
    KubeletUnusable: "A setting of the kubelet is invalid, or the image family does not support it.", "Correct the field of `spec.kubelet` that the message names.";
    NoAnswer: "AWS has not answered yet. After a first answer, the condition keeps its status instead.", "Wait: Poolwright asks again. If it takes long, read the error in the message.";
    NotAllowed: "AWS refused a dry run of a launch.", "Do what the message says. Usually you add the permission that it names to Poolwright's policy.";
    NotTried: "Poolwright made no dry run of a launch, because another part of the class is unusable or unknown.", "Check the other conditions of the class.";
    PlacementGroupUnusable: "The placement group is missing, is not available or lacks the partition, or AWS refused to describe it.", "Correct `spec.placementGroup`, or add the permission that the message names.";
    SecurityGroupsUnusable: "No security group matches, or AWS refused to list security groups.", "Correct `spec.securityGroupSelectorTerms`, or add the permission that the message names.";
    SubnetsUnusable: "No subnet matches, or AWS refused to list subnets.", "Correct `spec.subnetSelectorTerms`, or add the permission that the message names.";
    UserDataUnusable: "The image family does not support `spec.userData` or `spec.instanceStorePolicy` as they are.", "Correct the field that the message names.";
}
