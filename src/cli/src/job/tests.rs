//! Tests of whole answers.

use clap::Parser;
use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_terms::CapacityType;

use super::rows::Row;
use super::{Answer, answered, answered_within, csv_lines, page, table};
use crate::args::{Cli, Command, JobFlags, SearchFlags};
use crate::exit::Failure;
use crate::print::TableLayout;

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/manifests");
/// A large type at $2.60 with four L4s, on spot at $1.00 without an interruption rate; a small one at $0.80 with one L4, of which the spot
/// price cannot be right; and one with a T4 without a price.
const MARKET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/market.csv");

/// On-demand types of one region.
const BENCH: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/catalogue/solver-bench-79-types.csv");

/// Prices a job, with this catalogue and these flags.
fn priced(catalogue: &str, job: &str, more: &[&str]) -> Result<Answer, Failure> {
    answered(&flags(catalogue, job, more))
}

fn flags(catalogue: &str, job: &str, more: &[&str]) -> JobFlags {
    let typed = ["poolwright", "job", job, "--hours", "10", "--catalogue", catalogue];
    let typed = typed.iter().chain(more).copied();
    match Cli::try_parse_from(typed).expect("flags").command {
        Command::Job(flags) => *flags,
        other => panic!("it is job: {other:?}"),
    }
}

fn found(catalogue: &str, job: &str, more: &[&str]) -> Answer {
    priced(catalogue, job, more).unwrap_or_else(|failure| panic!("{job} {more:?}: {failure:?}"))
}

fn refused(job: &str, more: &[&str]) -> String {
    match priced("builtin", job, more) {
        Err(Failure::BadInput(told)) => told,
        other => panic!("{job} {more:?}: {other:?}"),
    }
}

fn row<'a>(answer: &'a Answer, name: &str, how: CapacityType) -> &'a Row {
    let found = answer.rows.iter().find(|row| row.instance_type == name && row.capacity_type == how);
    found.unwrap_or_else(|| panic!("{name} {how}: {:?}", answer.rows))
}

#[test]
fn a_shape_is_priced_on_each_type_that_has_its_gpus() {
    // Four pods with one L4 each: one large node, or four small ones.
    let answer = found(MARKET, "4x1xl4", &[]);
    let large = row(&answer, "large.l4", CapacityType::OnDemand);
    assert_eq!(large.nodes, Some(1));
    assert_eq!(large.usd_per_hour, Some(UsdPerHour::from_micros(2_601_600)));
    assert_eq!((large.usd_per_job, &large.reason), (Some(Usd(26_016_000)), &None));
    let small = row(&answer, "small.l4", CapacityType::OnDemand);
    assert_eq!((small.nodes, small.usd_per_job), (Some(4), Some(Usd(32_192_000))));
    assert_eq!(small.reason.as_deref(), Some("dearer by 23.7 %"));
    let spot = row(&answer, "large.l4", CapacityType::Spot);
    assert!(
        spot.reason.as_deref().is_some_and(|why| why.starts_with("no interruption rate known")),
        "{spot:?}"
    );
    let wrong = row(&answer, "small.l4", CapacityType::Spot);
    assert!(
        wrong.reason.as_deref().is_some_and(|why| why.starts_with("no price known: quarantined")),
        "{wrong:?}"
    );
    assert_eq!(answer.rows.len(), 4, "nothing else has an L4");
    assert!(
        answer.verdict.starts_with("Cheapest: $26.02 for the job, $2.60/h on 1 x large.l4"),
        "{}",
        answer.verdict
    );
}

#[test]
fn a_plan_whose_search_ends_too_early_is_noted_with_its_gap() {
    let flags = flags(MARKET, "8x3xl4", &[]);
    let told = |work: u64| {
        let search = SearchFlags { work_limit: Some(work), ..SearchFlags::default() };
        let notes = answered_within(&flags, &search).expect("an answer").notes;
        notes.into_iter().find(|note| note.starts_with("the search for "))
    };
    // With so little work, the bound is three quarters of the GPUs of eight nodes. Each node holds one pod.
    let said = told(1).expect("a note");
    assert!(said.contains("large.l4 (on-demand)") && said.contains("gap up to 33 %"), "{said}");
    assert_eq!(told(20_000_000), None);
}

#[test]
fn the_assumptions_about_one_pod_are_about_one_pod() {
    let said = |shape: &str| found(MARKET, shape, &[]).assumptions.concat();
    let one = said("1x4xl4");
    assert!(one.contains("The job is 1 pod with 4 GPUs. It requests no CPU and no memory."), "{one}");
    let two = said("2x1xl4");
    assert!(two.contains("The job is 2 pods with 1 GPU each. They request no CPU and no memory."), "{two}");
}

#[test]
fn a_pod_with_more_gpus_than_any_type_has_is_told_how_to_be_several() {
    let answer = found("builtin", "64xh100", &[]);
    let expected = "64xh100 is one pod, and no type has as many GPUs; 8x8xh100 is 8 pods with 8 GPUs each";
    assert!(answer.notes.iter().any(|note| note == expected), "{:?}", answer.notes);
    assert!(answer.notes.iter().any(|note| note.contains("this plan buys from aws")), "{:?}", answer.notes);
    assert!(answer.assumptions.iter().any(|said| said.starts_with("The job is 1 pod with 64 GPUs. It ")));
    assert_eq!(answer.job, "64xh100", "it is named as it was written");
}

#[test]
fn a_type_that_does_not_hold_one_pod_says_so() {
    let answer = found(MARKET, "2x2xl4", &[]);
    assert_eq!(row(&answer, "large.l4", CapacityType::OnDemand).nodes, Some(1), "it holds two pods");
    let small = row(&answer, "small.l4", CapacityType::OnDemand);
    assert_eq!(small.reason.as_deref(), Some("does not hold one pod: it has 1 GPU, and a pod requests 2"));
}

