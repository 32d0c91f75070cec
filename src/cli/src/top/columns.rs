//! Lays out rows under a header in aligned columns of limited width. Cut text ends in `…`.

use poolwright_terms::one_line;

pub(super) use crate::print::text_width as width;
use crate::print::wrap;

/// The gap between columns.
const GAP: usize = 2;
/// The width of the last column, which holds sentences, below which another column is left out.
const SENTENCE: usize = 24;
/// The least width of the first column.
const NAME: usize = 8;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The header.
    pub title: &'static str,
    /// Whether the column is aligned to the right, as numbers are.
    pub right: bool,
    /// The rank in which columns are left out, the highest first. Columns with rank 0 always stay.
    pub rank: u8,
}

/// A laid-out table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// The line above the rows.
    pub header: String,
    /// The rows.
    pub rows: Vec<String>,
}

/// Cuts a text to a width in cells.
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let (mut cut, mut used) = (String::new(), 0);
    for letter in text.chars() {
        let wide = width(letter.encode_utf8(&mut [0; 4]));
        if used + wide + 1 > most {
            break;
        }
        used += wide;
        cut.push(letter);
    }
    if most > 0 {
        cut.push('…');
    }
    cut
}

/// Escapes control characters, which could move the cursor or change the colours of the terminal. The texts come from others.
pub fn plain(text: &str) -> String {
    one_line(text).into_owned()
}

/// Lays rows out in at most `most` cells; without a limit, as wide as they are.
pub fn lay_out(columns: &[Column], rows: &[Vec<String>], most: Option<usize>) -> Grid {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let natural = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| width(cell)).chain([width(columns[at].title)]).max().unwrap_or(0)
    };
    let mut widths: Vec<(usize, usize)> = (0..columns.len()).map(|at| (at, natural(at))).collect();
    if let Some(most) = most {
        fit(columns, &mut widths, most);
    }
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells = widths.iter().map(|(at, wide)| pad(&cut(&cell(*at), *wide), *wide, columns[*at].right));
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        cut(line.trim_end(), most.unwrap_or(usize::MAX))
    };
    Grid {
        header: line(&|at| columns[at].title.to_owned()),
        rows: rows.iter().map(|row| line(&|at| row.get(at).cloned().unwrap_or_default())).collect(),
    }
}

/// Wraps the texts of the last column to rows of `most` cells. The rest of a text goes to rows of its own.
pub fn wrapped(columns: &[Column], rows: &[Vec<String>], most: usize) -> Vec<Vec<String>> {
    let natural = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| width(&plain(cell)));
        cells.chain([width(columns[at].title)]).max().unwrap_or(0)
    };
    let last = columns.len().saturating_sub(1);
    let before: usize = (0..last).map(|at| natural(at) + GAP).sum();
    let mut lines = Vec::new();
    for row in rows {
        let text =
            row.get(last).map(|text| wrap(&plain(text), most.saturating_sub(before))).unwrap_or_default();
        for (at, line) in text.lines().enumerate() {
            let mut cells = if at == 0 { row[..last].to_vec() } else { vec![String::new(); last] };
            cells.push(line.to_owned());
            lines.push(cells);
        }
        if text.is_empty() {
            lines.push(row.clone());
        }
    }
    lines
}

/// Leaves columns out until the rest fits. Then narrows the last column, and finally the first.
fn fit(columns: &[Column], widths: &mut Vec<(usize, usize)>, most: usize) {
    let before_last =
        |widths: &[(usize, usize)]| widths.iter().rev().skip(1).map(|(_, wide)| wide + GAP).sum::<usize>();
    loop {
        let last = widths.last().map_or(0, |(_, wide)| *wide);
        if before_last(widths) + last.min(SENTENCE) <= most {
            break;
        }
        let goes = (0..widths.len()).max_by_key(|at| columns[widths[*at].0].rank);
        match goes.filter(|at| columns[widths[*at].0].rank > 0) {
            Some(at) => widths.remove(at),
            None => break,
        };
    }
    let taken = before_last(widths);
    let Some((_, last)) = widths.last_mut() else { return };
    *last = (*last).min(most.saturating_sub(taken)).max((*last).min(SENTENCE / 3));
    let too_much = (taken + *last).saturating_sub(most);
    if widths.len() > 1 {
        let first = &mut widths[0].1;
        *first = first.saturating_sub(too_much).max((*first).min(NAME));
    }
}

fn pad(text: &str, wide: usize, right: bool) -> String {
    let space = " ".repeat(wide.saturating_sub(width(text)));
    if right { format!("{space}{text}") } else { format!("{text}{space}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column { title: "NAME", right: false, rank: 0 },
        Column { title: "ZONE", right: false, rank: 2 },
        Column { title: "N", right: true, rank: 1 },
        Column { title: "DOING", right: false, rank: 0 },
    ];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row(["gpu-a", "us-east-1a", "7", "it runs 2 pods"]),
            row(["計算-b", "b", "12", "an instance is being ordered, and then some more"]),
        ]
    }

    #[test]
    fn columns_are_aligned_wide_letters_included() {
        let grid = lay_out(&COLUMNS, &rows(), None);
        assert_eq!(grid.header, "NAME    ZONE         N  DOING");
        assert_eq!(
            grid.rows,
            [
                "gpu-a   us-east-1a   7  it runs 2 pods",
                "計算-b  b           12  an instance is being ordered, and then some more"
            ]
        );
    }

    #[test]
    fn a_narrow_screen_drops_columns_and_cuts_sentences() {
        let narrow = lay_out(&COLUMNS, &rows(), Some(50));
        assert_eq!(narrow.header, "NAME    ZONE         N  DOING");
        assert_eq!(narrow.rows[1], "計算-b  b           12  an instance is being orde…");
        let narrower = lay_out(&COLUMNS, &rows(), Some(36));
        assert_eq!(narrower.rows[1], "計算-b  12  an instance is being or…");
        let tiny = lay_out(&COLUMNS, &rows(), Some(10));
        assert!(tiny.rows.iter().all(|row| width(row) <= 10), "{tiny:?}");
        assert_eq!(lay_out(&COLUMNS, &rows(), Some(0)).rows, ["", ""]);
    }

    #[test]
    fn a_cut_text_says_so_and_never_halves_a_letter() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("計算機", 4), "計…");
        assert_eq!(cut("計算機", 1), "…");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn foreign_text_reaches_the_terminal_without_control_characters() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\u{9b}d"), r"a\u{1b}[2Jb\nc\u{9b}d");
    }
}
