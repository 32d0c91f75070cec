//! Listings of instances, as text: what is cut out of them, and what is changed in them.

/// The item of an instance in an answer: from its beginning to its end.
fn item_of(answer: &str, id: &str) -> Option<(usize, usize)> {
    let at = answer.find(&format!("<instanceId>{id}</instanceId>"))?;
    // Items are nested: the one that holds the id is the last that is open before it.
    let (mut open, mut cursor) = (Vec::new(), 0);
    while let Some(next) = answer[cursor..].find("item>").map(|found| cursor + found) {
        let (is_end, start) =
            if answer[..next].ends_with("</") { (true, next - 2) } else { (false, next - 1) };
        cursor = next + "item>".len();
        if is_end {
            let begun: usize = open.pop()?;
            if begun < at && start > at {
                return Some((begun, cursor));
            }
        } else {
            open.push(start);
        }
    }
    None
}

/// The listing without this instance.
pub(super) fn without_instance(answer: &str, id: &str) -> String {
    match item_of(answer, id) {
        Some((begin, end)) => format!("{}{}", &answer[..begin], &answer[end..]),
        None => answer.to_owned(),
    }
}

/// The listing with this instance on its way out.
pub(super) fn terminating(answer: &str, id: &str) -> String {
    match item_of(answer, id) {
        Some((begin, end)) => {
            let item = answer[begin..end].replace("<name>running</name>", "<name>shutting-down</name>");
            format!("{}{item}{}", &answer[..begin], &answer[end..])
        }
        None => answer.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_cut_out_of_a_listing_with_all_that_is_nested_in_it() {
        let listing = "<set><item><r/><instancesSet><item><tagSet><item><k/></item></tagSet><instanceId>i-1</instanceId>\
                       <name>running</name></item><item><instanceId>i-2</instanceId><name>running</name></item></instancesSet></item></set>";
        assert_eq!(
            without_instance(listing, "i-1"),
            "<set><item><r/><instancesSet><item><instanceId>i-2</instanceId><name>running</name></item></instancesSet></item></set>"
        );
        let going = terminating(listing, "i-2");
        assert_eq!(going.matches("shutting-down").count(), 1);
        assert!(going.contains("<instanceId>i-2</instanceId><name>shutting-down</name>"), "{going}");
        assert_eq!(without_instance(listing, "i-3"), listing);
    }
}
