//! Launch batches: claims of a plan that are launched in one call.
//!
//! Clouds limit the rate of calls, not their size. The batch is recorded on its claims when they are created. So after a crash
//! or a change of leader, the same call is repeated, and the cloud recognizes it.

use std::collections::BTreeMap;

use poolwright_api::NodeClaim;
use poolwright_core::ClaimName;
use poolwright_core::plan::PlannedClaim;
use poolwright_provider_contract::LaunchBatch;
use poolwright_terms::keys::LAUNCH_BATCH_ANNOTATION;

/// The most claims in a batch: if a call is delayed, all its claims wait.
const MOST: usize = 50;

/// Returns the batch of each claim that is not launched alone.
pub(crate) fn of(claims: &[PlannedClaim]) -> BTreeMap<ClaimName, LaunchBatch> {
    let mut alike: Vec<(&PlannedClaim, Vec<&ClaimName>)> = Vec::new();
    for claim in claims {
        match alike.iter_mut().find(|(first, _)| are_alike(first, claim)) {
            Some((_, names)) => names.push(&claim.name),
            None => alike.push((claim, vec![&claim.name])),
        }
    }
    let mut batches = BTreeMap::new();
    for (_, mut names) in alike {
        names.sort();
        for chunk in names.chunks(MOST).filter(|chunk| chunk.len() > 1) {
            let batch = LaunchBatch { id: id(chunk), size: chunk.len() };
            batches.extend(chunk.iter().map(|name| ((*name).clone(), batch.clone())));
        }
    }
    batches
}

/// Returns whether two claims make the same request to a cloud, apart from their names.
fn are_alike(one: &PlannedClaim, other: &PlannedClaim) -> bool {
    one.pool == other.pool
        && one.node_class == other.node_class
        && one.offerings == other.offerings
        && one.together == other.together
        && one.labels == other.labels
        && one.annotations == other.annotations
        && one.taints == other.taints
        && one.startup_taints == other.startup_taints
}

/// Returns the id of a batch: a hash of the names of its claims, which differ for each plan. FNV-1a with 64 bits suffices to
/// distinguish the batches of one cluster.
fn id(names: &[&ClaimName]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for name in names {
        for byte in name.0.bytes().chain([b'\n']) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// Returns the value of the batch annotation.
pub(crate) fn written(batch: &LaunchBatch) -> String {
    format!("{}/{}", batch.id, batch.size)
}

/// Returns the batch in a claim's annotation. A claim with an invalid value is launched alone.
pub(crate) fn read(claim: &NodeClaim) -> Option<LaunchBatch> {
    let (id, size) = claim.metadata.annotations.as_ref()?.get(LAUNCH_BATCH_ANNOTATION)?.split_once('/')?;
    let is_ours = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = size.parse().ok().filter(|size| (2..=MOST).contains(size))?;
    is_ours.then(|| LaunchBatch { id: id.to_owned(), size })
}

#[cfg(test)]
mod tests {
    use poolwright_api::NodeClaimSpec;
    use poolwright_core::PoolName;

    use super::*;
    use crate::executor::tests::planned as planned_claim;

    fn planned(name: &str, pool: &str) -> PlannedClaim {
        PlannedClaim { name: ClaimName(name.to_owned()), pool: PoolName(pool.to_owned()), ..planned_claim() }
    }

    #[test]
    fn claims_that_are_alike_are_launched_together_fifty_at_most() {
        let mut claims: Vec<_> = (0..101).map(|number| planned(&format!("a-{number:03}"), "a")).collect();
        claims.extend(["b-1", "b-2"].map(|name| planned(name, "b")));
        claims.push(planned("c-1", "c"));
        let mut dearer = planned("a-other", "a");
        dearer.offerings.truncate(1);
        dearer.offerings[0].price = None;
        claims.push(dearer);
        let batches = of(&claims);
        let size = |name: &str| batches.get(&ClaimName(name.to_owned())).map(|batch| batch.size);
        assert_eq!([size("a-000"), size("a-049"), size("a-050"), size("a-099")], [Some(50); 4]);
        assert_eq!(size("a-100"), None, "one that is left over is alone");
        assert_eq!([size("b-1"), size("b-2")], [Some(2); 2]);
        assert_eq!([size("c-1"), size("a-other")], [None; 2]);
        let mut ids: Vec<_> = batches.values().map(|batch| &batch.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3, "{ids:?}");
        claims.reverse();
        assert_eq!(of(&claims), batches, "whatever the order of the plan");
    }

    #[test]
    fn a_batch_annotation_is_read_only_in_its_own_format() {
        let claim = |text: Option<&str>| {
            let spec: NodeClaimSpec = serde_json::from_value(serde_json::json!({
                "nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "a"}, "offerings": []
            }))
            .expect("a claim");
            let mut claim = NodeClaim::new("a", spec);
            claim.metadata.annotations =
                text.map(|text| [(LAUNCH_BATCH_ANNOTATION.to_owned(), text.to_owned())].into());
            claim
        };
        let batch = LaunchBatch { id: "0123456789abcdef".to_owned(), size: 7 };
        assert_eq!(read(&claim(Some(&written(&batch)))), Some(batch));
        let others = [
            "",
            "/",
            "0123456789abcdef",
            "0123456789abcdef/1",
            "0123456789abcdef/51",
            "0123456789abcdef/-2",
            "short/2",
            "0123456789abcdeg/2",
            "0123456789abcdef/2/2",
        ];
        for other in others {
            assert_eq!(read(&claim(Some(other))), None, "{other}");
        }
        assert_eq!(read(&claim(None)), None);
    }
}
