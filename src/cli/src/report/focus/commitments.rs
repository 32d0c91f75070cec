//! The dataset Contract Commitment: one line for each commitment, from a file with its terms.

use std::collections::BTreeSet;
use std::io::Write;

use jiff::civil::Date;
use poolwright_report::bill::Micros;
use poolwright_report::ledger::midnight;
use serde::Deserialize;
use serde_json::Value;

use super::line::second;
use crate::args::{FocusVersion, ReportFlags};
use crate::exit::Failure;
use crate::problems::Problems;
use crate::report::rates::amount;
use crate::source;

/// The columns of 1.3.
pub const COLUMNS: [&str; 13] = [
    "BillingCurrency",
    "ContractCommitmentCategory",
    "ContractCommitmentCost",
    "ContractCommitmentDescription",
    "ContractCommitmentId",
    "ContractCommitmentPeriodEnd",
    "ContractCommitmentPeriodStart",
    "ContractCommitmentQuantity",
    "ContractCommitmentType",
    "ContractCommitmentUnit",
    "ContractId",
    "ContractPeriodEnd",
    "ContractPeriodStart",
];

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    commitments: Vec<Terms>,
}

/// The terms of a commitment.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Terms {
    /// Its name in the ledger.
    name: String,
    /// The contract that it is part of; the name if it has none.
    contract: Option<String>,
    /// What the cloud calls it: `Compute Savings Plan`.
    r#type: String,
    description: Option<String>,
    /// The first day.
    from: Date,
    /// The day after the last one.
    to: Date,
    /// What is paid in any case.
    usd_per_hour: Value,
}

/// Prints the dataset. Returns the names of its commitments.
pub fn run(flags: &ReportFlags, out: &mut impl Write) -> Result<BTreeSet<String>, Failure> {
    if flags.focus_version == FocusVersion::V1_4 {
        let message = "--focus-version 1.4: its dataset of commitments has columns that Poolwright does not know, such as the discount \
                       and the model of payment; use 1.3 for this file";
        return Err(Failure::bad_input(message));
    }
    let Some(path) = &flags.commitments else {
        let message = "-o focus-commitments: the terms are missing, which the ledger does not have; name their file with --commitments \
                       (docs/cli/report.md)";
        return Err(Failure::bad_input(message));
    };
    let source = source::file(path).map_err(Failure::bad_input)?;
    let file: File = serde_saphyr::from_str(&source.text).map_err(|error| {
        Failure::bad_input(format!("{}: {error}; write its terms as in docs/cli/report.md", source.name))
    })?;
    let lines = lines(&source.name, &file.commitments)
        .map_err(|problems| Failure::bad_input(format!("the commitments cannot be used: {problems}")))?;
    let mut csv = csv::Writer::from_writer(out);
    let written = csv.write_record(COLUMNS).and_then(|()| {
        lines.iter().try_for_each(|line| csv.write_record(line))?;
        Ok(csv.flush()?)
    });
    written.map_err(|error| Failure::writing(error.into()))?;
    Ok(file.commitments.into_iter().map(|terms| terms.name).collect())
}

fn lines(file: &str, all: &[Terms]) -> Result<Vec<[String; 13]>, Problems> {
    let (mut lines, mut problems) = (Vec::new(), Problems::new());
    let mut names = BTreeSet::new();
    for (at, terms) in all.iter().enumerate() {
        let place = format!("{file}: commitments[{at}] ({})", terms.name);
        if !names.insert(&terms.name) {
            problems.push(format!("{place}: another entry has this name; give each commitment one entry"));
        }
        if terms.to <= terms.from {
            problems.push(format!(
                "{place}: it ends on {} before it starts on {}; correct from or to",
                terms.to, terms.from
            ));
        }
        match amount("usdPerHour", &terms.usd_per_hour) {
            Ok(price) => lines.push(line(terms, price)),
            Err(why) => problems.push(format!("{place}: {why}")),
        }
    }
    problems.or(lines)
}

fn line(terms: &Terms, price: u64) -> [String; 13] {
    let (start, end) = (midnight(terms.from), midnight(terms.to));
    let hours = u64::try_from((end.as_second() - start.as_second()) / 3_600).unwrap_or(0);
    let cost = Micros(i128::from(price) * i128::from(hours));
    let contract = terms.contract.as_ref().unwrap_or(&terms.name);
    let (start, end) = (second(start), second(end));
    [
        "USD".to_owned(),
        "Spend".to_owned(),
        cost.decimal(),
        terms.description.clone().unwrap_or_default(),
        terms.name.clone(),
        end.clone(),
        start.clone(),
        String::new(),
        terms.r#type.clone(),
        String::new(),
        contract.clone(),
        end,
        start,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<[String; 13]>, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        lines("c.yaml", &file.commitments).map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_commitment_is_a_line_with_what_it_costs_in_all() {
        let text = "commitments:\n- {name: plan, type: Compute Savings Plan, from: 2026-01-01, to: 2027-01-01, usdPerHour: 12.5}\n";
        let all = read(text).unwrap();
        let cell = |name: &str| {
            let at = COLUMNS.iter().position(|column| *column == name).unwrap();
            all[0][at].as_str()
        };
        assert_eq!(cell("ContractCommitmentCost"), "109500.00");
        assert_eq!((cell("ContractCommitmentId"), cell("ContractId")), ("plan", "plan"));
        assert_eq!(cell("ContractCommitmentPeriodEnd"), "2027-01-01T00:00:00Z");
        // The specification allows only these to be null.
        for (column, value) in COLUMNS.iter().zip(&all[0]).filter(|(_, value)| value.is_empty()) {
            let nullable =
                ["ContractCommitmentDescription", "ContractCommitmentQuantity", "ContractCommitmentUnit"];
            assert!(nullable.contains(column), "{column}: {value}");
        }
    }

    #[test]
    fn wrong_terms_are_told_together() {
        let entry = |name: &str, to: &str, price: &str| {
            format!("- {{name: {name}, type: t, from: 2026-01-01, to: {to}, usdPerHour: {price}}}\n")
        };
        let text =
            format!("commitments:\n{}{}", entry("a", "2025-01-01", "1"), entry("a", "2027-01-01", "much"));
        let said = read(&text).unwrap_err();
        for part in ["3 problems", "ends on 2025-01-01", "another entry", "`much` is not a decimal number"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
