//! The columns of a catalogue, and their positions in the header.

use csv::StringRecord;

use super::problem::CsvProblem;

pub(super) const INSTANCE_TYPE: &str = "instance_type";
pub(super) const ARCH: &str = "arch";
pub(super) const CPU: &str = "allocatable_cpu_milli";
pub(super) const MEMORY: &str = "allocatable_memory_mib";
pub(super) const PODS: &str = "allocatable_pods";
pub(super) const GPU_MODEL: &str = "gpu_model";
pub(super) const GPU_COUNT: &str = "gpu_count";
pub(super) const GPU_MEMORY: &str = "gpu_memory_mib_each";
pub(super) const ON_DEMAND: &str = "on_demand_usd_per_hour";
pub(super) const PROVIDER: &str = "provider";
pub(super) const REGION: &str = "region";
pub(super) const ZONES: &str = "zones";
pub(super) const SPOT: &str = "spot_usd_per_hour";
pub(super) const CURRENCY: &str = "currency";
pub(super) const PRICE_SOURCE: &str = "price_source";
pub(super) const PRICE_AS_OF: &str = "price_as_of";
pub(super) const SPOT_SOURCE: &str = "spot_source";
pub(super) const SPOT_AS_OF: &str = "spot_as_of";
pub(super) const ZONE: &str = "zone";
pub(super) const CAPACITY_TYPE: &str = "capacity_type";
pub(super) const AVAILABLE: &str = "available_nodes";
pub(super) const INTERRUPTIONS: &str = "spot_interruptions_per_hour";
pub(super) const INTERRUPTIONS_SOURCE: &str = "interruptions_source";
pub(super) const INTERRUPTIONS_AS_OF: &str = "interruptions_as_of";
pub(super) const NOTICE: &str = "spot_notice_seconds";
/// The column for the disk of nodes that pods may use.
pub const EPHEMERAL_STORAGE: &str = "ephemeral_storage_mib";

/// The required columns of a catalogue.
pub const REQUIRED: [&str; 9] =
    [INSTANCE_TYPE, ARCH, CPU, MEMORY, PODS, GPU_MODEL, GPU_COUNT, GPU_MEMORY, ON_DEMAND];

/// The optional columns of a catalogue.
pub const OPTIONAL: [&str; 17] = [
    PROVIDER,
    REGION,
    ZONES,
    SPOT,
    CURRENCY,
    PRICE_SOURCE,
    PRICE_AS_OF,
    SPOT_SOURCE,
    SPOT_AS_OF,
    EPHEMERAL_STORAGE,
    ZONE,
    CAPACITY_TYPE,
    AVAILABLE,
    INTERRUPTIONS,
    INTERRUPTIONS_SOURCE,
    INTERRUPTIONS_AS_OF,
    NOTICE,
];

/// The position of each column.
pub(super) struct Columns {
    /// The column of each cell of a row; `None` for an unknown or repeated column.
    names: Vec<Option<&'static str>>,
}

impl Columns {
    /// Returns the columns of a header and its problems. The rows below an invalid header are read anyway, so that their
    /// problems are listed too. Returns `Err` if the header names no column at all.
    pub(super) fn of_header(
        file: &str,
        line: u64,
        header: &StringRecord,
    ) -> Result<(Self, Vec<CsvProblem>), CsvProblem> {
        if header.len() == 1 {
            let separator =
                [(';', "semicolons"), ('\t', "tabs")].into_iter().find(|(mark, _)| header[0].contains(*mark));
            if let Some((_, named)) = separator {
                let cause = format!("the columns are separated by {named}");
                return Err(CsvProblem::of_line(file, line, cause, "separate them by commas"));
            }
        }
        let mut names: Vec<Option<&'static str>> = Vec::new();
        let mut problems = Vec::new();
        for cell in header {
            let name = known().find(|name| *name == cell);
            match name {
                Some(name) if names.contains(&Some(name)) => {
                    let cause = "the column is listed twice".to_owned();
                    problems.push(CsvProblem::of_column(file, line, name, cause, "keep one of the two"));
                    names.push(None);
                    continue;
                }
                Some(_) => {}
                None => problems.push(unknown(file, line, cell)),
            }
            names.push(name);
        }
        // The problem of a misspelt column already names the right one.
        let misspelt: Vec<_> = header.iter().filter_map(meant).collect();
        let is_missing = |name: &&str| !names.contains(&Some(*name)) && !misspelt.contains(name);
        let missing: Vec<_> = REQUIRED.into_iter().filter(is_missing).collect();
        problems.extend(match missing.as_slice() {
            [] => None,
            [name] => {
                let cause = "the column is missing".to_owned();
                Some(CsvProblem::of_column(file, line, name, cause, "add it to the header"))
            }
            several => {
                let cause = format!("the columns {} are missing", several.join(", "));
                Some(CsvProblem::of_line(file, line, cause, "add them to the header"))
            }
        });
        Ok((Self { names }, problems))
    }

    /// Returns the number of cells in a row.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// Returns the position of this column, if the file has it.
    pub(super) fn index(&self, column: &str) -> Option<usize> {
        self.names.iter().position(|name| *name == Some(column))
    }
}

fn known() -> impl Iterator<Item = &'static str> {
    REQUIRED.into_iter().chain(OPTIONAL)
}

/// The column that a misspelt name means.
fn meant(cell: &str) -> Option<&'static str> {
    let lower = cell.to_lowercase();
    let near = known().map(|name| (strsim::damerau_levenshtein(&lower, name), name)).min();
    near.filter(|(distance, name)| *distance * 3 <= name.len()).map(|(_, name)| name)
}

fn unknown(file: &str, line: u64, cell: &str) -> CsvProblem {
    if cell.is_empty() {
        let cause = "the header has a column without a name".to_owned();
        return CsvProblem::of_line(file, line, cause, "name it or remove it, and its cells in every row");
    }
    let remedy = match meant(cell) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("remove it; known are {}, {}", REQUIRED.join(", "), OPTIONAL.join(", ")),
    };
    CsvProblem::of_column(file, line, cell, "there is no such column".to_owned(), remedy)
}
