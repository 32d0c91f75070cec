//! Finds the line on which a record of a file begins.

/// Finds line numbers of ascending byte offsets of a text.
#[derive(Clone, Debug)]
pub struct LineNumbers<'t> {
    text: &'t str,
    offset: usize,
    line: u64,
}

impl<'t> LineNumbers<'t> {
    /// Creates a finder for this text. Its first line is line 1.
    pub const fn of(text: &'t str) -> Self {
        Self { text, offset: 0, line: 1 }
    }

    /// Returns the line of the first byte at or after `begin` that is not a line ending. A CSV reader reports a record's
    /// position before the blank lines that precede it. Offsets must not decrease from one call to the next.
    pub fn at(&mut self, begin: usize) -> u64 {
        let bytes = self.text.as_bytes();
        let mut begin = begin.min(bytes.len());
        while matches!(bytes.get(begin), Some(b'\r' | b'\n')) {
            begin += 1;
        }
        if begin > self.offset {
            self.line += self.text[self.offset..begin].matches('\n').count() as u64;
            self.offset = begin;
        }
        self.line
    }
}
