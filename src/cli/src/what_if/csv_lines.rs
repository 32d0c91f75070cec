//! The kinds of nodes as CSV.

use std::io::{self, Write};

use poolwright_catalog::UsdPerHour;

use super::answer::Answer;

/// The columns.
const COLUMNS: [&str; 7] = [
    "instance_type",
    "zone",
    "capacity_type",
    "before",
    "after",
    "usd_per_hour_each_before",
    "usd_per_hour_each_after",
];

/// Prints one line for each kind of node. A price that is unknown is empty.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(out);
    lines.write_record(COLUMNS)?;
    let price = |price: Option<UsdPerHour>| price.map_or_else(String::new, |price| price.to_string());
    for node in &answer.difference.nodes {
        lines.write_record([
            node.instance_type.clone(),
            node.zone.clone(),
            node.capacity_type.to_string(),
            node.before.to_string(),
            node.after.to_string(),
            price(node.usd_per_hour_before),
            price(node.usd_per_hour_after),
        ])?;
    }
    lines.flush()
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::answer;
    use super::*;

    #[test]
    fn each_kind_of_node_has_a_line() {
        let mut printed = Vec::new();
        print(&answer(), &mut printed).expect("a list takes it");
        assert_eq!(
            String::from_utf8(printed).expect("text"),
            "instance_type,zone,capacity_type,before,after,usd_per_hour_each_before,usd_per_hour_each_after\n\
             g5.xlarge,us-east-1a,on-demand,1,0,1.00,\n\
             g6.xlarge,us-east-1a,on-demand,0,1,,1.00\n"
        );
    }
}
