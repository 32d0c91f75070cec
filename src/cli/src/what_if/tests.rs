//! Tests of whole answers, for manifests.

use std::fs;
use std::io::{self, Write};
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::mpsc::channel;

use clap::Parser;
use poolwright_catalog::UsdPerHour;

use super::answer::Answer;
use super::{answered, run, side_by_side};
use crate::args::{Cli, Command, WhatIfFlags};
use crate::exit::{ExitStatus, Failure};

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/manifests");

/// Reads these arguments, in which `@` stands for the folder of manifests.
fn flags(args: &[&str]) -> WhatIfFlags {
    let args = args.iter().map(|arg| arg.replace('@', MANIFESTS));
    let typed = ["poolwright", "what-if"].map(str::to_owned).into_iter().chain(args);
    let Command::WhatIf(flags) = Cli::try_parse_from(typed).expect("flags").command else {
        panic!("it is what-if")
    };
    *flags
}

fn answer(args: &[&str]) -> Result<Answer, Failure> {
    answered(&flags(args))
}

fn found(args: &[&str]) -> Answer {
    answer(args).unwrap_or_else(|failure| panic!("{args:?}: {failure:?}"))
}

fn refused(args: &[&str]) -> String {
    match answer(args) {
        Err(Failure::BadInput(told)) => told,
        other => panic!("{args:?}: {other:?}"),
    }
}

const BASE: [&str; 3] = ["--base", "@/pool.yaml", "@/two-gpu-pods.yaml"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    BASE.iter().chain(more).copied().collect()
}

#[test]
fn from_nothing_the_difference_is_the_whole_cost() {
    let all = found(&["--base", "nothing", "-f", "@/pool.yaml", "@/two-gpu-pods.yaml"]);
    assert_eq!(all.before.usd_per_hour, UsdPerHour::ZERO);
    assert_eq!(all.after.usd_per_hour, UsdPerHour::from_micros(2_012_000));
    assert_eq!(all.difference.usd_per_hour.to_string(), "+$2.01/h");
    assert!(all.differs && all.difference.added == ["default/render-a", "default/render-b"]);
    assert!(all.verdict.ends_with("; 2 more g5.xlarge; 2 pods are added; nothing waits"), "{}", all.verdict);
    assert_eq!(
        all.after.usd_per_hour_at_half_more_load,
        Some(UsdPerHour::from_micros(3_018_000)),
        "two pods and half as many again are three"
    );
}

#[test]
fn a_pod_that_is_removed_takes_its_node_with_it() {
    let less = found(&with(&["--remove", "pod/render-a"]));
    assert_eq!(less.difference.usd_per_hour.to_string(), "-$1.01/h");
    assert_eq!(less.difference.removed, ["default/render-a"]);
    assert!(
        less.verdict.ends_with("; 1 fewer g5.xlarge; 1 pod is removed; nothing waits"),
        "{}",
        less.verdict
    );
}

#[test]
fn replicas_and_load_scale_a_deployment() {
    let base = ["--base", "@/inference-deployment.yaml"];
    let twenty = [&base[..], &["--replicas", "deploy/model-server=20"][..]].concat();
    let double = [&base[..], &["--load", "x2"][..]].concat();
    let (twenty, double) = (found(&twenty), found(&double));
    assert_eq!(twenty.difference.added.len(), 10);
    assert_eq!(double.difference.added.len(), 10);
    assert_eq!(twenty.after.usd_per_hour, double.after.usd_per_hour);
}

#[test]
fn a_rise_of_prices_changes_the_cost_and_no_node() {
    let dearer = found(&with(&["--price", "*=+10%"]));
    assert_eq!(dearer.difference.percent.as_deref(), Some("+10.0 %"));
    assert!(dearer.verdict.ends_with("; the same nodes; nothing waits"), "{}", dearer.verdict);
}

#[test]
fn without_a_type_pods_move_and_an_outage_moves_them_too() {
    let without = found(&with(&["--without", "g5.xlarge"]));
    assert_eq!(without.difference.moves.len(), 2, "{}", without.verdict);
    let nothing = found(&with(&["--without", "*"]));
    let said = "pool gpu: NoOfferingMatches: KwokNodeClass `aws` has no offering";
    assert!(nothing.notes.iter().any(|note| note.starts_with(said)), "{:?}", nothing.notes);
    let outage = found(&with(&["--outage", "zone=us-east-1a"]));
    assert!(outage.after.waiting.is_empty(), "{}", outage.verdict);
    assert!(outage.difference.nodes.iter().all(|node| node.after == 0 || node.zone != "us-east-1a"));
}

