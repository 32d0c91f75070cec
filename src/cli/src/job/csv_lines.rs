//! The ways to run a job as CSV.

use std::io::{self, Write};

use super::Answer;

/// The columns.
const COLUMNS: [&str; 11] = [
    "instance_type",
    "capacity_type",
    "gpu_model",
    "nodes",
    "zones",
    "usd_per_hour",
    "usd_per_job",
    "interruptions",
    "finish_hours",
    "lost_hours",
    "reason",
];

/// Prints one line for each way. What is unknown is empty.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    fn cell<T: ToString>(known: Option<T>) -> String {
        known.map_or_else(String::new, |known| known.to_string())
    }
    let mut lines = csv::Writer::from_writer(out);
    lines.write_record(COLUMNS)?;
    for row in &answer.rows {
        lines.write_record([
            row.instance_type.clone(),
            row.capacity_type.to_string(),
            cell(row.gpu_model.as_ref()),
            cell(row.nodes),
            row.zones.join("|"),
            cell(row.usd_per_hour),
            cell(row.usd_per_job),
            cell(row.interruptions),
            cell(row.finish_hours),
            cell(row.lost_hours),
            cell(row.reason.as_ref()),
        ])?;
    }
    lines.flush()
}
