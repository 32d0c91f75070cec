//! What a command does now, in the last line of a terminal. It appears when that takes more than a second, and leaves nothing behind.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Commands that take no longer say nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line is drawn, so that it shows that something happens.
const TICK: Duration = Duration::from_millis(200);

/// A line on standard error, if that is a terminal. It is gone when this is dropped, which must be before anything is printed. It has
/// no colours, with or without NO_COLOR.
pub struct Progress {
    bar: ProgressBar,
    /// The thread that shows the line later, with what ends its wait.
    later: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins with something that is done now: `planning`. Begin after all input is read, because whoever types it would be disturbed.
    pub fn begin(what: impl Into<Cow<'static, str>>) -> Self {
        Self::on(io::stderr().is_terminal(), what)
    }

    /// Does something that is shown meanwhile.
    pub fn during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
        let _shown = Self::begin(what);
        work()
    }

    fn on(is_terminal: bool, what: impl Into<Cow<'static, str>>) -> Self {
        let style = ProgressStyle::with_template("{spinner} {elapsed:>3} {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner()).tick_chars("|/-\\ ");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
        let later = is_terminal.then(|| {
            let (ended, wait) = channel();
            let bar = bar.clone();
            let show = move || {
                if wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(TICK);
                }
            };
            (ended, thread::spawn(show))
        });
        let progress = Self { bar, later };
        progress.say(what);
        progress
    }

    /// Says what is done now.
    pub fn say(&self, what: impl Into<Cow<'static, str>>) {
        self.bar.set_message(what);
    }

    /// Prints a line that stays, to standard error, whether that is a terminal or not.
    pub fn line(&self, text: &str) {
        // Nobody may read standard error, and then there is nothing to do.
        let _ = self.bar.suspend(|| writeln!(io::stderr(), "{text}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.later.take() {
            drop(ended);
            // Without the thread, nothing is shown after the line is cleared. If it panicked, there is nothing to clear.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_shown_at_first_and_without_a_terminal_no_thread_waits_to_show_it() {
        for is_terminal in [false, true] {
            let progress = Progress::on(is_terminal, "planning");
            assert!(progress.bar.is_hidden());
            assert_eq!(progress.later.is_some(), is_terminal);
            progress.say("planning without g5.xlarge".to_owned());
            assert_eq!(progress.bar.message(), "planning without g5.xlarge");
        }
    }
}
