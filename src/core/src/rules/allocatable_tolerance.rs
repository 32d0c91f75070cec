//! Tolerances for differences between the allocatable resources that a catalogue promises and the resources that a node reports.

use poolwright_catalog::ResourceName;

/// The percentage by which a node may report less of an estimated resource than promised. The memory that a machine's firmware
/// and kernel leave free differs by type.
const LESS: u128 = 5;

/// The percentage by which a node may report more. If it reports even more, it is not the machine that was launched.
const MORE: u128 = 10;

/// Returns whether a node reports the promised amount of a resource: exactly for devices, approximately for estimated resources.
/// A pod that does not fit because of the difference is planned again with the real amount, and so are later pods for nodes of
/// this type (`index/measured.rs`).
pub(crate) fn is_kept(name: &ResourceName, promised: u64, advertised: u64) -> bool {
    if !is_estimated(name) {
        return advertised == promised;
    }
    let (promised, advertised) = (u128::from(promised) * 100, u128::from(advertised) * 100);
    let percent = promised / 100;
    (promised - LESS * percent..=promised + MORE * percent).contains(&advertised)
}

/// Returns whether a catalogue only estimates this resource.
pub(crate) fn is_estimated(name: &ResourceName) -> bool {
    let known =
        [ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS];
    known.contains(&name.as_str())
}
