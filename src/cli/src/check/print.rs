//! Prints the results of checks, in groups.

use std::io::{self, Write};

use poolwright_provider_contract::preflight::{CheckResult, Verdict};
use serde::Serialize;

use crate::args::CheckFormat;
use crate::print::TableLayout;

/// The width of the sign and the spaces around it.
const MARGIN: usize = 4;

/// The JSON document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    wrong: usize,
    undetermined: usize,
    fine: usize,
    #[serde(rename = "findings")]
    results: Vec<Row<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    group: &'a str,
    #[serde(rename = "what")]
    name: &'a str,
    /// `fine`, `wrong` or `undetermined`.
    verdict: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'a str>,
}

/// Prints the results.
pub fn print(
    results: &[CheckResult],
    format: CheckFormat,
    layout: TableLayout,
    out: &mut impl Write,
) -> io::Result<()> {
    let rows: Vec<Row<'_>> = results.iter().map(row).collect();
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
    let (wrong, undetermined, fine) = (count("wrong"), count("undetermined"), count("fine"));
    if format == CheckFormat::Json {
        let document = Document {
            api_version: poolwright_terms::API_VERSION,
            kind: "Check",
            wrong,
            undetermined,
            fine,
            results: rows,
        };
        serde_json::to_writer_pretty(&mut *out, &document)?;
        return writeln!(out);
    }
    for group in rows.chunk_by(|a, b| a.group == b.group) {
        writeln!(out, "{}", group[0].group)?;
        let width = group.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        for row in group {
            let sign = match row.verdict {
                "fine" => "✓",
                "wrong" => "✗",
                _ => "–",
            };
            let line = format!("  {sign} {:width$}  {}", row.name, one_line(row.message));
            writeln!(out, "{}", layout.fit(&line, MARGIN + width + 2))?;
            if let Some(fix) = row.fix {
                let line = format!("    fix: {}", one_line(fix));
                writeln!(out, "{}", layout.fit(&line, MARGIN + "fix: ".len()))?;
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{wrong} wrong, {undetermined} could not be determined, {fine} fine")
}

fn row(result: &CheckResult) -> Row<'_> {
    let (verdict, message, fix) = match &result.verdict {
        Verdict::Fine(value) => ("fine", value, None),
        Verdict::Wrong { why, fix } => ("wrong", why, Some(fix.as_str())),
        Verdict::Undetermined(why) => ("undetermined", why, None),
    };
    Row { group: result.group, name: &result.name, verdict, message, fix }
}

fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    poolwright_terms::one_line(&words).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(format: CheckFormat, width: Option<usize>) -> String {
        let results = [
            CheckResult::new("Cluster", "API server", Verdict::fine("Kubernetes 1.36")),
            CheckResult::new("Cluster", "clock", Verdict::undetermined("no\ndate")),
            CheckResult::new("AWS permissions", "ec2:CreateFleet", Verdict::wrong("not allowed", "add it")),
        ];
        let mut out = Vec::new();
        let layout = TableLayout { width, wide: false };
        print(&results, format, layout, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn the_table_prints_fixes_below_problems_and_a_summary_at_the_end() {
        let wanted = "Cluster\n  ✓ API server  Kubernetes 1.36\n  – clock       no date\n\nAWS permissions\n  \
                      ✗ ec2:CreateFleet  not allowed\n    fix: add it\n\n1 wrong, 1 could not be determined, 1 fine\n";
        assert_eq!(printed(CheckFormat::Table, None), wanted);
    }

    #[test]
    fn on_a_narrow_terminal_a_message_goes_on_below_itself() {
        let narrow = printed(CheckFormat::Table, Some(38));
        assert!(narrow.contains("\n  ✗ ec2:CreateFleet  not allowed\n"), "{narrow}");
        let narrower = printed(CheckFormat::Table, Some(28));
        assert!(narrower.contains("\n  ✗ ec2:CreateFleet  not\n    allowed\n"), "{narrower}");
    }

    #[test]
    fn json_holds_the_same_results() {
        let document: serde_json::Value =
            serde_json::from_str(&printed(CheckFormat::Json, None)).expect("JSON");
        assert_eq!((document["wrong"].as_u64(), document["fine"].as_u64()), (Some(1), Some(1)));
        assert_eq!(document["findings"][2]["fix"], "add it");
        assert_eq!(document["findings"][1]["verdict"], "undetermined");
    }
}
