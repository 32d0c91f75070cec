//! Whether a node has what was promised of it.

use poolwright_catalog::ResourceName;

/// Of what a catalogue can only estimate, a node may advertise this much less than was promised, in percent: how much memory a
/// machine's firmware and kernel leave differs from type to type.
const LESS: u128 = 5;

/// And this much more. Beyond that it is another machine than was ordered.
const MORE: u128 = 10;

/// Whether what a node advertises of a resource is what was promised: exactly, for devices, which are there or are broken; nearly,
/// for what every machine has. A pod that does not fit for the difference is planned anew, by what the node really has, and so
/// are pods on nodes of its type from then on (`index/measured.rs`).
pub(crate) fn is_kept(name: &ResourceName, promised: u64, advertised: u64) -> bool {
    if !is_estimated(name) {
        return advertised == promised;
    }
    let (promised, advertised) = (u128::from(promised) * 100, u128::from(advertised) * 100);
    let percent = promised / 100;
    (promised - LESS * percent..=promised + MORE * percent).contains(&advertised)
}

/// Whether a catalogue only estimates how much of it a node will have.
pub(crate) fn is_estimated(name: &ResourceName) -> bool {
    let known =
        [ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS];
    known.contains(&name.as_str())
}
