//! The reasons of the conditions of KWOK's nodes. The status of a KwokNodeClass has no conditions.

use poolwright_terms::reasons;

reasons! {
    /// Why a condition of a node of KWOK has its status.
    pub(crate) enum KwokReason;
    NodeWithoutMachine: "The KWOK provider created the Node object and set its condition `Ready`. There is no machine.", "Nothing.";
}
