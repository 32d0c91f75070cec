//! Pages for people who read in a browser or on paper: one file of HTML, which loads nothing and runs no script.
//!
//! Plots are SVG, each with its numbers in a table. Texts of others are escaped here, so callers pass them as they are.

mod plot;
mod tones;

use std::fmt::Write as _;
use std::io::{self, Write};

use poolwright_terms::one_line;

pub use plot::{Plot, Quantity, Series, Shape};

/// The rules of the layout. The colours of plots are added to them.
const STYLE: &str = include_str!("style.css");

/// The most lines of a folded list.
const LINES: usize = 1000;

/// A page, filled from top to bottom.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// Begins a page.
    pub fn new(title: &str) -> Self {
        let title = escaped(title);
        Self { body: format!("<h1>{title}</h1>\n"), title }
    }

    /// Adds a paragraph. Its class is `verdict`, `warning` or nothing.
    pub fn paragraph(&mut self, class: &str, text: &str) {
        // A string takes everything, here and below.
        let _ = writeln!(self.body, "<p class=\"{class}\">{}</p>", escaped(text));
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escaped(text));
    }

    /// Adds a table, unless it has no rows. The first `texts` columns are words, and the others are numbers.
    pub fn table(&mut self, id: &str, caption: &str, header: &[&str], texts: usize, rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        let class = |column: usize| if column < texts { "" } else { " class=\"number\"" };
        let _ = writeln!(
            self.body,
            "<div class=\"scroll\"><table id=\"{id}\"><caption>{}</caption>",
            escaped(caption)
        );
        self.body.push_str("<thead><tr>");
        for (column, title) in header.iter().enumerate() {
            let _ = write!(self.body, "<th scope=\"col\"{}>{}</th>", class(column), escaped(title));
        }
        self.body.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.body.push_str("<tr>");
            for (column, text) in row.iter().enumerate() {
                let _ = match column {
                    0 => write!(self.body, "<th scope=\"row\"{}>{}</th>", class(0), escaped(text)),
                    column => write!(self.body, "<td{}>{}</td>", class(column), escaped(text)),
                };
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table></div>\n");
    }

    /// Adds a list that the reader can open, unless it is empty.
    pub fn folded(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(
            self.body,
            "<details><summary>{}: {}</summary>\n<ul>",
            escaped(title),
            crate::print::count(lines.len())
        );
        for line in lines.iter().take(LINES) {
            let _ = writeln!(self.body, "<li>{}</li>", escaped(line));
        }
        let more = lines.len().saturating_sub(LINES);
        if more > 0 {
            let more = crate::print::counted(more, "more line");
            let _ = writeln!(self.body, "<li>{more}; -o json has them</li>");
        }
        self.body.push_str("</ul>\n</details>\n");
    }

    /// Adds a plot with its key, and its numbers in a table that the reader can open.
    pub fn plot(&mut self, id: &str, plot: &Plot) -> io::Result<()> {
        let _ = writeln!(self.body, "<figure>\n{}<figcaption>\n<ul class=\"key\">", plot.svg()?);
        for (at, series) in plot.series.iter().enumerate() {
            let _ = writeln!(
                self.body,
                "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" fill=\"{}\"/></svg> {}</li>",
                tones::written(tones::of(at)),
                escaped(&series.name)
            );
        }
        self.body
            .push_str("</ul>\n</figcaption>\n</figure>\n<details><summary>Numbers of the plot</summary>\n");
        let (header, rows) = plot.numbers();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        self.table(id, &plot.title, &header, plot.texts(), &rows);
        self.body.push_str("</details>\n");
        Ok(())
    }

    /// Writes the page.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        // The policy forbids a browser to load anything, whatever the texts contain.
        writeln!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
             <style>\n{STYLE}{}</style>\n</head>\n<body>\n{}</body>\n</html>",
            self.title,
            tones::dark(),
            self.body
        )
    }
}

/// Returns a text of others as one line of HTML.
fn escaped(text: &str) -> String {
    let line = one_line(text);
    let mut escaped = String::with_capacity(line.len());
    for one in line.chars() {
        match one {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            one => escaped.push(one),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(page: &Page) -> String {
        let mut written = Vec::new();
        page.write(&mut written).expect("memory takes it");
        String::from_utf8(written).expect("text")
    }

    #[test]
    fn texts_of_others_are_no_markup_and_a_page_loads_nothing() {
        let evil = "<script src=\"https://example.com/x\">'&\nmore";
        let mut page = Page::new(evil);
        page.paragraph("verdict", evil);
        page.heading(evil);
        page.table("t", evil, &["name", "number"], 1, &[vec![evil.to_owned(), "1".to_owned()]]);
        page.folded(evil, &[evil.to_owned()]);
        let series = Series { name: evil.to_owned(), shape: Shape::Dot, points: vec![(1, 2)] };
        let plot = Plot { title: evil.to_owned(), x: Quantity::Time, y: Quantity::Usd, series: vec![series] };
        page.plot("p", &plot).expect("it can be drawn");
        let text = written(&page);
        assert!(!text.contains("<script") && !text.contains("src=\""), "{text}");
        assert!(text.contains("&lt;script src=&quot;https://example.com/x&quot;&gt;&#39;&amp;"), "{text}");
        for loads in ["href=", "url(", "@import", "<link", "<img"] {
            assert!(!text.contains(loads), "{loads}: {text}");
        }
        assert!(text.contains("<th scope=\"row\">&lt;script"), "{text}");
        assert!(text.contains("<td class=\"number\">1</td>"), "{text}");
    }

    #[test]
    fn empty_tables_and_lists_are_left_out() {
        let mut page = Page::new("a");
        let empty = written(&page);
        page.table("t", "none", &["name"], 1, &[]);
        page.folded("none", &[]);
        assert_eq!(written(&page), empty);
    }
}
