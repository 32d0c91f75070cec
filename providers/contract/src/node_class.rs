//! A kind of node class: the custom resource in which users write how a cloud launches nodes.

/// A kind of node class. Its API group and version are [`poolwright_terms::API_VERSION`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeClassKind {
    /// The kind: `KwokNodeClass`.
    pub kind: &'static str,
    /// The resource in the paths of the API: `kwoknodeclasses`.
    pub plural: &'static str,
}
