//! How a cloud makes itself known: everything that the rest of Poolwright asks of it, in one value.

use crate::market::MarketReader;
use crate::node_class::NodeClassKind;

/// A cloud. `poolwright-provider-registry` lists them all and is the only crate that names them.
#[derive(Clone, Copy)]
pub struct Registration {
    /// Its name, as `--provider` takes it and catalogues write it: `kwok`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The node class that it launches nodes with.
    pub node_class: NodeClassKind,
    /// Reads what it sells now; `None` where it sells what a catalogue lists.
    pub market: Option<&'static dyn MarketReader>,
}
