//! What the patterns of an EC2NodeClass allow, in words.

/// The patterns that no other CRD has.
pub const PATTERNS: [(&str, &str); 14] = [
    (r"^subnet-[0-9a-z]+$", "the id of a subnet; write such as `subnet-0123456789abcdef0`"),
    (r"^sg-[0-9a-z]+$", "the id of a security group; write such as `sg-0123456789abcdef0`"),
    (r"^ami-[0-9a-z]+$", "the id of an image; write such as `ami-0123456789abcdef0`"),
    (r"^pg-[0-9a-z]+$", "the id of a placement group; write such as `pg-0123456789abcdef0`"),
    (r"^cr-[0-9a-z]+$", "the id of a capacity reservation; write such as `cr-0123456789abcdef0`"),
    (r"^snap-[0-9a-z]+$", "the id of a snapshot; write such as `snap-0123456789abcdef0`"),
    (r"^[0-9]{12}$", "the id of an account; write its twelve digits"),
    (
        r"^([0-9]{12}|self|amazon|aws-marketplace)$",
        "the owner of an image; write the twelve digits of an account, `self`, `amazon` or `aws-marketplace`",
    ),
    (
        r"^[A-Za-z0-9+=,.@_-]+$",
        "the name of an IAM role or instance profile; write letters, digits and the characters `+=,.@_-`, and no path or ARN",
    ),
    (r"^[a-z0-9-]+([.][a-z0-9-]+)?$", "an instance type or a family; write such as `t3.large` or `t3`"),
    (r"^[A-Za-z0-9/_-]+$", "the name of a device; write such as `/dev/xvda`"),
    (
        r"^[1-9][0-9]{0,4}(Gi|G|Ti|T)$",
        "the size of a disk; write a whole number with a unit, such as `100Gi`",
    ),
    (
        r"^[0-9]+([.][0-9]+)?(%|m|k|Ki|M|Mi|G|Gi|T|Ti)?$",
        "a threshold of the kubelet; write a quantity or a percentage, such as `100Mi` or `5%`",
    ),
    (r"^[0-9A-Fa-f:.]+$", "an IP address; write such as `10.100.0.10`"),
];
