//! How a cloud makes itself known: everything that the rest of Poolwright asks of it, in one value.

use crate::connect::Connect;
use crate::flags::Flag;
use crate::karpenter::FromKarpenter;
use crate::market::MarketReader;
use crate::node_class::NodeClass;
use crate::preflight::Preflight;

/// A cloud. `poolwright-provider-registry` lists them all and is the only crate that names them.
#[derive(Clone, Copy)]
pub struct Registration {
    /// Its name, as `--provider` takes it and catalogues write it.
    pub name: &'static str,
    /// Its short name in sentences: "nodes on ...".
    pub short: &'static str,
    /// Its full name.
    pub title: &'static str,
    /// The node class that it launches nodes with.
    pub node_class: NodeClass,
    /// The flags of `controller` and `check`.
    pub flags: &'static [Flag],
    /// The flag without which the controller launches nothing here; `None` where it always may.
    pub enabled_by: Option<&'static str>,
    /// Makes its provider.
    pub connect: &'static dyn Connect,
    /// Looks at an account before use, for `check`; `None` where there is nothing to look at.
    pub preflight: Option<&'static dyn Preflight>,
    /// Reads what it sells now; `None` where it sells what a catalogue lists.
    pub market: Option<MarketRegistration>,
    /// Converts what Karpenter's provider for this cloud has; `None` where Karpenter has none that `convert` knows.
    pub karpenter: Option<&'static dyn FromKarpenter>,
    /// Examples for the help of commands.
    pub examples: &'static [Example],
}

/// An example in the help of a command.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The command: `prices`.
    pub command: &'static str,
    /// The question that the example answers: `What does an H100 cost now?`
    pub question: &'static str,
    /// The flags to give: `--provider mist --gpu h100`.
    pub flags: &'static str,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How a cloud is asked what it sells.
#[derive(Clone, Copy)]
pub struct MarketRegistration {
    /// The flags of `gpus` and `prices` that go with `--provider`.
    pub flags: &'static [Flag],
    /// Asks.
    pub reader: &'static dyn MarketReader,
}
