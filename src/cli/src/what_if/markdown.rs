//! The answer as a comment for a pull request: the verdict, one table, and folded details.

use std::fmt::Write as _;
use std::io::{self, Write};

use poolwright_terms::one_line;

use super::answer::Answer;
use super::assumptions::Assumption;
use super::rows::{each, figures, more_of};
use super::table::{told, unplanned, waiting};
use crate::print::count;

/// The mark by which a program finds the comment, to replace it with a later one.
pub const MARK: &str = "<!-- poolwright what-if -->";

/// The most bytes of a comment. GitHub takes 65,536 characters, and GitLab more.
const MOST: usize = 60_000;

/// The bytes of a comment that are kept for each later list. A line has fewer.
const KEPT: usize = 4_000;

/// The most lines of one list.
const LINES: usize = 200;

/// The most bytes of one line. A longer message is cut.
const LINE: usize = 500;

/// Prints the comment.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    out.write_all(comment(answer).as_bytes())
}

fn comment(answer: &Answer) -> String {
    let mut text = format!("{MARK}\n**{}**\n", cell(&answer.verdict));
    for exceeded in &answer.exceeded {
        text.push_str("\n**Above the limit:** ");
        text.push_str(&cell(exceeded));
        text.push('\n');
    }
    text.push_str("\n| | before | after | difference |\n|---|---:|---:|---:|\n");
    for [name, before, after, difference] in figures(answer) {
        // A string takes everything.
        let _ = writeln!(text, "| {name} | {before} | {after} | {difference} |");
    }
    let nodes = answer.difference.nodes.iter().filter(|node| node.is_any()).map(|node| {
        let (kind, zone) = (&node.instance_type, &node.zone);
        let (before, after) = (count(node.before), count(node.after));
        format!(
            "{kind} in {zone} ({}), {} an hour each: {before}, then {after}",
            node.capacity_type,
            each(node)
        )
    });
    let moves = answer.difference.moves.iter();
    let moves = moves.map(|one| format!("{}: from {} to {}", one.pod, one.from, one.to));
    let details: [(&str, Vec<String>); 11] = [
        ("Changes", answer.changes.clone()),
        ("Nodes that differ", nodes.collect()),
        ("Pods that move", moves.collect()),
        ("Pods that are lost", answer.difference.lost.clone()),
        ("Pods that are added", answer.difference.added.clone()),
        ("Pods that are removed", answer.difference.removed.clone()),
        ("Pods that wait", waiting(&answer.after)),
        ("Not planned", unplanned(&answer.after)),
        ("Runner-up", answer.runner_up.iter().map(told).collect()),
        ("Assumptions", answer.assumptions.iter().map(Assumption::told).collect()),
        ("Notes", answer.notes.clone()),
    ];
    let begin = |title: &str, lines| format!("\n<details><summary>{title}: {}</summary>\n\n", count(lines));
    add_lists(&mut text, &details, begin, "\n</details>\n");
    text
}

/// Adds lists to a comment, apart from empty ones. Each is cut so that the later ones have room, and says how many lines it lacks.
/// `begin` takes a title and the number of lines.
pub fn add_lists(
    text: &mut String,
    lists: &[(&str, Vec<String>)],
    begin: impl Fn(&str, usize) -> String,
    end: &str,
) {
    let mut later = lists.iter().filter(|(_, lines)| !lines.is_empty()).count();
    for (title, lines) in lists.iter().filter(|(_, lines)| !lines.is_empty()) {
        later -= 1;
        text.push_str(&begin(title, lines.len()));
        let most = MOST.saturating_sub(later * KEPT);
        let mut shown = 0;
        for line in lines.iter().take(LINES) {
            let line = format!("- {}\n", cell(line));
            if text.len() + line.len() > most {
                break;
            }
            text.push_str(&line);
            shown += 1;
        }
        if let Some(more) = more_of(lines.len(), shown, "line") {
            // A string takes everything.
            let _ = writeln!(text, "- {more}");
        }
        text.push_str(end);
    }
}

/// Returns a text of others in one line in which nothing is markup.
pub fn cell(text: &str) -> String {
    let line = one_line(text);
    let cut = line.char_indices().map(|(at, _)| at).find(|at| *at >= LINE);
    let (shown, rest) = line.split_at(cut.unwrap_or(line.len()));
    let mut escaped = String::with_capacity(shown.len());
    for one in shown.chars() {
        match one {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A name with @ would notify a person.
            '@' => escaped.push_str("&#64;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' | '#' | '$' => {
                escaped.push('\\');
                escaped.push(one);
            }
            one => escaped.push(one),
        }
    }
    if !rest.is_empty() {
        escaped.push_str(" ...");
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::answer;
    use super::*;

    #[test]
    fn a_comment_begins_with_its_mark_and_has_one_table_and_folded_details() {
        let mut answer = answer();
        answer.difference.removed.push("ml/gone".to_owned());
        answer.difference.added.push("ml/new".to_owned());
        answer.after.unplanned.unread.push("Trainer ml/b".to_owned());
        let text = comment(&answer);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(MARK));
        let verdict = lines.next().expect("the verdict");
        assert!(verdict.starts_with(r"**+\$0.5000/h (+50.0 %), ") && verdict.ends_with("**"), "{verdict}");
        assert_eq!(text.matches("|---|").count(), 1, "one table");
        assert!(text.contains("\n| Cost per hour | $1.00 | $1.50 | +$0.5000 |\n"), "{text}");
        assert!(
            text.contains("<details><summary>Pods that move: 1</summary>\n\n- ml/a: from node gpu-1 to "),
            "{text}"
        );
        assert!(text.contains("<summary>Pods that are removed: 1</summary>\n\n- ml/gone\n"), "{text}");
        assert!(text.contains("<summary>Pods that are added: 1</summary>\n\n- ml/new\n"), "{text}");
        assert!(text.contains("<summary>Not planned: 1</summary>\n\n- Trainer ml/b: not read\n"), "{text}");
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }

    #[test]
    fn text_of_others_is_no_markup() {
        // The line feed shows as `\n`, and its backslash is no markup either.
        assert_eq!(cell("a|b <img> @me\n*x*"), r"a\|b &lt;img&gt; &#64;me\\n\*x\*");
        let long = cell(&"x".repeat(LINE + 1));
        assert_eq!(long, format!("{} ...", "x".repeat(LINE)));
    }

    #[test]
    fn a_comment_that_would_be_too_long_has_the_first_lines_of_each_list() {
        let mut long = answer();
        let all = vec!["@".repeat(LINE); 10_000];
        (long.changes, long.difference.lost, long.notes) = (all.clone(), all.clone(), all);
        let text = comment(&long);
        assert!(text.len() <= MOST + 1_000, "{}", text.len());
        for title in ["Changes", "Pods that are lost", "Notes"] {
            let (_, list) = text.split_once(&format!("<summary>{title}: 10,000</summary>")).expect("a list");
            let (list, _) = list.split_once("</details>").expect("its end");
            assert!(list.contains("- &#64;") && list.contains(" lines more; -o json lists them\n"), "{list}");
        }
    }
}
