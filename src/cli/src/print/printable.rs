//! Output without control characters. Names, labels and messages of objects come from others, and a terminal would obey them.

use std::fmt::Write as _;
use std::io::{self, Write};

/// A writer of text and data that escapes what a terminal obeys: control characters but line feeds and tabs, and characters that end
/// lines or turn the order of text around. Escapes are those of JSON, so that a program reads in JSON what was there. Invisible
/// letters stay, because YAML writes them without quotes.
///
/// It is the last of two defences: texts of others are escaped by `poolwright_terms::foreign` where they become a part of our lines.
pub struct Printable<W> {
    inner: W,
    /// The beginning of a character whose end is not written yet.
    begun: Vec<u8>,
}

impl<W: Write> Printable<W> {
    /// Wraps a writer.
    pub fn new(inner: W) -> Self {
        Self { inner, begun: Vec::new() }
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let mut shown = String::with_capacity(self.begun.len());
        let mut left = 0;
        let mut chunks = self.begun.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            for one in chunk.valid().chars() {
                show(one, &mut shown);
            }
            let rest = chunk.invalid();
            let is_begun = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
            if is_begun && chunks.peek().is_none() {
                left = rest.len();
            } else if !rest.is_empty() {
                shown.push(char::REPLACEMENT_CHARACTER);
            }
        }
        let done = self.begun.len() - left;
        self.begun.drain(..done);
        self.inner.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn show(one: char, into: &mut String) {
    let is_obeyed = one.is_control() || matches!(one, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if is_obeyed && !matches!(one, '\n' | '\t') {
        // Writing to a string cannot fail, and each of these characters has one code unit.
        let _ = write!(into, "\\u{:04x}", u32::from(one));
    } else {
        into.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_text_of_any_language_stays() {
        let text = "a\x1b[31mred\r\n\tß\u{9b}31m ½ 例\x7f\u{202e}\u{2069}\u{2028}👩\u{200d}🔬\n";
        let shown = "a\\u001b[31mred\\u000d\n\tß\\u009b31m ½ 例\\u007f\\u202e\\u2069\\u2028👩\u{200d}🔬\n";
        let mut written = Vec::new();
        let mut out = Printable::new(&mut written);
        for byte in text.as_bytes() {
            out.write_all(&[*byte]).unwrap();
        }
        assert_eq!(String::from_utf8(written).unwrap(), shown);
    }

    #[test]
    fn json_reads_back_as_it_was_and_bytes_that_are_no_text_are_replaced() {
        let value = serde_json::json!({"a\u{9b}": "b\u{202e}\u{1b}\n"});
        let mut written = Vec::new();
        serde_json::to_writer(Printable::new(&mut written), &value).unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&written).unwrap(), value);
        let mut written = Vec::new();
        Printable::new(&mut written).write_all(b"a\xff\xc3b\n").unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "a\u{fffd}\u{fffd}b\n");
    }
}
