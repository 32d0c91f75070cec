//! Messages about pods without a place.

use poolwright_terms::labels::HOSTNAME;

use crate::plan::place::topology::places::{NONE, Place, Places};
use crate::plan::place::topology::relations::Relations;
use crate::plan::place::topology::tally::{Refusal, Tally};
use crate::rules::spread::domains::DomainSpread;
use crate::rules::spread::messages;

/// The most values that a message lists.
const SHOWN: usize = 6;

/// Returns the message for a pod that every possible place refuses.
pub(crate) fn refused(
    relations: &Relations<'_>,
    places: &Places<'_>,
    tally: &Tally,
    refusals: &[(&Place, Refusal)],
) -> String {
    let Some((_, first)) = refusals.first() else {
        return "no more nodes are available in any place that fits it".to_owned();
    };
    match *first {
        Refusal::NoLabel(key) if relations.keys[key] == HOSTNAME => {
            "must share a node with other pods (required pod affinity), but neither their node nor an available offering has room for all of them; free room on that node, let a pool buy larger nodes if none of them runs yet, or change the rule".to_owned()
        }
        Refusal::NoLabel(key) => format!(
            "must be on a node with the label `{}`, but no node or offering that fits it has this label; add the label to a pool's template, or change the rule",
            relations.keys[key]
        ),
        Refusal::Uneven(spread) => {
            let DomainSpread { rule, key, .. } = relations.spreads[spread];
            let mut domains: Vec<(String, u64)> = tally
                .counts(spread)
                .map(|(value, count)| (places.values[key][value].clone(), count))
                .collect();
            domains.sort();
            let mut full: Vec<&str> =
                refusals.iter().filter_map(|(place, _)| value(places, place, key)).collect();
            full.sort_unstable();
            full.dedup();
            messages::no_domain(rule, &domains, &full)
        }
        Refusal::Alone(affinity) => {
            let set = &relations.affinities[affinity];
            let over: Vec<String> = set.terms.iter().map(|term| format!("`{}`", term.topology_key)).collect();
            if tally.is_nowhere(affinity) {
                format!(
                    "must be with other pods over {} (required pod affinity), but the rule selects no running or planned pod; create those pods first, or correct the labelSelector or namespaces of the rule",
                    over.join(" and ")
                )
            } else {
                format!(
                    "must be with other pods over {} (required pod affinity), but no offering that fits it is available where they are; let a pool buy there, or change the rule",
                    over.join(" and ")
                )
            }
        }
        Refusal::Apart { anti, its_own } => {
            let key = relations.keys[relations.antis[anti].key];
            let whose = if its_own { "keeps away from other pods" } else { "is kept away by other pods" };
            let taken: Vec<&str> = refusals
                .iter()
                .filter_map(|(place, _)| value(places, place, relations.antis[anti].key))
                .take(SHOWN)
                .collect();
            format!(
                "{whose} over `{key}` (required pod anti-affinity), and such pods are in every place that fits it: {}; let a pool buy in another place, or change the rule",
                taken.join(", ")
            )
        }
    }
}

fn value<'p>(places: &'p Places<'_>, place: &Place, key: usize) -> Option<&'p str> {
    (place[key] != NONE).then(|| places.values[key][place[key] as usize].as_str())
}
