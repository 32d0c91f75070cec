//! Plots of whole numbers, drawn as SVG.

use std::collections::BTreeMap;
use std::io;

use jiff::ToSpan;
use jiff::civil::Date;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::{
    AreaSeries, BindKeyPoints, ChartBuilder, Circle, Color, IntoDrawingArea, IntoFont, LineSeries, Rectangle,
    SVGBackend, Text,
};
use poolwright_catalog::{Usd, UsdPerHour};

use super::{escaped, tones};
use crate::args::Span;

/// Width and height of a drawing.
const SIZE: (u32, u32) = (860, 300);
/// The most labels of an axis.
const LABELS: u64 = 8;
/// The most rows of the table of numbers.
const ROWS: usize = 48;
/// The width of the place of a bar, which has some room on both sides of it.
const PLACE: u64 = 10;
/// The most days that are counted: ten thousand years.
const MOST_DAYS: i32 = 3_652_500;
/// Steps of labels on an axis of time, in minutes.
const MINUTES: [u64; 15] = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2 * 1440, 7 * 1440, 14 * 1440];

/// What the numbers of an axis count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Milliseconds.
    Time,
    /// Days.
    Day {
        /// The day that is zero.
        first: Date,
    },
    /// Micro-dollars.
    Usd,
    /// Micro-dollars per hour.
    UsdPerHour,
    /// Things.
    Count,
    /// Thousandths of things, as averages are.
    Thousandths,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The ground below it is filled.
    Area,
    /// The same, on top of those before it.
    Stacked,
    /// A line.
    Line,
    /// A dot for each point, with the number of the series.
    Dot,
    /// A bar for each point. What goes from left to right is its place, from 0 on.
    Bar,
}

/// Some points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name, for the key and the table.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// The points, from left to right.
    pub points: Vec<(u64, u64)>,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What it shows: a sentence for those who do not see it.
    pub title: String,
    /// What goes from left to right.
    pub x: Quantity,
    /// What goes up.
    pub y: Quantity,
    /// The series. Later ones are drawn above earlier ones.
    pub series: Vec<Series>,
}

impl Quantity {
    /// Writes a number for people.
    pub fn told(self, number: u64) -> String {
        match self {
            Self::Time => Span(std::time::Duration::from_secs(number / 1000)).to_string(),
            Self::Day { first } => {
                let days = i32::try_from(number).unwrap_or(MOST_DAYS).min(MOST_DAYS);
                first.saturating_add(days.days()).to_string()
            }
            Self::Usd => format!("{:#}", Usd(number.into())),
            Self::UsdPerHour => format!("{:#}", UsdPerHour::from_micros(number)),
            Self::Count => crate::print::count(usize::try_from(number).unwrap_or(usize::MAX)),
            Self::Thousandths => {
                let tenths = (number + 50) / 100;
                format!("{}.{}", tenths / 10, tenths % 10)
            }
        }
    }

    /// Returns the name of the axis.
    fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Day { .. } => "day",
            Self::Usd => "cost",
            Self::UsdPerHour => "cost per hour",
            Self::Count | Self::Thousandths => "number",
        }
    }

    /// Returns the numbers that get a label on an axis from zero to `most`.
    fn labels(self, most: u64) -> Vec<u64> {
        let fits = |step: &u64| most / *step < LABELS;
        let step = match self {
            Self::Time => MINUTES.into_iter().map(|minutes| minutes * 60_000).find(fits),
            _ => (0..18).map(|tens| 10_u64.pow(tens)).flat_map(|ten| [ten, 2 * ten, 5 * ten]).find(fits),
        };
        let step = step.unwrap_or_else(|| (most / LABELS).max(1));
        (0..=most / step).map(|number| number * step).collect()
    }
}