#[test]
fn spot_costs_less_and_a_change_that_matches_nothing_is_refused() {
    let spot = found(&with(&["--spot"]));
    assert!(spot.after.usd_per_hour < spot.before.usd_per_hour, "{}", spot.verdict);
    for (args, told) in [
        (&["--no-spot"][..], "matches nothing"),
        (&["--without", "g5.xlarg"], "did you mean g5.xlarge?"),
        (&["--outage", "zone=us-east-1z"], "matches nothing"),
        (&["--price", "g55.*=+5%"], "matches nothing"),
        (&["--remove", "pod/render-c"], "did you mean pod/render-a?"),
        (&["--remove", "nodepool/gpu"], "would leave no NodePool"),
        (&["--sharing", "none"], "matches nothing"),
        (&["--gpu", "h100=l4"], "no pod asks for h100"),
        (&["--gpu", "a10g=l44"], "nothing with l44 may be bought"),
    ] {
        let said = refused(&with(args));
        assert!(said.contains(told), "{args:?}: {said}");
    }
    assert!(refused(&BASE).contains("there is no change"));
}

#[test]
fn pods_that_ask_for_another_model_get_another_node() {
    let cheaper = found(&with(&["--gpu", "a10g=l4"]));
    assert_eq!(cheaper.difference.moves.len(), 2, "{}", cheaper.verdict);
    assert!(cheaper.verdict.contains("; 2 fewer g5.xlarge, 2 more g6.xlarge; "), "{}", cheaper.verdict);
}

#[test]
fn an_object_that_is_replaced_by_its_equal_is_no_difference() {
    let same = found(&with(&["-f", "@/two-gpu-pods.yaml"]));
    assert!(!same.differs, "{}", same.verdict);
    assert_eq!(same.verdict, "the cost stays the same; the same nodes; nothing waits");
}

#[test]
fn both_sides_are_done_at_once_and_a_panic_of_either_is_passed_on() {
    let (ask, asked) = channel();
    let (answer, answered) = channel();
    // Each waits for the other, so one after the other they would never end.
    let one = move || {
        let question: u32 = asked.recv().expect("the other side asks");
        answer.send(question + 1).expect("the other side waits");
    };
    let other = || {
        ask.send(1).expect("this side waits");
        answered.recv().expect("an answer")
    };
    assert_eq!(side_by_side(one, other), ((), 2));
    let panics = || -> u32 { panic!("planning failed") };
    assert!(catch_unwind(|| side_by_side(panics, || 1)).is_err());
    assert!(catch_unwind(|| side_by_side(|| 1, panics)).is_err());
}

/// A reader that is gone.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::BrokenPipe))
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

#[test]
fn the_exit_code_is_the_same_if_nobody_reads_the_answer() {
    for (more, status) in [
        (&["--price", "*=+10%"][..], ExitStatus::Different),
        (&["--price", "*=+10%", "--fail-above", "percent=5"], ExitStatus::AboveLimit),
    ] {
        let found = run(&flags(&with(more)), &mut Gone);
        assert_eq!(found.unwrap_or_else(|failure| panic!("{failure:?}")), status);
    }
}

#[test]
fn a_limit_is_above_if_the_change_adds_a_node_of_unknown_price() {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: odd, uid: odd, labels: {node.kubernetes.io/instance-type: odd.large,
      topology.kubernetes.io/zone: us-east-1a}}, status: {allocatable: {cpu: '1', memory: 1Gi, pods: '9'},
      conditions: [{type: Ready, status: 'True'}]}}\n";
    let file = file("unpriced", node);
    let limit = ["-f", file.to_str().expect("UTF-8"), "--fail-above", "usd=1000"];
    let mut printed = Vec::new();
    let status = run(&flags(&with(&limit)), &mut printed);
    fs::remove_file(&file).expect("the file is there");
    assert_eq!(status.unwrap_or_else(|failure| panic!("{failure:?}")), ExitStatus::AboveLimit);
    let printed = String::from_utf8(printed).expect("text");
    let said =
        "\nAbove the limit: the rise cannot be judged, because the change adds 1 node of unknown price; ";
    assert!(printed.contains(said), "{printed}");
}

