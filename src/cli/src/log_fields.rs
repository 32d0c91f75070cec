//! The fields of log lines in text, without control characters. Errors and messages quote text of others.

use std::fmt;

use poolwright_terms::one_line;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

/// Formats fields as usual, but in one line and without colours. A line feed in an error is written as `\n`, so that what follows
/// does not look like a line of the log.
pub struct OneLineFields;

impl<'writer> FormatFields<'writer> for OneLineFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&one_line(&text))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing::{info_span, warn};

    use super::*;

    /// What is logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_message_an_error_and_a_span_with_forged_lines_are_one_line_of_the_log() {
        let forged = "gone\n2026-01-01T00:00:00Z  INFO FORGED \u{1b}[2J\u{9b}\u{202e}\u{200b}\u{2028}";
        for has_colours in [false, true] {
            let log = Log::default();
            let writer = log.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_writer(move || writer.clone())
                .with_ansi(has_colours)
                .fmt_fields(OneLineFields)
                .finish();
            tracing::subscriber::with_default(subscriber, || {
                let _span = info_span!("pass", pod = %forged).entered();
                warn!(error = %forged, name = forged, "left out: {forged}");
            });
            let text = String::from_utf8(log.0.lock().expect("nobody panicked").clone()).expect("UTF-8");
            assert_eq!(text.lines().count(), 1, "{text}");
            assert_eq!(text.matches("gone\\n2026-01-01T00:00:00Z  INFO FORGED").count(), 4, "{text}");
            let hidden = ['\u{9b}', '\u{202e}', '\u{200b}', '\u{2028}'];
            assert!(!text.contains(hidden) && !text.contains("\u{1b}[2J"), "{text}");
        }
    }
}
