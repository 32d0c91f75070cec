//! Resource requests: all must fit.

use poolwright_catalog::ResourceList;

use crate::rules::rejection::Rejection;

/// Returns whether the requests fit into the free resources.
pub fn check(requests: &ResourceList, room: &ResourceList) -> Result<(), Rejection> {
    requests.first_shortage(room).map_or(Ok(()), |shortage| Err(Rejection::Resource(shortage)))
}
