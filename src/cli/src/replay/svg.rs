//! The plots as SVG: cost per hour with its lower bound, and waiting pods. Only this file computes coordinates.

use std::fmt::Write as _;
use std::io::{self, Write};

use poolwright_catalog::UsdPerHour;
use poolwright_report::replay::Report;

use crate::args::Span;

/// The number of points of a plot.
const POINTS: u32 = 480;
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 220.0;
/// The room for text at the left, at the top, and between the plots.
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
const GAP: f64 = 70.0;

/// Writes the drawing.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let points = report.points(POINTS);
    let (width, height) = (LEFT + WIDTH + 20.0, TOP + 2.0 * HEIGHT + GAP + 40.0);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
    )?;
    let most = |numbers: &mut dyn Iterator<Item = u64>| numbers.max().unwrap_or(0).max(1);
    let dearest = most(&mut points.iter().map(|point| point.cost));
    let waiting = most(&mut points.iter().map(|point| point.waiting));
    let cost = Panel { top: TOP, most: dearest };
    let title = format!(
        "Cost per hour: {:#} in all (blue); no plan could cost less than {:#} (grey)",
        report.cost(),
        report.bound
    );
    cost.frame(&title, &format!("{:#}", UsdPerHour::from_micros(dearest)), report, out)?;
    cost.area(points.iter().map(|point| point.bound), ("#bbbbbb", "none"), out)?;
    cost.area(points.iter().map(|point| point.cost), ("none", "#1f5fbf"), out)?;
    let pods = Panel { top: TOP + HEIGHT + GAP, most: waiting };
    pods.frame("Pods that wait", &waiting.to_string(), report, out)?;
    pods.area(points.iter().map(|point| point.waiting), ("#f0c8a0", "#c06010"), out)?;
    writeln!(out, "</svg>")?;
    out.flush()
}

/// One of the plots.
struct Panel {
    top: f64,
    /// The value at the top.
    most: u64,
}

impl Panel {
    fn frame(&self, title: &str, most: &str, report: &Report, out: &mut impl Write) -> io::Result<()> {
        let (top, bottom, right) = (self.top, self.top + HEIGHT, LEFT + WIDTH);
        writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{}\">{title}</text>\n\
             <rect x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888888\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{most}</text>\n\
             <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n\
             <text x=\"{LEFT}\" y=\"{}\">0</text>\n\
             <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            top - 8.0,
            LEFT - 6.0,
            top + 10.0,
            LEFT - 6.0,
            bottom + 18.0,
            bottom + 18.0,
            Span(report.played),
        )
    }

    fn area(
        &self,
        numbers: impl ExactSizeIterator<Item = u64>,
        (fill, stroke): (&str, &str),
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (bottom, step) = (self.top + HEIGHT, WIDTH / numbers.len().max(1) as f64);
        let mut path = format!("M{LEFT} {bottom:.2}");
        for (at, number) in numbers.enumerate() {
            let y = bottom - HEIGHT * number as f64 / self.most as f64;
            let x = LEFT + step * at as f64;
            // Writing to a string cannot fail.
            let _ = write!(path, "L{x:.2} {y:.2}H{:.2}", x + step);
        }
        writeln!(out, "<path d=\"{path}V{bottom:.2}\" fill=\"{fill}\" stroke=\"{stroke}\"/>")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use poolwright_report::replay::Steps;

    use super::*;

    #[test]
    fn a_drawing_has_a_frame_and_an_area_for_each_series_and_only_numbers_in_it() {
        let at = Duration::from_hours;
        let report = Report {
            played: at(4),
            cost_steps: Steps::of_spans([(at(1), at(3), 2_500_000)]),
            bound_steps: Steps::of_spans([(at(1), at(2), 1_000_000)]),
            ..Report::default()
        };
        for report in [report, Report::default()] {
            let mut drawn = Vec::new();
            write(&report, &mut drawn).unwrap();
            let drawn = String::from_utf8(drawn).unwrap();
            assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
            assert_eq!((drawn.matches("<path ").count(), drawn.matches("<rect ").count()), (3, 3));
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
    }
}