/// Writes manifests to a file.
fn file(name: &str, text: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("poolwright-what-if-{name}-{}.yaml", std::process::id()));
    fs::write(&file, text).expect("a file");
    file
}

#[test]
fn an_object_that_is_not_read_on_one_side_is_a_difference() {
    let text = "{apiVersion: example.com/v1, kind: Trainer, metadata: {name: a},
        spec: {template: {spec: {containers: [{image: x, name: a}]}}}}\n";
    let file = file("unread", text);
    let more = found(&with(&["-f", file.to_str().expect("UTF-8")]));
    fs::remove_file(&file).expect("the file is there");
    assert!(more.differs);
    assert_eq!(more.after.unplanned.unread, ["Trainer default/a"]);
    assert!(
        more.verdict.ends_with("; nothing waits; 1 object that makes pods is not read"),
        "{}",
        more.verdict
    );
}

#[test]
fn a_node_has_the_price_of_its_region_and_what_is_not_known_of_prices_is_told() {
    let node = |name: &str, kind: &str, more: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, uid: {name}, labels: {{
              node.kubernetes.io/instance-type: {kind}, topology.kubernetes.io/zone: us-central1-a,
              topology.kubernetes.io/region: us-central1{more}}}}}, status: {{allocatable: {{cpu: '7', memory: 28Gi, pods: '110'}},
              conditions: [{{type: Ready, status: 'True'}}]}}}}\n"
        )
    };
    let spot = ", cloud.google.com/gke-provisioning: spot";
    let odd = ", karpenter.sh/capacity-type: odd";
    let base = [
        node("a", "g2-standard-8", spot),
        node("b", "g2-standard-8", ""),
        node("c", "g2-standard-8", odd),
        node("d", "m5.large", spot),
    ];
    let file = file("region", &base.join("---\n"));
    let path = file.to_str().expect("UTF-8");
    let dearer = found(&["--base", path, "--provider", "gcp", "--price", "g2-standard-8=+100%"]);
    fs::remove_file(&file).expect("the file is there");
    let amount = |text: &str| text.parse::<UsdPerHour>().expect("an amount");
    let known = amount("0.479872") + amount("0.853624");
    let side = (dearer.before.usd_per_hour, dearer.before.unknown_prices);
    assert_eq!((side, dearer.after.usd_per_hour), ((known, 2), known.times(2)), "{:?}", dearer.notes);
    for said in [
        "1 node does not say how it was bought, so it counts as on demand",
        "node c has no known price, because its label karpenter.sh/capacity-type=odd is no known capacity type; ",
        "node d has no known price, because the catalogue has no type m5.large; --catalogue takes ",
    ] {
        assert!(dearer.notes.iter().any(|note| note.starts_with(said)), "{said}: {:?}", dearer.notes);
    }
}

#[test]
fn a_pod_without_a_controller_that_another_preempts_is_lost() {
    let base = "\
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: v1, kind: Node, metadata: {name: n1, uid: n1, labels: {kubernetes.io/hostname: n1}}, status: {
  allocatable: {cpu: '4', memory: 16Gi, pods: '110'}, capacity: {cpu: '4', memory: 16Gi, pods: '110'},
  conditions: [{type: Ready, status: 'True'}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: low, uid: low}, spec: {nodeName: n1, priority: 0,
  containers: [{image: x, name: a, resources: {requests: {cpu: '3'}}}]}, status: {phase: Running}}
";
    let urgent = "\
{apiVersion: v1, kind: Pod, metadata: {name: urgent}, spec: {priorityClassName: high,
  containers: [{image: x, name: a, resources: {requests: {cpu: '3'}}}]}}
";
    let (base, urgent) = (file("base", base), file("urgent", urgent));
    let paths = [&base, &urgent].map(|file| file.to_str().expect("UTF-8"));
    let more = found(&["--base", paths[0], "-f", paths[1]]);
    for file in [&base, &urgent] {
        fs::remove_file(file).expect("the file is there");
    }
    assert_eq!(more.difference.lost, ["default/low"], "{}", more.verdict);
    assert!(
        more.difference.removed.is_empty() && more.verdict.contains("; 1 pod is lost; "),
        "{}",
        more.verdict
    );
}
