//! The answer as a page: the verdict first, then the figures and the curves of both replays, each with its numbers in a table.

use std::io::{self, Write};
use std::time::Duration;

use super::answer::Answer;
use super::curves::Curves;
use super::rows::figures;
use crate::page::{Page, Plot, Quantity, Series, Shape};

/// Milliseconds of a GPU in a thousandth of a GPU-hour.
const THOUSANDTH: u64 = 3_600;

/// Prints the page.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut page = Page::new("What would it cost over time?");
    page.paragraph("verdict", &answer.verdict);
    for exceeded in &answer.exceeded {
        page.paragraph("warning", &format!("Above the limit: {exceeded}"));
    }
    page.heading("Before and after");
    let rows: Vec<Vec<String>> = figures(answer).into_iter().map(Vec::from).collect();
    page.table("figures", "", &["", "before", "after", "difference"], 1, &rows);
    for (id, heading, plot) in plots(answer) {
        page.heading(heading);
        page.plot(id, &plot)?;
    }
    page.heading("Details");
    page.folded("Changes", &answer.changes);
    page.folded("Notes", &answer.notes);
    page.write(out)
}

/// Returns the plots that show something, each with its id and its heading.
fn plots(answer: &Answer) -> Vec<(&'static str, &'static str, Plot)> {
    let plot = |title: &str, y: Quantity, of: fn(&Curves) -> Vec<u64>| {
        let series = |(name, curves): (&str, &Curves)| Series {
            name: name.to_owned(),
            shape: Shape::Line,
            points: curves.from.iter().map(|from| millis(*from)).zip(of(curves)).collect(),
        };
        let series = ["before", "after"].into_iter().zip(&answer.plots).map(series).collect();
        Plot { title: title.to_owned(), x: Quantity::Time, y, series }
    };
    let all = [
        (
            "cost-over-time",
            "Cost over time",
            plot("The average cost per hour from each time on", Quantity::UsdPerHour, |of| of.cost.clone()),
        ),
        (
            "waiting-over-time",
            "Waiting pods over time",
            plot("The most pods that waited at a time", Quantity::Count, |of| of.waiting.clone()),
        ),
        (
            "starts-over-time",
            "Node starts over time",
            plot("The nodes that were launched", Quantity::Count, |of| of.starts.clone()),
        ),
        (
            "interruptions-over-time",
            "Interruptions over time",
            plot("The nodes that the cloud took back", Quantity::Count, |of| of.interruptions.clone()),
        ),
        (
            "lost-over-time",
            "Lost GPU-hours over time",
            plot("The GPU-hours of work that was lost", Quantity::Thousandths, |of| {
                of.lost.iter().map(|lost| lost.div_ceil(THOUSANDTH)).collect()
            }),
        ),
    ];
    let is_seen = |plot: &Plot| plot.series.iter().flat_map(|one| &one.points).any(|(_, y)| *y > 0);
    all.into_iter().filter(|(.., plot)| is_seen(plot)).collect()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