impl Plot {
    /// Draws it.
    pub fn svg(&self) -> io::Result<String> {
        let mut drawn = String::new();
        self.draw(&mut drawn).map_err(|error| io::Error::other(error.to_string()))?;
        let label = format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(&self.title));
        Ok(drawn.replacen("<svg ", &label, 1))
    }

    fn draw(&self, into: &mut String) -> Result<(), DrawingAreaErrorKind<io::Error>> {
        let drawn = self.drawn();
        let points = || drawn.iter().flat_map(|(_, points)| points);
        let right = points().map(|(x, _)| *x).max().unwrap_or(0).max(1);
        let highest = points().map(|(_, y)| *y).max().unwrap_or(0).max(1);
        // Some room above, so that the highest point is no part of the frame.
        let top = highest.saturating_add(highest / 20).max(highest);
        let (right, labels) = if self.has(Shape::Bar) {
            ((right + 1) * PLACE, Vec::new())
        } else {
            let right = if self.has(Shape::Dot) { right.saturating_add(right / 10) } else { right };
            (right, self.x.labels(right))
        };
        let area = SVGBackend::with_string(into, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(28)
            .y_label_area_size(84)
            .build_cartesian_2d(
                (0..right).with_key_points(labels),
                (0..top).with_key_points(self.y.labels(top)),
            )?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(tones::RULE)
            .axis_style(tones::RULE)
            .label_style(("sans-serif", 16, &tones::INK))
            .x_label_formatter(&|number: &u64| self.x.told(*number))
            .y_label_formatter(&|number: &u64| self.y.told(*number))
            .draw()?;
        for (at, points) in &drawn {
            let (tone, points) = (tones::of(*at), points.clone());
            match self.series[*at].shape {
                Shape::Area | Shape::Stacked => {
                    chart.draw_series(AreaSeries::new(points, 0, tone.filled()))?;
                }
                Shape::Line => {
                    chart.draw_series(LineSeries::new(points, tone.stroke_width(2)))?;
                }
                Shape::Bar => {
                    let bar = |(place, y): &(u64, u64)| {
                        let left = place * PLACE;
                        Rectangle::new([(left + 1, *y), (left + PLACE - 1, 0)], tone.filled())
                    };
                    chart.draw_series(points.iter().map(bar))?;
                }
                Shape::Dot => {
                    chart.draw_series(points.iter().map(|point| Circle::new(*point, 5, tone.filled())))?;
                    // Spaces that stay keep the number beside its dot.
                    let number = format!("\u{a0}\u{a0}{}", at + 1);
                    let style = ("sans-serif", 15).into_font().color(&tones::INK);
                    chart.draw_series(
                        points.iter().map(|point| Text::new(number.clone(), *point, style.clone())),
                    )?;
                }
            }
        }
        area.present()
    }

    /// Returns the points of each series as they are drawn, with its number, in the order of drawing. Of those on top of each other, the
    /// highest comes first, and the others cover it.
    fn drawn(&self) -> Vec<(usize, Vec<(u64, u64)>)> {
        let mut below: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut drawn, mut stacked) = (Vec::new(), Vec::new());
        for (at, series) in self.series.iter().enumerate() {
            let mut points = series.points.clone();
            if series.shape == Shape::Stacked {
                for (x, y) in &mut points {
                    let ground = below.entry(*x).or_default();
                    *y = y.saturating_add(*ground);
                    *ground = *y;
                }
                stacked.push((at, points));
            } else {
                drawn.push((at, points));
            }
        }
        stacked.into_iter().rev().chain(drawn).collect()
    }

    fn has(&self, shape: Shape) -> bool {
        self.series.iter().any(|series| series.shape == shape)
    }

    /// Returns the number of the first columns of the table that hold words.
    pub fn texts(&self) -> usize {
        usize::from(self.has(Shape::Dot) || self.has(Shape::Bar))
    }

    /// Returns the header and the rows of the table with the numbers. Series over time share the column of the time, and of many
    /// points some are left out.
    pub fn numbers(&self) -> (Vec<String>, Vec<Vec<String>>) {
        if self.has(Shape::Bar) {
            let row = |series: &Series| {
                series
                    .points
                    .iter()
                    .map(|(_, y)| vec![series.name.clone(), self.y.told(*y)])
                    .collect::<Vec<_>>()
            };
            return (
                vec![String::new(), self.y.name().to_owned()],
                self.series.iter().flat_map(row).collect(),
            );
        }
        if self.has(Shape::Dot) {
            let header = ["", self.x.name(), self.y.name()].map(str::to_owned);
            let rows = self.series.iter().enumerate().flat_map(|(at, series)| {
                let row = move |(x, y): &(u64, u64)| {
                    vec![format!("{}: {}", at + 1, series.name), self.x.told(*x), self.y.told(*y)]
                };
                series.points.iter().map(row)
            });
            return (header.to_vec(), rows.collect());
        }
        let mut rows: BTreeMap<u64, Vec<Option<u64>>> = BTreeMap::new();
        for (at, series) in self.series.iter().enumerate() {
            for (x, y) in &series.points {
                let row = rows.entry(*x).or_insert_with(|| vec![None; self.series.len()]);
                row[at] = Some(*y);
            }
        }
        let every = rows.len().div_ceil(ROWS).max(1);
        let names = self.series.iter().map(|series| series.name.clone());
        let header = std::iter::once(self.x.name().to_owned()).chain(names).collect();
        let row = |(x, numbers): (u64, Vec<Option<u64>>)| {
            let numbers = numbers.into_iter().map(|y| y.map_or_else(String::new, |y| self.y.told(y)));
            std::iter::once(self.x.told(x)).chain(numbers).collect()
        };
        (header, rows.into_iter().step_by(every).map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, shape: Shape, points: &[(u64, u64)]) -> Series {
        Series { name: name.to_owned(), shape, points: points.to_vec() }
    }

    fn plot(series: Vec<Series>) -> Plot {
        Plot { title: "a < b".to_owned(), x: Quantity::Time, y: Quantity::UsdPerHour, series }
    }

    #[test]
    fn a_drawing_has_an_area_a_line_and_dots_in_colours_that_the_page_replaces_on_a_dark_ground() {
        let points = [(0, 1_000_000), (3_600_000, 3_000_000)];
        let drawn = plot(vec![
            series("area", Shape::Area, &points),
            series("line", Shape::Line, &points),
            series("dot", Shape::Dot, &points),
        ]);
        let drawn = drawn.svg().expect("it can be drawn");
        assert!(drawn.starts_with("<svg role=\"img\" aria-label=\"a &lt; b\" "), "{drawn}");
        assert_eq!(
            (drawn.matches("<polygon ").count(), drawn.matches("<circle ").count()),
            (1, 2),
            "{drawn}"
        );
        assert!(drawn.contains("$2.00/h"), "{drawn}");
        let rules = tones::dark();
        for part in drawn.split('#').skip(1) {
            assert!(rules.contains(&format!("\"#{}\"", &part[..6])), "no rule for #{}", &part[..6]);
        }
    }

    #[test]
    fn bars_stand_beside_each_other_and_the_table_has_their_names() {
        let usd = 1_000_000;
        let plot = plot(vec![series("a", Shape::Bar, &[(0, usd)]), series("b", Shape::Bar, &[(1, 2 * usd)])]);
        let drawn = plot.svg().expect("it can be drawn");
        for series in 0..2 {
            let fill = format!("fill=\"{}\"", tones::written(tones::of(series)));
            assert_eq!(drawn.matches(&fill).count(), 1, "{drawn}");
        }
        let (header, rows) = plot.numbers();
        assert_eq!((header, plot.texts()), (vec![String::new(), "cost per hour".to_owned()], 1));
        assert_eq!(rows, [["a", "$1.00/h"], ["b", "$2.00/h"]]);
    }

    #[test]
    fn nothing_at_all_can_be_drawn() {
        for points in [&[][..], &[(0, 0)], &[(u64::MAX, u64::MAX)]] {
            let drawn = plot(vec![series("a", Shape::Line, points)]).svg().expect("it can be drawn");
            assert!(drawn.ends_with("</svg>\n") && !drawn.contains("NaN"), "{drawn}");
        }
    }

    #[test]
    fn labels_are_round_numbers_and_never_many() {
        assert_eq!(Quantity::Time.labels(3 * 3_600_000).len(), 7, "every half hour");
        assert_eq!(
            Quantity::UsdPerHour.labels(6_580_000),
            (0..=6).map(|usd| usd * 1_000_000).collect::<Vec<_>>()
        );
        for most in [1, 7, 999, u64::MAX] {
            assert!(Quantity::Count.labels(most).len() <= LABELS as usize + 1);
            assert!(Quantity::Time.labels(most).len() <= LABELS as usize + 1);
        }
    }

    #[test]
    fn days_have_their_dates() {
        let days = Quantity::Day { first: "2026-11-30".parse().expect("a day") };
        assert_eq!((days.told(0).as_str(), days.told(2).as_str()), ("2026-11-30", "2026-12-02"));
        assert_eq!(days.told(u64::MAX), "9999-12-31");
        assert_eq!(days.labels(29), [0, 5, 10, 15, 20, 25]);
    }

    #[test]
    fn areas_are_drawn_on_top_of_each_other_and_the_table_has_their_own_numbers() {
        let plot = plot(vec![
            series("low", Shape::Stacked, &[(0, 1_000_000), (60_000, 2_000_000)]),
            series("high", Shape::Stacked, &[(0, 500_000), (60_000, 0)]),
            series("limit", Shape::Line, &[(0, 0)]),
        ]);
        let drawn = plot.drawn();
        assert_eq!(drawn[0], (1, vec![(0, 1_500_000), (60_000, 2_000_000)]));
        assert_eq!(drawn.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 0, 2]);
        let (header, rows) = plot.numbers();
        assert_eq!(header, ["time", "low", "high", "limit"]);
        assert_eq!(rows[1], ["1m", "$2.00/h", "$0.00/h", ""]);
    }
}
