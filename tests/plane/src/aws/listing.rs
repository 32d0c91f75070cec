//! Searches and edits the XML of instance listings.

/// Returns the range of the item of an instance, tags included.
fn item_of(answer: &str, id: &str) -> Option<(usize, usize)> {
    let at = answer.find(&format!("<instanceId>{id}</instanceId>"))?;
    // Items are nested. The innermost item around the id is the one that closes first.
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

/// Returns the content of each item in the first set of this name.
pub(super) fn items<'a>(answer: &'a str, set: &str) -> Vec<&'a str> {
    let open = format!("<{set}>");
    let Some(begin) = answer.find(&open).map(|at| at + open.len()) else { return Vec::new() };
    let (mut found, mut depth, mut start, mut cursor) = (Vec::new(), 0_usize, begin, begin);
    let end_of_set = format!("</{set}>");
    while let Some(next) = answer[cursor..].find('<').map(|at| cursor + at) {
        let rest = &answer[next..];
        cursor = next + 1;
        if rest.starts_with("<item>") {
            cursor = next + "<item>".len();
            if depth == 0 {
                start = cursor;
            }
            depth += 1;
        } else if rest.starts_with("</item>") {
            depth -= 1;
            if depth == 0 {
                found.push(&answer[start..next]);
            }
        } else if depth == 0 && rest.starts_with(&end_of_set) {
            break;
        }
    }
    found
}

/// Returns the listing without this instance.
pub(super) fn without_instance(answer: &str, id: &str) -> String {
    match item_of(answer, id) {
        Some((begin, end)) => format!("{}{}", &answer[..begin], &answer[end..]),
        None => answer.to_owned(),
    }
}

/// Returns the listing with this instance shutting down instead of running.
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

    #[test]
    fn items_of_a_set_are_told_apart_from_those_nested_in_them_and_from_those_after_it() {
        let answer = "<a><item><n>1</n><b><item>2</item></b></item><item>3</item></a><b><item>4</item></b>";
        assert_eq!(items(answer, "a"), ["<n>1</n><b><item>2</item></b>", "3"]);
        assert_eq!(items(answer, "b"), ["2"]);
        assert!(items(answer, "c").is_empty());
    }
}
