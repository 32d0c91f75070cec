//! The expected outcome of each message in `fixtures/aws/events`.

/// The file and its outcome: what happens, `ignored:` and the reason, or `error:` and the start of the message.
pub const OUTCOMES: &[(&str, &str)] = &[
    ("account-a-number.json", "error: the field `account` of a message is not a text"),
    (
        "account-of-letters.json",
        "error: the field `account` of a message is `my-account`, which is not an account of twelve digits",
    ),
    ("action-missing.json", "error: a message has no field `instance-action`"),
    (
        "action-unknown.json",
        "error: the field `instance-action` of a message is `recycle`, which is not terminate, stop or hibernate",
    ),
    ("autoscaling-lifecycle.json", "ignored: its source is aws.autoscaling"),
    ("autoscaling-test.json", "error: a message has no field `source`"),
    ("blanks.json", "error: a message is not a valid JSON object: EOF while parsing a value"),
    ("byte-order-mark.json", "i-0b662ef9931388ba0 SpotInterruption(Terminate) by 2026-08-21T12:02:00Z"),
    ("capacity-block-as-documented.json", "cr-0123456789abcdef0 ends 2026-08-21T12:40:00Z"),
    (
        "capacity-block-bad-end.json",
        "error: the field `end-date` of a message is `[ODCR End Date]`, which is not a time such as Sat, 22 Aug 2026 12:00:00 GMT",
    ),
    (
        "capacity-block-delivered.json",
        "ignored: Poolwright does not use events of the type Capacity Block Reservation Delivered",
    ),
    (
        "capacity-block-two-names.json",
        "error: the field `detail_type` of a message is `Capacity Block Reservation Delivered`, which is not what detail-type says",
    ),
    ("capacity-block.json", "cr-0123456789abcdef0 ends 2026-08-21T12:40:00Z"),
    ("deep-lists.json", "error: a message is not a valid JSON object: recursion limit exceeded"),
    ("deep-objects.json", "error: a message is not a valid JSON object: recursion limit exceeded"),
    ("detail-a-list.json", "error: the field `detail` of a message is not an object"),
    ("detail-a-text.json", "error: the field `detail` of a message is not an object"),
    ("detail-missing.json", "error: a message has no field `detail`"),
    ("duplicate-account.json", "error: a message is not a valid JSON object: the key `account` occurs twice"),
    ("duplicate-in-resources.json", "error: a message is not a valid JSON object: the key `a` occurs twice"),
    (
        "duplicate-instance.json",
        "error: a message is not a valid JSON object: the key `instance-id` occurs twice",
    ),
    ("empty.json", "error: a message is not a valid JSON object: EOF while parsing a value"),
    ("entities-a-text.json", "error: the field `affectedEntities` of a message is not a list of objects"),
    ("entities-none.json", "ignored: it names no instance"),
    ("entities-texts.json", "error: the field `affectedEntities` of a message is not a list of objects"),
    ("entities-with-a-number.json", "error: the field `entityValue` of a message is not a text"),
    (
        "foreign-account-unknown-type.json",
        "error: a message concerns the account `210987654321`, and Poolwright runs in `123456789012`",
    ),
    (
        "foreign-account.json",
        "error: a message concerns the account `210987654321`, and Poolwright runs in `123456789012`",
    ),
    (
        "foreign-region.json",
        "error: a message concerns the region `eu-west-1`, and Poolwright runs in `us-east-1`",
    ),
    ("half-a-surrogate.json", "error: a message is not a valid JSON object: unexpected end of hex escape"),
    ("health-abuse.json", "ignored: Poolwright does not use events of the type AWS Health Abuse Event"),
    (
        "health-bad-start.json",
        "error: the field `startTime` of a message is `Sat, 99 Foo 2026 12:00:00 GMT`, which is not a time such as Sat, 22 Aug 2026 12:00:00 GMT",
    ),
    ("health-closed.json", "ignored: the event is closed"),
    (
        "health-code-of-words.json",
        r"error: the field `eventTypeCode` of a message is `anything else\nlevel=error`, which is not a code such as AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
    ),
    (
        "health-day-of-the-week-wrong.json",
        r#"i-12345678 ScheduledChange { code: "AWS_EC2_DEDICATED_HOST_NETWORK_MAINTENANCE_SCHEDULED" } by 2016-06-05T15:10:09Z"#,
    ),
    (
        "health-delivered-in-the-backup-region.json",
        r#"i-0b662ef9931388ba0 ScheduledChange { code: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED" } by 2026-08-22T12:00:00Z"#,
    ),
    ("health-issue.json", "ignored: its category is issue"),
    (
        "health-many-instances.json",
        r#"i-0000000000000000a ScheduledChange { code: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED" } by 2026-08-22T12:00:00Z; i-0000000000000000b ScheduledChange { code: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED" } by 2026-08-22T12:00:00Z; i-0000000000000000c ScheduledChange { code: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED" } by 2026-08-22T12:00:00Z"#,
    ),
    (
        "health-of-another-account.json",
        "error: a message concerns the account `210987654321`, and Poolwright runs in `123456789012`",
    ),
    (
        "health-of-another-region.json",
        "error: a message concerns the region `us-west-2`, and Poolwright runs in `us-east-1`",
    ),
    ("health-of-rds.json", "ignored: it concerns the service RDS"),
    ("health-of-volumes.json", "ignored: it names no instance"),
    (
        "health-retirement.json",
        r#"i-0b662ef9931388ba0 ScheduledChange { code: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED" } by 2026-08-22T12:00:00Z"#,
    ),
    (
        "health-some-resolved.json",
        r#"i-0000000000000000b ScheduledChange { code: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED" } by 2026-08-22T12:00:00Z"#,
    ),
    (
        "health-without-start.json",
        r#"i-0b662ef9931388ba0 ScheduledChange { code: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED" }"#,
    ),
    ("html.json", "error: a message is not a valid JSON object: expected value"),
    ("id-missing.json", "error: a message has no field `id`"),
    (
        "id-with-a-line-break.json",
        r"error: the field `id` of a message is `1\n2`, which is not an id of at most 128 plain characters",
    ),
    ("instance-a-number.json", "error: the field `instance-id` of a message is not a text"),
    (
        "instance-a-path.json",
        "error: the field `instance-id` of a message is `i-../../../etc/passwd`, which is not the id of an instance such as i-0123456789abcdef0",
    ),
    (
        "instance-in-capitals.json",
        "error: the field `instance-id` of a message is `I-0B662EF9931388BA0`, which is not the id of an instance such as i-0123456789abcdef0",
    ),
    (
        "instance-long.json",
        "error: the field `instance-id` of a message is `i-0000000000000000000000000000000000000000000000000000000000...`, which is not the id of an instance such as i-0123456789abcdef0",
    ),
    ("instance-null.json", "error: a message has no field `instance-id`"),
    (
        "instance-with-a-line-break.json",
        r"error: the field `instance-id` of a message is `i-0b662ef9931388ba0\nlevel=error`, which is not the id of an instance such as i-0123456789abcdef0",
    ),
    ("latin-1.json", "error: a message is not UTF-8 from byte 85 on"),
    ("list.json", "error: a message is not a valid JSON object: it is a JSON value of another type"),
    ("null.json", "error: a message is not a valid JSON object: it is a JSON value of another type"),
    ("number-too-large.json", "error: a message is not a valid JSON object: number out of range"),
    ("rebalance.json", "i-0b662ef9931388ba0 RebalanceRecommendation"),
    ("region-missing.json", "error: a message has no field `region`"),
    (
        "reservation-interruption-bad-time.json",
        "error: the field `instance-termination-time` of a message is `soon`, which is not a time such as 2026-08-21T12:00:00Z",
    ),
    (
        "reservation-interruption-older-name.json",
        "i-0b662ef9931388ba0 ReservationInterruption(Terminate) by 2026-08-21T12:02:30Z",
    ),
    (
        "reservation-interruption-without-time.json",
        "i-0b662ef9931388ba0 ReservationInterruption(Terminate) by 2026-08-21T12:02:00Z",
    ),
    (
        "reservation-interruption.json",
        "i-0b662ef9931388ba0 ReservationInterruption(Terminate) by 2026-08-21T12:02:30Z",
    ),
    ("sns-plain-text.json", "error: a message is not a valid JSON object: expected value"),
    ("sns-subscription.json", "error: a message has no field `source`"),
    ("sns-twice.json", "error: a message is wrapped by SNS twice"),
    ("sns.json", "i-0b662ef9931388ba0 SpotInterruption(Terminate) by 2026-08-21T12:02:00Z"),
    ("source-ec2-in-capitals.json", "ignored: its source is AWS.EC2"),
    ("source-own.json", "ignored: its source is my.app"),
    ("spot-hibernate.json", "i-0b662ef9931388ba0 SpotInterruption(Hibernate) by 2026-08-21T12:00:00Z"),
    ("spot-stop.json", "i-0b662ef9931388ba0 SpotInterruption(Stop) by 2026-08-21T12:02:00Z"),
    ("spot-terminate.json", "i-0b662ef9931388ba0 SpotInterruption(Terminate) by 2026-08-21T12:02:00Z"),
    ("state-pending-without-version.json", "ignored: the instance is pending"),
    ("state-running.json", "ignored: the instance is running"),
    ("state-shutting-down.json", "i-1a2b3c4d State(ShuttingDown)"),
    ("state-stopped.json", "i-1a2b3c4d State(Stopped)"),
    ("state-stopping.json", "i-1a2b3c4d State(Stopping)"),
    ("state-terminated.json", "i-1a2b3c4d State(Terminated)"),
    (
        "state-unknown.json",
        "error: the field `state` of a message is `evaporating`, which is not a state of an instance",
    ),
    ("text.json", "error: a message is not a valid JSON object: it is a JSON value of another type"),
    ("time-a-number.json", "error: the field `time` of a message is not a text"),
    (
        "time-at-the-end-of-time.json",
        "error: the field `time` of a message is `9999-12-30T22:00:00Z`, which is not a time that anything can follow",
    ),
    (
        "time-bad.json",
        "error: the field `time` of a message is `yesterday`, which is not a time such as 2026-08-21T12:00:00Z",
    ),
    ("time-missing.json", "error: a message has no field `time`"),
    (
        "time-with-zone-name.json",
        "error: the field `time` of a message is `2026-08-21T12:00:00-04:00[America/New_York]`, which is not a time such as 2026-08-21T12:00:00Z",
    ),
    (
        "time-without-offset.json",
        "error: the field `time` of a message is `2026-08-21T12:00:00`, which is not a time such as 2026-08-21T12:00:00Z",
    ),
    ("trailing.json", "error: a message is not a valid JSON object: trailing characters"),
    ("truncated.json", "error: a message is not a valid JSON object: EOF while parsing an object"),
    ("type-new.json", "ignored: Poolwright does not use events of the type EC2 Instance Levitation Notice"),
    (
        "type-with-control-characters.json",
        r"ignored: Poolwright does not use events of the type x\u{1b}[2J\nlevel=error msg=forged",
    ),
    ("utf-16.json", "error: a message is not UTF-8 from byte 0 on"),
    (
        "version-1.json",
        "error: the field `version` of a message is `1`, which is not the version 0 of EventBridge's envelope",
    ),
    ("without-account.json", "i-0b662ef9931388ba0 SpotInterruption(Terminate) by 2026-08-21T12:02:00Z"),
    (
        "zero-byte.json",
        r"error: the field `instance-action` of a message is `termi\u{0}nate`, which is not terminate, stop or hibernate",
    ),
];
