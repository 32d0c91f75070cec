//! `--commitments`: capacity that is paid for in advance.

use std::path::Path;

use poolwright_catalog::Catalogue;
use poolwright_core::plan::Commitment;
use poolwright_intake::Commitments;

use crate::exit::Failure;
use crate::problems::Problems;
use crate::source;

/// Reads the file.
pub fn read(path: &Path) -> Result<Commitments, Failure> {
    let source = source::file(path).map_err(Failure::bad_input)?;
    poolwright_intake::commitments(&source.name, &source.text).map_err(Failure::bad_input)
}

/// Reads the file for a controller. It may contain only commitments, and the parts that do not depend on a catalogue are checked.
pub fn read_for_controller(path: &Path) -> Result<Commitments, Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::bad_input(
            "--commitments -: the controller reads the file again when it changes; pass the path of a file",
        ));
    }
    let read = read(path)?;
    match poolwright_controller::unfit(&read) {
        problems if problems.is_empty() => Ok(read),
        problems => Err(unusable(problems)),
    }
}

/// Adds the reservations to the catalogue.
pub fn with_reservations(committed: &Commitments, catalogue: Catalogue) -> Result<Catalogue, Failure> {
    committed.with_reservations(catalogue).map_err(unusable)
}

/// Resolves each commitment to the offerings that it pays for.
pub fn resolve(committed: &Commitments, catalogue: &Catalogue) -> Result<Vec<Commitment>, Failure> {
    match committed.resolve(&[catalogue]) {
        (terms, problems) if problems.is_empty() => Ok(terms),
        (_, problems) => Err(unusable(problems)),
    }
}

fn unusable(all: Vec<String>) -> Failure {
    let mut problems = Problems::new();
    for problem in all {
        problems.push(problem);
    }
    Failure::bad_input(format!("the commitments cannot be used: {problems}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_told_at_once() {
        let text = "commitments:\n- {name: a, usdPerHour: 1}\n- {name: d, usdPerHour: 1, rates: {g99: 1}}\n";
        let file = poolwright_intake::commitments("c.yaml", text).expect("it can be read");
        let Err(Failure::BadInput(said)) = resolve(&file, &poolwright_catalog::builtin()) else {
            panic!("it was accepted")
        };
        for part in ["the commitments cannot be used: 2 problems", "commitments[0] (a)", "commitments[1] (d)"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
