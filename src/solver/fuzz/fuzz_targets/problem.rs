//! Any bytes: a problem that is refused, or one whose plan holds what it promises.

#![no_main]

#[path = "../../tests/common/exercise.rs"]
mod exercise;
#[path = "../../tests/common/extreme.rs"]
mod extreme;
#[path = "../../tests/common/generate.rs"]
mod generate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::exercise(data, &generate::Mix::LANDED, 30_000));
