//! The seeds of randomized tests.

use std::fs::File;
use std::io::Read;

/// Returns the seed of a test: `POOLWRIGHT_SEED`, or a random one. Prints how to repeat the test with it.
pub fn seed(repeats: &str) -> u64 {
    let given = std::env::var("POOLWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let mut bytes = [0; 4];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut bytes))
            .expect("/dev/urandom");
        u64::from(u32::from_le_bytes(bytes))
    });
    println!("POOLWRIGHT_SEED={seed} repeats {repeats}");
    seed
}
