//! Any bytes: the problem is rejected, or its plan satisfies the invariants.

#![no_main]

#[path = "../../tests/common/exercise.rs"]
mod exercise;
#[path = "../../tests/common/extreme.rs"]
mod extreme;
#[path = "../../tests/common/generate.rs"]
mod generate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::exercise(data, &generate::Mix::LANDED, 30_000));
