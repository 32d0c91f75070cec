//! Output without control characters. Names, labels and messages of objects come from others, and a terminal would obey them.

use std::io::{self, Write};

/// What a control character becomes.
const SHOWN: &[u8] = "\u{fffd}".as_bytes();

/// A writer that replaces all control characters but line feeds and tabs.
pub struct Printable<W> {
    inner: W,
    /// Whether the last byte began one of the control characters U+0080 to U+009F, which have two bytes.
    is_begun: bool,
}

impl<W: Write> Printable<W> {
    /// Wraps a writer.
    pub fn new(inner: W) -> Self {
        Self { inner, is_begun: false }
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut clean = Vec::with_capacity(bytes.len());
        for byte in bytes.iter().copied() {
            match (self.is_begun, byte) {
                (true, 0x80..=0x9f) => clean.extend_from_slice(SHOWN),
                (true, _) => clean.extend_from_slice(&[0xc2, byte]),
                (false, 0xc2) => {
                    self.is_begun = true;
                    continue;
                }
                (false, b'\n' | b'\t') => clean.push(byte),
                (false, 0..=0x1f | 0x7f) => clean.extend_from_slice(SHOWN),
                (false, _) => clean.push(byte),
            }
            self.is_begun = false;
        }
        self.inner.write_all(&clean)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns a text without control characters but line feeds and tabs.
pub fn printable(text: &str) -> String {
    let shown = |one: char| if one.is_control() && !matches!(one, '\n' | '\t') { '\u{fffd}' } else { one };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_text_of_any_language_stays() {
        let text = "a\x1b[31mred\r\n\tß\u{9b}31m ½ 例\x7f\n";
        let shown = "a\u{fffd}[31mred\u{fffd}\n\tß\u{fffd}31m ½ 例\u{fffd}\n";
        assert_eq!(printable(text), shown);
        let mut written = Vec::new();
        let mut out = Printable::new(&mut written);
        for byte in text.as_bytes() {
            out.write_all(&[*byte]).unwrap();
        }
        assert_eq!(String::from_utf8(written).unwrap(), shown);
    }
}
