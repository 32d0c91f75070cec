//! Explanations of nodes that stay: why consolidation does not empty them, and what that would save.

use crate::disruption::Outlook;
use crate::rules::format::list;

/// Says of a node that Poolwright did not buy why it is not consolidated.
pub const NOT_OURS: &str = "Not consolidated: Poolwright did not buy this node, so it never empties it.";

/// The most claims that are named.
const SHOWN: usize = 4;

/// Returns the lines about the outlook of a node.
pub fn consolidation(outlook: &Outlook) -> Vec<String> {
    match outlook {
        Outlook::Leaves(why) => {
            vec![format!("The next search for savings would empty it: {}.", why.trim_end_matches('.'))]
        }
        Outlook::Later { first, why } => {
            let names: Vec<String> = first.iter().map(ToString::to_string).collect();
            let (is, names) =
                (if names.len() == 1 { "node of claim" } else { "nodes of claims" }, list(&names, SHOWN));
            let next = if first.is_empty() {
                "The next search for savings tries other nodes first".to_owned()
            } else {
                format!("The next search for savings would empty the {is} {names} first")
            };
            vec![
                format!("{next}; a later one looks at this node again."),
                format!("If it alone were emptied: {}.", why.trim_end_matches('.')),
            ]
        }
        Outlook::Stays { why, elsewhere } => {
            let mut lines = vec![format!("Not consolidated: {}.", why.to_string().trim_end_matches('.'))];
            lines.extend(elsewhere.as_ref().map(|elsewhere| {
                let (before, after, places) = (elsewhere.before, elsewhere.after, &elsewhere.places);
                if after < before {
                    let saving = before.saturating_sub(after).with_month();
                    format!("Without that, emptying it might save up to {saving}: its pods would go to {places}.")
                } else {
                    format!(
                        "Emptying it would save nothing: its pods would cost {after:#} elsewhere ({places}), and it costs {before:#}."
                    )
                }
            }));
            lines
        }
    }
}
