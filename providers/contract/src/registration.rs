//! The registration of a cloud: everything that the rest of Poolwright knows about the cloud, in one value.

use poolwright_terms::RegisteredReason;

use crate::connect::Connect;
use crate::flags::Flag;
use crate::karpenter::FromKarpenter;
use crate::market::MarketReader;
use crate::node_class::NodeClass;
use crate::preflight::Preflight;

/// A cloud. The crate `poolwright-provider-registry` lists all clouds; no other crate names them.
#[derive(Clone, Copy)]
pub struct Registration {
    /// The name in `--provider` and in catalogues.
    pub name: &'static str,
    /// The short name for use in sentences: "nodes on ...".
    pub short: &'static str,
    /// The full name.
    pub title: &'static str,
    /// The node class.
    pub node_class: NodeClass,
    /// The reasons of the conditions that the provider sets, sorted by name. `docs/reasons.md` lists them.
    pub reasons: &'static [RegisteredReason],
    /// The flags of the commands `controller` and `check`.
    pub flags: &'static [Flag],
    /// The flag that enables the cloud in the controller; `None` if it is always enabled.
    pub enabled_by: Option<&'static str>,
    /// Makes the provider.
    pub connect: &'static dyn Connect,
    /// Checks an account for the command `check`; `None` if there is nothing to check.
    pub preflight: Option<&'static dyn Preflight>,
    /// Reads the current market; `None` if the cloud sells the offerings of a catalogue file.
    pub market: Option<MarketRegistration>,
    /// Converts manifests of Karpenter's provider for this cloud; `None` if `convert` supports none.
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
    /// The flags of the example: `--provider mist --gpu h100`.
    pub flags: &'static str,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Access to the market of a cloud.
#[derive(Clone, Copy)]
pub struct MarketRegistration {
    /// The flags of `gpus` and `prices` that you may combine with `--provider`.
    pub flags: &'static [Flag],
    /// Reads the market.
    pub reader: &'static dyn MarketReader,
}