#[test]
fn models_are_compared_and_one_without_a_price_is_named() {
    let answer = found(MARKET, "1xl4", &["--compare", "t4"]);
    let t4 = row(&answer, "small.t4", CapacityType::OnDemand);
    assert_eq!(t4.reason.as_deref(), Some("no price known: no source has a price for it"));
    assert!(
        answer.assumptions[0].starts_with("The job takes 10 h on each GPU model"),
        "{:?}",
        answer.assumptions
    );
}

#[test]
fn a_manifest_is_priced_on_what_its_pods_ask_for_or_on_other_models() {
    let job = format!("{MANIFESTS}/training-job.yaml");
    // Four pods request four GPUs, 24 cores and 200 GiB each, and ask for a100 or h100. A p4d.24xlarge holds two.
    let asked = found(BENCH, &job, &[]);
    let first = &asked.rows[0];
    assert_eq!((first.instance_type.as_str(), first.nodes), ("p4d.24xlarge", Some(2)), "{}", asked.verdict);
    assert_eq!(first.usd_per_job, Some(Usd(439_152_840)), "20 node-hours at $21.957642");
    let told =
        "as spot: p4d.24xlarge, p4de.24xlarge, p5.48xlarge; there is no spot offering, or no pool may buy it";
    assert_eq!(asked.not_sold, [told]);
    let mut models = asked.rows.iter().map(|row| row.gpu_model.as_deref());
    assert!(models.all(|model| matches!(model, Some("a100" | "h100"))), "{:?}", asked.rows);
    let left_out = "with GPU models that no pod asks for; --compare prices the job on other models";
    assert!(asked.notes.iter().any(|note| note.ends_with(left_out)), "{:?}", asked.notes);
    let other = found(BENCH, &job, &["--compare", "l4"]);
    assert!(other.rows.iter().all(|row| row.gpu_model.as_deref() == Some("l4")), "{:?}", other.rows);
    assert_eq!(row(&other, "g6.24xlarge", CapacityType::OnDemand).nodes, Some(4), "it holds one pod");
    let small = row(&other, "g6.12xlarge", CapacityType::OnDemand);
    let why = small.reason.as_deref().unwrap_or_default();
    assert!(why.starts_with("4 pods without a node: "), "it has too little memory: {why}");
}

#[test]
fn checkpoints_make_a_job_on_spot_nodes_cheaper() {
    let cost =
        |more: &[&str]| row(&found("builtin", "8xh100", more), "p5.48xlarge", CapacityType::Spot).clone();
    let (over, saved) = (cost(&[]), cost(&["--checkpoint", "30m"]));
    assert!(saved.usd_per_job.is_some() && saved.usd_per_job < over.usd_per_job, "{saved:?} {over:?}");
    assert!(saved.finish_hours > Some(10.0) && saved.finish_hours < over.finish_hours, "{saved:?} {over:?}");
}

#[test]
fn a_model_that_another_provider_sells_is_told() {
    let answer = found("builtin", "1xl4", &["--provider", "gcp", "--compare", "a10g"]);
    let told = "a10g: not sold here; the catalogue has it of aws (--provider)".to_owned();
    assert!(answer.not_sold.contains(&told), "{:?}", answer.not_sold);
}

#[test]
fn what_cannot_be_priced_is_refused_with_what_to_do() {
    let job = format!("{MANIFESTS}/training-job.yaml");
    let cpus = format!("{MANIFESTS}/cpu-statefulset.yaml");
    let pool = format!("{MANIFESTS}/pool.yaml");
    for (job, more, told) in [
        ("8xh1000", &[] as &[&str], "8xh1000: no type of the catalogue has this GPU; choose from"),
        (job.as_str(), &["--compare", "l44"], "--compare l44: no type of the catalogue has this GPU"),
        (cpus.as_str(), &["--compare", "l4"], "no pod requests whole GPUs"),
        (pool.as_str(), &[], "no object in it makes a pod"),
        ("no-such-file.yaml", &[], "there is no such file"),
    ] {
        let said = refused(job, more);
        assert!(said.contains(told), "{job} {more:?}: {said}");
    }
}

#[test]
fn tables_lines_and_pages_show_the_same_rows() {
    let answer = found(MARKET, "4x1xl4", &[]);
    let mut html = Vec::new();
    page::print(&answer, &mut html).expect("a list takes it");
    let html = String::from_utf8(html).expect("text");
    assert!(html.contains("<p class=\"verdict\">Cheapest: $26.02 for the job"), "{html}");
    let first = "<th scope=\"row\">large.l4</th><td>any</td><td>on-demand</td><td>cheapest</td><td class=\"number\">1</td>";
    assert!(html.contains(first) && html.contains("<td class=\"number\">$26.02</td>"), "{html}");
    assert_eq!(html.matches("<th scope=\"row\">").count(), answer.rows.len());
    let (mut page, mut lines) = (Vec::new(), Vec::new());
    table::print(&answer, TableLayout { width: None, wide: false }, &mut page).expect("a list takes it");
    csv_lines::print(&answer, &mut lines).expect("a list takes it");
    let (page, lines) = (String::from_utf8(page).expect("text"), String::from_utf8(lines).expect("text"));
    let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = page.lines().find(|line| line.ends_with("cheapest")).expect("a row");
    assert_eq!(cells(first), "on-demand 1 large.l4 any $2.60 $26.02 0.00 10.0 cheapest");
    assert_eq!(lines.lines().nth(1), Some("large.l4,on-demand,l4,1,any,2.6016,26.02,0,10,0,"));
    assert_eq!(lines.lines().count(), 5);
}
