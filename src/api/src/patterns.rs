//! What the patterns of texts in the CRDs allow, in words. An API server shows the pattern itself, which few people read.

use crate::duration::{PATTERN, PATTERN_OR_AUTO, PATTERN_OR_NEVER};
use crate::units;

/// The patterns of NodePool and NodeClaim, each with what it allows. A node class adds its own. A test looks for each pattern of the
/// CRDs here.
pub const PATTERNS: [(&str, &str); 11] = [
    (PATTERN, "a duration; write whole numbers with h, m, s or ms, such as `90s`, `5m` or `1h30m`"),
    (PATTERN_OR_NEVER, "a duration or `Never`; write such as `90s`, `5m` or `1h30m`, or this word"),
    (
        PATTERN_OR_AUTO,
        "a duration, `Never` or `auto`; write such as `90s`, `5m` or `1h30m`, or one of these words",
    ),
    (units::PATTERN, "a number of units or `auto`; write such as 2, or this word"),
    (r"^([0-9]{1,9}|[0-9]{1,2}%|100%)$", "a number or a percentage; write 3 or 10%"),
    (r"^([1-9][0-9]?|100)%$", "a percentage from 1% to 100%; write such as 40%"),
    (
        r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        "the key of a label; write it as `name` or `domain/name`, with at most 63 letters, digits, `-`, `_` and `.` in the name, and a \
         letter or digit at both ends",
    ),
    (
        r"^([a-zA-Z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        "the key of a taint; write it as `name` or `domain/name`, with at most 63 letters, digits, `-`, `_` and `.` in the name, and a \
         letter or digit at both ends",
    ),
    (
        r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        "the value of a label or taint; write letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
    ),
    (r"^[^/]+/[^/]+$", "a pod; write it as `namespace/name`"),
    (r"^[0-9]+(\.[0-9]+)?$", "a price; write a plain decimal number, such as `1.25`"),
];
