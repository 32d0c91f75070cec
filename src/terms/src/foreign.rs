//! Text of others in our lines: names, values and messages that objects, files and servers hold.
//!
//! A line feed in a name would begin a line that looks like one of ours. A terminal obeys control characters, and some characters
//! hide text or turn its order around. All of them are written as Rust escapes: `\n`, `\u{202e}`.

use std::borrow::Cow;

/// The length of an excerpt, in characters.
const EXCERPT: usize = 60;
/// The most bytes of a message.
const MESSAGE: usize = 2000;

/// Returns whether a character is a control character, ends a line, is invisible, or turns the order of text around. Spaces are none
/// of these.
pub fn is_hidden(one: char) -> bool {
    one.is_control()
        || matches!(
            one,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns a text as one line in which every character shows. Repeated, it changes nothing.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for one in text.chars() {
        if is_hidden(one) {
            line.extend(one.escape_default());
        } else {
            line.push(one);
        }
    }
    Cow::Owned(line)
}

/// Does the same with each line of a text whose line feeds are ours.
pub fn each_line(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

/// Returns a message as one line. Of one that is very long, the beginning and the end stay: a long value in it is cut, and the words
/// around the value can still be read.
pub fn message(text: &str) -> String {
    let line = one_line(text);
    if line.len() <= MESSAGE {
        return line.into_owned();
    }
    let beginning = &line[..line.floor_char_boundary(MESSAGE / 2)];
    let end = &line[line.ceil_char_boundary(line.len() - MESSAGE / 2)..];
    format!("{beginning} ... {end}")
}

/// Returns the start of a text, as one line.
pub fn excerpt(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(EXCERPT) else { return one_line(text).into_owned() };
    let start = one_line(&text[..end]);
    // Escapes are longer than what they stand for.
    format!("{}...", start.chars().take(2 * EXCERPT).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_moves_or_ends_a_line_is_escaped_and_text_of_any_language_stays() {
        for (text, line) in [
            ("a\n  FORGED\r\n", r"a\n  FORGED\r\n"),
            ("\u{1b}[2J\u{9b}31m\u{7f}\t\0", r"\u{1b}[2J\u{9b}31m\u{7f}\t\u{0}"),
            ("\u{202e}gnp\u{2066}\u{2069}\u{200f}", r"\u{202e}gnp\u{2066}\u{2069}\u{200f}"),
            ("a\u{200b}b\u{feff}\u{2028}\u{2029}\u{85}", r"a\u{200b}b\u{feff}\u{2028}\u{2029}\u{85}"),
            ("soft\u{ad}\u{2060}\u{e0041}", r"soft\u{ad}\u{2060}\u{e0041}"),
            (r#"ß ½ 例 שלום "quoted" C:\n"#, r#"ß ½ 例 שלום "quoted" C:\n"#),
        ] {
            assert_eq!(one_line(text), line);
            assert_eq!(one_line(line), line, "once is enough");
        }
        assert!(matches!(one_line("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn our_own_line_feeds_stay_where_a_text_has_several_lines() {
        assert_eq!(each_line("2 problems\n  a\u{1b}[2J\r\n"), "2 problems\n  a\\u{1b}[2J\\r\n");
    }

    #[test]
    fn a_message_with_a_long_value_keeps_its_words() {
        let told = message(&format!("`{}` is no number; write digits", "€\n".repeat(5000)));
        assert!(told.len() <= MESSAGE + " ... ".len(), "{}", told.len());
        assert!(told.starts_with(r"`€\n€") && told.ends_with(r"€\n` is no number; write digits"), "{told}");
        assert_eq!(message("short"), "short");
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt("i-1"), "i-1");
        assert_eq!(excerpt("a\nlevel=error\u{1b}[31m"), r"a\nlevel=error\u{1b}[31m");
        let long = excerpt(&"\u{202e}".repeat(10_000));
        assert!(long.len() < 130 && long.is_ascii() && long.ends_with("..."), "{long}");
    }
}
