//! Small plots for terminals, made of block characters, or of ASCII where the locale has no others.

use crate::print::has_unicode;

/// What a plot is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Cells from empty to full.
    blocks: [char; 9],
    /// The frame at both sides.
    frame: char,
}

impl Marks {
    /// Blocks in eight heights.
    pub const UNICODE: Self =
        Self { blocks: [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'], frame: '│' };
    /// The same, as far as ASCII goes.
    pub const ASCII: Self = Self { blocks: [' ', '.', '.', '-', '-', '=', '=', '#', '#'], frame: '|' };

    /// Returns those that the reader's locale has.
    pub fn of_locale() -> Self {
        if has_unicode() { Self::UNICODE } else { Self::ASCII }
    }
}

/// Returns the lines of a plot with this number of rows and one column for each number, in its frame. The largest number reaches the
/// top.
pub fn lines(numbers: &[u64], rows: u32, Marks { blocks, frame }: Marks) -> Vec<String> {
    let most = u128::from(numbers.iter().copied().max().unwrap_or(0).max(1));
    let eighths = |number: u64| {
        let whole = u128::from(number) * u128::from(rows) * 8;
        // Rounded up, so that every number above zero is visible.
        u32::try_from(whole.div_ceil(most)).unwrap_or(0)
    };
    let row = |row: u32| {
        let cell = |number: &u64| blocks[eighths(*number).saturating_sub(row * 8).min(8) as usize];
        format!("{frame}{}{frame}", numbers.iter().map(cell).collect::<String>())
    };
    (0..rows).rev().map(row).collect()
}

/// Returns a row for each of these curves. All have the scale of the largest number.
pub fn one_scale<const N: usize>(curves: [&[u64]; N], marks: Marks) -> [String; N] {
    let both: Vec<u64> = curves.into_iter().flatten().copied().collect();
    let drawn = lines(&both, 1, marks).concat();
    let mut cells = drawn.chars().skip(1);
    curves.map(|curve| {
        let row: String = cells.by_ref().take(curve.len()).collect();
        format!("{0}{row}{0}", marks.frame)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_reaches_the_top_and_nothing_is_nothing() {
        assert_eq!(lines(&[0, 1, 8, 16], 2, Marks::UNICODE), ["│   █│", "│ ▁██│"]);
        assert_eq!(lines(&[0, 1, 8, 16], 2, Marks::ASCII), ["|   #|", "| .##|"]);
        assert_eq!(lines(&[0, 0], 1, Marks::UNICODE), ["│  │"]);
        assert_eq!(lines(&[], 3, Marks::ASCII), ["||"; 3]);
        assert_eq!(one_scale([&[0, 1], &[2]], Marks::ASCII), ["| -|", "|#|"]);
    }
}
