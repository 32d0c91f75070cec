//! How many equal nodes hold the pods of a gang, and what these nodes use of limits.

use poolwright_catalog::ResourceList;

use crate::model::PodSpec;

/// Limits, each with the amount that a gang would take of it at once.
pub(crate) type Takes = Vec<(u32, u64)>;

/// Equal pods of a gang: what they ask for, and their number.
pub(crate) type Alike<'p> = (&'p PodSpec, ResourceList, u64);

/// Returns what so many nodes use of each limit.
pub(crate) fn times(of_one: &[(u32, u64)], nodes: u64) -> Takes {
    of_one.iter().map(|(limit, amount)| (*limit, amount.saturating_mul(nodes))).collect()
}

/// Returns the number of nodes with this room that hold all of the pods; `None` if one of them fits on none.
pub(crate) fn nodes_for(alike: &[Alike<'_>], room: &ResourceList) -> Option<u64> {
    let mut open: Vec<u64> = alike.iter().map(|(.., count)| *count).collect();
    let mut nodes = 0_u64;
    while open.iter().any(|count| *count > 0) {
        let mut free = room.clone();
        let mut taken = vec![0_u64; alike.len()];
        for ((_, requests, _), (open, taken)) in alike.iter().zip(open.iter().zip(&mut taken)) {
            *taken = most(requests, &free).min(*open);
            for (name, wanted) in requests.iter() {
                let left = free.get(name.as_str()).saturating_sub(wanted.saturating_mul(*taken));
                free.set(name.clone(), left);
            }
        }
        // As many nodes as possible are filled like this one.
        let filled = open.iter().zip(&taken).filter_map(|(open, taken)| open.checked_div(*taken)).min()?;
        nodes = nodes.saturating_add(filled);
        for (open, taken) in open.iter_mut().zip(&taken) {
            *open -= filled * taken;
        }
    }
    Some(nodes)
}

/// Returns the most pods with these requests that the room holds.
pub(crate) fn most(requests: &ResourceList, room: &ResourceList) -> u64 {
    let each = requests.iter().filter_map(|(name, wanted)| room.get(name.as_str()).checked_div(wanted));
    each.min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolwright_catalog::ResourceName;

    #[test]
    fn pods_of_several_kinds_share_nodes_and_a_pod_that_fits_on_none_has_no_number() {
        let spec = PodSpec::default();
        let of = |cpu: u64| ResourceList::new().with(ResourceName::CPU, cpu);
        let nodes = |pods: &[(u64, u64)], room: u64| {
            let alike: Vec<Alike<'_>> = pods.iter().map(|(cpu, count)| (&spec, of(*cpu), *count)).collect();
            nodes_for(&alike, &of(room))
        };
        assert_eq!(nodes(&[(1000, 4)], 3900), Some(2));
        assert_eq!(nodes(&[(3000, 3)], 7900), Some(2));
        assert_eq!(nodes(&[(3000, 2), (1000, 3)], 4000), Some(3));
        assert_eq!(nodes(&[(3000, 2), (5000, 1)], 4000), None);
    }
}
