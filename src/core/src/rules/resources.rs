//! Resource requests: all of them must fit.

use poolwright_catalog::ResourceList;

use crate::rules::rejection::Rejection;

/// Checks whether the requests fit into the free resources.
pub fn check(requests: &ResourceList, room: &ResourceList) -> Result<(), Rejection> {
    requests.first_shortage(room).map_or(Ok(()), |shortage| Err(Rejection::Resource(shortage)))
}
