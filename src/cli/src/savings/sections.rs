//! The parts of the answer below its first line, as titles and lines. Tables and Markdown have the same.

use super::answer::Answer;
use super::converted::Summary;
use crate::print::{count, counted};

/// The most lines of a list.
const SHOWN: usize = 20;

/// Returns each part that has something to say: its title and its lines.
pub fn sections(answer: &Answer) -> Vec<(&'static str, Vec<String>)> {
    let fixed = answer.fixed.iter().map(|one| format!("{} on node {}: {}", one.pod, one.node, one.why));
    let left_out = answer.left_out.iter();
    let left_out = left_out.map(|one| format!("{} with {}: {}", one.node, counted(one.pods, "pod"), one.why));
    let all = [
        ("Why", answer.reasons.clone()),
        ("Moves", vec![moves(answer)]),
        ("Pods that cannot move", short(fixed)),
        ("Nodes of unknown price", short(left_out)),
        ("Karpenter's pools", answer.convert.iter().flat_map(conversion).collect()),
        ("Assumptions", answer.assumptions.clone()),
        ("Notes", answer.notes.clone()),
    ];
    all.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Says what the best plan needs.
fn moves(answer: &Answer) -> String {
    if answer.moves == 0 {
        return "The best plan needs no move of a pod.".to_owned();
    }
    let stay =
        format!("{} {}", counted(answer.stays, "node"), if answer.stays == 1 { "stays" } else { "stay" });
    let rest = match (answer.fixed.len(), answer.stays) {
        (0, 0) => "every pod can move".to_owned(),
        (0, _) => stay,
        (some, _) => format!("{} cannot move, and {stay}", counted(some, "pod")),
    };
    format!("{:#}/month needs moves of {}; {rest}.", answer.best.usd_per_month, counted(answer.moves, "pod"))
}

/// Returns the first lines, and how many more there are.
fn short(lines: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = lines.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = lines.take(SHOWN).collect();
    shown.extend((more > 0).then(|| format!("{} more; -o json lists them", count(more))));
    shown
}

/// Says what `convert` makes.
fn conversion(summary: &Summary) -> Vec<String> {
    let Summary { of, pools, node_classes, kept, changed, not_possible, problems, next } = summary;
    let mut told = vec![format!(
        "`convert` makes {} and {} of {}: {kept} fields kept, {changed} changed, {not_possible} not possible.",
        counted(*pools, "NodePool"),
        if *node_classes == 1 { "1 node class".to_owned() } else { format!("{node_classes} node classes") },
        counted(*of, "NodePool")
    )];
    told.extend(problems.iter().map(|problem| format!("Not converted: {problem}")));
    told.push(format!("Next: {next}"));
    told
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::found;
    use super::*;

    #[test]
    fn parts_tell_what_moves_what_cannot_and_what_convert_makes() {
        let mut answer = Answer::of(found());
        answer.convert = Some(Summary {
            of: 2,
            pools: 1,
            node_classes: 1,
            kept: 5,
            changed: 2,
            not_possible: 1,
            problems: vec!["NodePool/b: spec: it is odd".to_owned()],
            next: "poolwright convert -f pools.yaml > converted.yaml".to_owned(),
        });
        let all = sections(&answer);
        let of = |title: &str| {
            let found = all.iter().find(|(one, _)| *one == title);
            found.map(|(_, lines)| lines.join("\n")).unwrap_or_default()
        };
        assert_eq!(of("Moves"), "$1,825.00/month needs moves of 1 pod; 1 pod cannot move, and 1 node stays.");
        // A pod that can move may have no other place.
        answer.fixed.clear();
        assert_eq!(moves(&answer), "$1,825.00/month needs moves of 1 pod; 1 node stays.");
        answer.stays = 0;
        assert_eq!(moves(&answer), "$1,825.00/month needs moves of 1 pod; every pod can move.");
        assert_eq!(of("Pods that cannot move"), "ml/q on node stays: no controller would make it anew");
        assert_eq!(
            of("Karpenter's pools"),
            "`convert` makes 1 NodePool and 1 node class of 2 NodePools: 5 fields kept, 2 changed, 1 not possible.\n\
             Not converted: NodePool/b: spec: it is odd\n\
             Next: poolwright convert -f pools.yaml > converted.yaml"
        );
        assert_eq!(of("Nodes of unknown price"), "", "there is none");
    }
}
