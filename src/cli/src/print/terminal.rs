//! The terminal of the reader: its width, and whether it shows colours.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};

use ratatui::crossterm::terminal;
use ratatui::text::Span;

/// The width of pages in a pipe or a file.
const PAGE: usize = 80;
/// The least width to which text is wrapped. In a narrower terminal, lines are longer than the terminal is wide.
const NARROWEST: usize = 24;
/// The indentation of tables below a sentence.
const INDENT: usize = 2;

/// How tables are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// The width to which text in the last column is wrapped; `None` for one line in each row.
    pub width: Option<usize>,
    /// Whether tables have all columns and rows (`-o wide`).
    pub wide: bool,
}

impl TableLayout {
    /// Returns the layout of tables among other text: as wide as the terminal.
    pub fn page(wide: bool) -> Self {
        Self { width: (!wide).then(|| width().unwrap_or(PAGE)), wide }
    }

    /// Returns the layout of lists. In a pipe or a file each row is one line, for `grep` and `awk`.
    pub fn list(wide: bool) -> Self {
        Self { width: if wide { None } else { width() }, wide }
    }

    /// Returns the layout of a table that is indented.
    pub fn indented(self) -> Self {
        Self { width: self.width.map(|width| width.saturating_sub(INDENT)), ..self }
    }

    /// Wraps sentences at the width of the layout. What follows a break begins at the column `hang`, or below its line if that is
    /// indented more.
    pub fn fit(self, text: &str, hang: usize) -> String {
        self.width.map_or_else(|| text.to_owned(), |width| hanging(text, hang, width))
    }

    /// Returns the number of rows to show of a table that usually shows `usual`.
    pub fn rows(self, usual: usize) -> usize {
        if self.wide { usize::MAX } else { usual }
    }
}

/// Returns the width that COLUMNS says, or that of the terminal; `None` if standard output is not a terminal.
fn width() -> Option<usize> {
    let said = env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    said.or_else(|| {
        let terminal = io::stdout().is_terminal().then(terminal::size)?;
        terminal.ok().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
    })
}

/// Returns whether output has colours: on a terminal, unless NO_COLOR has a value (<https://no-color.org>).
pub fn has_colours(is_terminal: bool) -> bool {
    allows_colours(is_terminal, env::var_os("NO_COLOR").as_deref())
}

fn allows_colours(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Returns whether the reader's locale has characters beyond ASCII. It has them if no variable names a locale.
pub fn has_unicode() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(env::var_os);
    allows_unicode(said.map(|value| value.to_string_lossy().into_owned()))
}

/// The first variable with a value counts, as for every program.
fn allows_unicode(said: impl IntoIterator<Item = String>) -> bool {
    let locale = said.into_iter().find(|value| !value.is_empty()).map(|value| value.to_lowercase());
    locale.is_none_or(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}

/// Returns the width of a text in terminal cells.
pub fn text_width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Wraps a text at its spaces. A word that is longer than a line stays whole, because names are there to be copied.
pub fn wrap(text: &str, most: usize) -> String {
    hanging(text, 0, most)
}

/// Wraps like [`wrap`], and indents what follows a break: to the column `hang`, or as its line if that is indented more.
fn hanging(text: &str, hang: usize, most: usize) -> String {
    let most = most.max(NARROWEST);
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let words = line.trim_start_matches(' ');
        let lead = line.len() - words.len();
        let indent = " ".repeat(lead.max(hang).min(most - NARROWEST));
        let mut wrapped = " ".repeat(lead);
        for word in words.split(' ') {
            if wrapped.trim_start().is_empty() {
                wrapped.push_str(word);
            } else if text_width(&wrapped) + 1 + text_width(word) <= most {
                wrapped.push(' ');
                wrapped.push_str(word);
            } else {
                lines.push(std::mem::replace(&mut wrapped, format!("{indent}{word}")));
            }
        }
        lines.push(wrapped);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_spaces_and_long_names_stay_whole() {
        let name = "a-very-long-name-of-a-pool-that-is-longer-than-a-line";
        let text = format!("pool {name} has no room for 12 pods\nand says so");
        assert_eq!(wrap(&text, 24), format!("pool\n{name}\nhas no room for 12 pods\nand says so"));
        assert_eq!(wrap(&text, 200), text);
        assert_eq!(wrap("計算 計算 計算 計算 計算", 24), "計算 計算 計算 計算 計算");
        assert_eq!(wrap("計算 計算 計算 計算 計算 計算", 24), "計算 計算 計算 計算 計算\n計算");
    }

    #[test]
    fn sentences_below_a_heading_stay_below_it_and_a_file_gets_whole_lines() {
        let text = "  fix: write the section of node-a\n    two\n";
        let narrow = TableLayout { width: Some(31), wide: false };
        assert_eq!(narrow.fit(text, 7), "  fix: write the section of\n       node-a\n    two\n");
        assert_eq!(TableLayout { width: None, wide: false }.fit(text, 7), text);
        // Where no room would be left, the indentation gives way.
        let narrowest = TableLayout { width: Some(10), wide: false };
        assert_eq!(narrowest.fit("Node gpu-x7k2p4bd is kept open", 20), "Node gpu-x7k2p4bd is\nkept open");
    }

    #[test]
    fn plots_have_blocks_unless_the_locale_has_another_character_set() {
        let with = |values: &[&str]| allows_unicode(values.iter().map(|value| (*value).to_owned()));
        assert!(with(&[]) && with(&["", "C.UTF-8"]) && with(&["de_DE.utf8", "C"]));
        assert!(!with(&["C"]) && !with(&["POSIX", "C.UTF-8"]) && !with(&["de_DE.ISO-8859-1"]));
    }

    #[test]
    fn output_has_colours_only_on_a_terminal_and_without_no_color() {
        let set = |value: &'static str| Some(OsStr::new(value));
        assert!(allows_colours(true, None) && allows_colours(true, set("")));
        assert!(!allows_colours(true, set("1")) && !allows_colours(true, set("0")));
        assert!(!allows_colours(false, None));
    }
}
