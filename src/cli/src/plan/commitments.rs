//! `--commitments`: capacity that is paid for in advance.

use std::path::Path;

use poolwright_catalog::Catalogue;
use poolwright_core::plan::Commitment;
use poolwright_intake::{Commitments, ReservedNodes, readable_commitments};

use crate::exit::Failure;
use crate::problems::Problems;
use crate::source::{self, Source};

/// Reads the file for a controller. It may contain only commitments, and the parts that do not depend on a catalogue are checked.
pub fn read_for_controller(path: &Path) -> Result<Commitments, Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::bad_input(
            "--commitments -: the controller reads the file again when it changes; pass the path of a file",
        ));
    }
    let source = source::file(path).map_err(Failure::bad_input)?;
    let (read, mut problems) = readable_commitments(&source.name, &source.text);
    problems.extend(poolwright_controller::unfit(&read));
    if problems.is_empty() { Ok(read) } else { Err(unusable(problems)) }
}

/// What is paid for.
#[derive(Debug, Default)]
pub struct Prepaid {
    /// The commitments, each with the offerings of the catalogue that it pays for.
    pub terms: Vec<Commitment>,
    /// The reservations.
    pub reserved: Vec<ReservedNodes>,
}

/// Reads the file for a plan. Also returns the catalogue with the reservations added. All problems of the file are told together.
pub fn read(path: &Path, catalogue: Catalogue) -> Result<(Prepaid, Catalogue), Failure> {
    apply(&source::file(path).map_err(Failure::bad_input)?, catalogue)
}

fn apply(source: &Source, catalogue: Catalogue) -> Result<(Prepaid, Catalogue), Failure> {
    let (committed, mut problems) = readable_commitments(&source.name, &source.text);
    let (terms, found) = committed.resolve(&[&catalogue]);
    problems.extend(found);
    for problem in committed.problems() {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    let reserved = committed.reserved(&catalogue);
    match committed.with_reservations(catalogue) {
        Ok(catalogue) if problems.is_empty() => return Ok((Prepaid { terms, reserved }, catalogue)),
        Ok(_) => {}
        Err(found) => problems.extend(found),
    }
    Err(unusable(problems))
}

fn unusable(all: Vec<String>) -> Failure {
    let problems = Problems::all(all);
    Failure::bad_input(format!("the commitments cannot be used: {problems}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of the error about a file, the first of which counts the problems.
    fn refused(text: &str) -> Vec<String> {
        let source = Source { name: "c.yaml".to_owned(), text: text.to_owned() };
        let Err(Failure::BadInput(said)) = apply(&source, poolwright_catalog::builtin()) else {
            panic!("it was accepted")
        };
        said.lines().map(str::to_owned).collect()
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let said = refused(
            "commitments:\n- {name: a, usdPerHour: 1}\n- {name: d, usdPerHour: 1, rates: {g99: 1}}\n",
        );
        assert_eq!(said[0], "the commitments cannot be used: 2 problems");
        assert!(said[1].contains("commitments[0] (a)") && said[2].contains("commitments[1] (d)"), "{said:?}");
    }

    #[test]
    fn wrong_fields_hide_neither_wrong_instance_types_nor_wrong_reservations() {
        let said = refused(
            "commitments:\n- {name: a, usdPerHour: 1, discont: 5, covers: {instanceTypes: [g99]}}\n\
             - {usdPerHour: 1, rates: {g98: 0}}\n- {name: c, usdPerHour: 1, discountPercent: 5, covers: {families: [g97]}}\n\
             reservations:\n- {instanceType: g96, cnt: 1}\n- {instanceType: g5.xlarge, zone: mars, count: -1}\n",
        );
        let parts = [
            "the commitments cannot be used: 11 problems",
            "c.yaml: commitments[0].discont: unknown field",
            "c.yaml: commitments[1]: missing field `name`; add it",
            "c.yaml: reservations[0]: missing field `count`; add it",
            "c.yaml: reservations[0].cnt: unknown field; did you mean `count`?",
            "c.yaml: reservations[1].count: ",
            "c.yaml: commitments[0] (a): `g99` is not an instance type of the catalogue",
            "c.yaml: commitments[1] (without a name): `g98` is not an instance type of the catalogue",
            "c.yaml: commitments[1] (without a name): rates.g98: it must be above zero",
            "c.yaml: commitments[2] (c): covers no on-demand offering",
            "c.yaml: reservations[0]: `g96` is not an instance type of the catalogue",
            "c.yaml: reservations[1]: `mars` is not a zone of g5.xlarge",
        ];
        assert_eq!(said.len(), parts.len(), "{said:#?}");
        for (line, part) in said.iter().zip(parts) {
            assert!(line.trim_start().starts_with(part), "{part} is not the beginning of {line}");
        }
    }

    #[test]
    fn what_a_wrong_field_leaves_out_is_not_called_missing_as_well() {
        let said = refused(
            "commitments:\n- {name: a, usdPerHour: 1, discountPercnt: 5}\n- {name: b, usdPerHour: 1, discountPercent: 5}\n\
             reservations:\n- {instanceType: p5.48xlarge, zon: us-east-1a, count: 1}\n",
        );
        let told: Vec<&str> = said.iter().map(String::as_str).map(str::trim).collect();
        assert_eq!(
            told,
            [
                "the commitments cannot be used: 2 problems",
                "c.yaml: commitments[0].discountPercnt: unknown field; did you mean `discountPercent`?",
                "c.yaml: reservations[0].zon: unknown field; did you mean `zone`?",
            ]
        );
    }

    #[test]
    fn two_commitments_of_one_name_are_refused_as_a_controller_refuses_them() {
        let said = refused(
            "commitments:\n- {name: a, usdPerHour: 1, rates: {g5.xlarge: 0.5}}\n- {name: a, usdPerHour: 1, rates: {g6.xlarge: 0.5}}\n",
        );
        assert!(
            said.len() == 2 && said[1].contains("commitments[1] (a): another entry has this name"),
            "{said:?}"
        );
    }
}
