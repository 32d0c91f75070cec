//! Runs the view on a terminal: draws it, reads keys, and keeps reading the cluster in a thread.

use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::Client;
use poolwright_controller::causes;
use poolwright_controller::clock::{Clock, SystemClock};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::feed;
use super::keys::{ViewState, press};
use super::model::{Reading, view};
use super::screen::{Picture, draw, remove_colours};
use super::view::View;
use crate::controller::told_to_stop;
use crate::print::has_colours;

/// The interval between drawings without a key press, because ages grow.
const TICK: Duration = Duration::from_millis(250);
/// The longest pause before a cluster that does not answer is read again, unless the interval is longer.
const SLOWEST: Duration = Duration::from_secs(30);

/// The messages of the reading thread.
enum News {
    Read(Box<Reading>),
    Trouble(String),
    Stop,
}

/// A cluster that is read repeatedly.
pub struct Source {
    /// The runtime of the client.
    pub runtime: Runtime,
    /// The client.
    pub client: Client,
    /// The name of the cluster for people.
    pub cluster: String,
    /// The namespace to narrow the view to.
    pub namespace: Option<String>,
    /// How often to read it.
    pub interval: Duration,
}

/// Shows the cluster until the user quits.
pub fn show(source: Source, first: &Reading, clock: SystemClock) -> Result<()> {
    let (cluster, namespace) = (source.cluster.clone(), source.namespace.clone());
    let (sender, news) = mpsc::channel();
    thread::Builder::new()
        .name("top-feed".to_owned())
        .spawn(move || keep_reading(source, clock, &sender))
        .context("cannot start a thread to read the cluster")?;
    let mut screen = Screen::open()?;
    screen.run(&|reading: &Reading| view(&cluster, reading, namespace.as_deref()), first, &news, &clock)
}

/// The terminal. It is restored when this is dropped, and ratatui's hook restores it before a panic is reported.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Self> {
        let opened = ratatui::try_init().map(Self);
        // The terminal may be initialized in part.
        opened.inspect_err(|_| ratatui::restore()).context("cannot draw on this terminal; use --once")
    }

    fn run(
        &mut self,
        view: &dyn Fn(&Reading) -> View,
        first: &Reading,
        news: &Receiver<News>,
        clock: &dyn Clock,
    ) -> Result<()> {
        let (mut shown, mut trouble, mut state) = (view(first), None, ViewState::default());
        let has_colours = has_colours(true);
        loop {
            let picture = Picture { view: &shown, now: clock.now(), trouble: trouble.as_deref() };
            let drawn = self.0.draw(|frame| {
                draw(frame, picture, &state);
                if !has_colours {
                    remove_colours(frame.buffer_mut());
                }
            });
            drawn.context("cannot draw on the terminal")?;
            if event::poll(TICK).context("cannot read keys")?
                && let Event::Key(key) = event::read().context("cannot read keys")?
                && key.is_press()
            {
                match press(state, key, &shown) {
                    Some(next) => state = next,
                    None => return Ok(()),
                }
            }
            loop {
                match news.try_recv() {
                    Ok(News::Read(reading)) => (shown, trouble) = (view(&reading), None),
                    Ok(News::Trouble(why)) => trouble = Some(why),
                    Ok(News::Stop) => return Ok(()),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        return Err(anyhow!(
                            "the thread that reads the cluster ended; this is a bug, please report it"
                        ));
                    }
                }
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Reads repeatedly until the receiver is gone or the process is told to end.
fn keep_reading(source: Source, clock: SystemClock, sender: &Sender<News>) {
    let Source { runtime, client, interval, .. } = source;
    runtime.block_on(async {
        let mut stop = std::pin::pin!(told_to_stop());
        let mut pause = interval;
        loop {
            let next = async {
                sleep(pause).await;
                feed::read(&client, &clock).await
            };
            let news = tokio::select! {
                () = &mut stop => News::Stop,
                read = next => match read {
                    Ok(reading) => {
                        pause = interval;
                        News::Read(Box::new(reading))
                    }
                    Err(error) => {
                        pause = longer(pause, interval);
                        News::Trouble(causes(error.as_ref()))
                    }
                },
            };
            let stops = matches!(news, News::Stop);
            if sender.send(news).is_err() || stops {
                return;
            }
        }
    });
}

/// Returns the pause after one more failure in a row.
fn longer(pause: Duration, interval: Duration) -> Duration {
    (pause * 2).min(SLOWEST.max(interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_does_not_answer_is_asked_less_and_less_often() {
        let interval = Duration::from_secs(2);
        let mut pauses = vec![interval];
        for _ in 0..5 {
            pauses.push(longer(pauses[pauses.len() - 1], interval));
        }
        assert_eq!(pauses.iter().map(Duration::as_secs).collect::<Vec<_>>(), [2, 4, 8, 16, 30, 30]);
        let minute = Duration::from_mins(1);
        assert_eq!(longer(minute, minute), minute);
    }
}
