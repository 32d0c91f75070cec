//! The answer as Markdown: the verdict, one table, and lists.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::answer::Answer;
use super::sections::sections;
use crate::what_if::{add_lists, cell};

/// Prints the answer.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    out.write_all(page(answer).as_bytes())
}

fn page(answer: &Answer) -> String {
    let mut text = format!("**{}**\n\n{}\n", cell(&answer.verdict), cell(&answer.may_buy));
    text.push_str("\n| node that costs much | type | $/month | pods | fullest | in the best plan |\n");
    text.push_str("|---|---|---:|---:|---|---|\n");
    for node in &answer.dearest {
        // A string takes everything.
        let _ = writeln!(
            text,
            "| {} | {} ({}) | {} | {} | {} | {} |",
            cell(&node.name),
            cell(&node.instance_type),
            node.capacity_type,
            cell(&format!("{:#}", node.usd_per_month)),
            node.pods,
            cell(node.fullest.as_deref().unwrap_or("-")),
            cell(&node.why)
        );
    }
    add_lists(&mut text, &sections(answer), |title, _| format!("\n**{title}**\n\n"), "");
    text
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::found;
    use super::*;

    #[test]
    fn the_page_has_the_verdict_one_table_and_lists() {
        let text = page(&Answer::of(found()));
        assert!(text.starts_with(r"**Now \$3,285.00/month on 3 nodes; "), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("|--")).count(), 1, "one table");
        assert!(text.contains(
            "| empty | large (on-demand) | \\$1,095.00 | 0 | cpu 0.0 % | it goes: no pod needs it |"
        ));
        assert!(text.contains("\n**Moves**\n\n- \\$1,825.00/month needs moves of 1 pod; "), "{text}");
    }

    #[test]
    fn a_page_with_many_notes_fits_into_a_comment() {
        let mut answer = Answer::of(found());
        answer.notes = vec!["x".repeat(400); 10_000];
        let text = page(&answer);
        assert!(text.len() < 65_536 && text.ends_with(" lines more; -o json lists them\n"), "{}", text.len());
    }
}
