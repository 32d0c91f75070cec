//! The groups of a report as CSV.

use std::io::{self, Write};

use super::answer::Answer;

/// The columns after those of what costs are grouped by.
const COLUMNS: [&str; 6] = ["what", "usd", "share", "gpu_hours", "saved_usd", "unpriced_node_hours"];

/// Prints one line for each group. What is unknown or missing is empty. Amounts are exact.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(out);
    lines.write_record(answer.by.iter().map(String::as_str).chain(COLUMNS))?;
    for row in &answer.rows {
        let values = row.values.iter().map(|value| value.clone().unwrap_or_default());
        let figures = [
            row.class.name().to_owned(),
            row.usd.decimal(),
            row.share.map_or_else(String::new, |share| share.to_string()),
            row.gpu_hours.to_string(),
            row.saved_usd.decimal(),
            row.unpriced_node_hours.to_string(),
        ];
        lines.write_record(values.chain(figures))?;
    }
    lines.flush()
}
