//! The answer as a page: the verdict, the kinds of node, the nodes that cost most, and folded lists.

use std::io::{self, Write};

use super::answer::Answer;
use super::sections::sections;
use crate::page::Page;
use crate::print::{count, money};

/// Prints the page.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut page = Page::new("What could a cluster save?");
    page.paragraph("verdict", &answer.verdict);
    page.paragraph("", &answer.may_buy);
    page.heading("Now and in the best plan");
    let kinds: Vec<Vec<String>> = answer
        .kinds
        .iter()
        .map(|kind| {
            vec![
                kind.instance_type.clone(),
                kind.zone.clone(),
                kind.capacity_type.to_string(),
                count(kind.now),
                count(kind.best),
                money(kind.usd_per_hour),
            ]
        })
        .collect();
    let header = ["instance type", "zone", "capacity", "now", "best plan", "$/h each"];
    page.table("kinds", "", &header, 3, &kinds);
    page.heading("Nodes that cost most");
    let dearest: Vec<Vec<String>> = answer
        .dearest
        .iter()
        .map(|node| {
            vec![
                node.name.clone(),
                format!("{} ({})", node.instance_type, node.capacity_type),
                node.fullest.clone().unwrap_or_default(),
                node.why.clone(),
                count(node.pods),
                format!("{:#}", node.usd_per_month),
            ]
        })
        .collect();
    let header = ["node", "type", "fullest", "in the best plan", "pods", "$/month"];
    page.table("dearest", "", &header, 4, &dearest);
    page.heading("Details");
    for (title, lines) in sections(answer) {
        page.folded(title, &lines);
    }
    page.write(out)
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::found;
    use super::*;

    #[test]
    fn the_page_has_the_verdict_both_tables_and_folded_lists() {
        let mut printed = Vec::new();
        print(&Answer::of(found()), &mut printed).expect("memory takes it");
        let text = String::from_utf8(printed).expect("text");
        assert!(text.contains("<p class=\"verdict\">Now $3,285.00/month on 3 nodes; "), "{text}");
        assert!(text.contains("<table id=\"kinds\">") && text.contains("<table id=\"dearest\">"), "{text}");
        assert!(text.contains("<summary>Pods that cannot move: "), "{text}");
    }
}
