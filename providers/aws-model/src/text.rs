//! Excerpts of untrusted text for errors.

/// The length of an excerpt, in characters.
const SHOWN: usize = 60;

/// Returns the start of a text. It escapes characters that could split a log line or control a terminal.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_default).take(2 * SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_line_of_plain_characters() {
        assert_eq!(excerpt("i-1"), "i-1");
        assert_eq!(excerpt("a\nlevel=error\u{1b}[31m"), "a\\nlevel=error\\u{1b}[31m");
        let long = excerpt(&"\u{202e}".repeat(10_000));
        assert!(long.len() < 130 && long.is_ascii() && long.ends_with("..."), "{long}");
    }
}
