//! Small plots for terminals, made of block characters.

/// Blocks from empty to full.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the lines of a plot with this number of rows and one column for each number. The largest number reaches the top.
pub fn lines(numbers: &[u64], rows: u32) -> Vec<String> {
    let most = u128::from(numbers.iter().copied().max().unwrap_or(0).max(1));
    let eighths = |number: u64| {
        let whole = u128::from(number) * u128::from(rows) * 8;
        // Rounded up, so that every number above zero is visible.
        u32::try_from(whole.div_ceil(most)).unwrap_or(0)
    };
    let row = |row: u32| {
        let cell = |number: &u64| BLOCKS[eighths(*number).saturating_sub(row * 8).min(8) as usize];
        numbers.iter().map(cell).collect::<String>()
    };
    (0..rows).rev().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_reaches_the_top_and_nothing_is_nothing() {
        assert_eq!(lines(&[0, 1, 8, 16], 2), ["   █", " ▁██"]);
        assert_eq!(lines(&[0, 0], 1), ["  "]);
        assert!(lines(&[], 3).iter().all(String::is_empty));
    }
}
