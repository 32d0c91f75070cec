//! The stages of the search. A measurement can disable single stages to find their effect.
//!
//! Every set of stages gives a correct solve. Fewer stages give a more expensive plan, a looser bound or a longer search. Only
//! `make bench-ablation` uses this, no flag of the product.

/// Declares the stages with their names, in the order of a solve.
macro_rules! stages {
    ($($(#[$doc:meta])* $stage:ident = $name:literal,)*) => {
        /// One part of the search that can be turned off.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SearchStage {
            $($(#[$doc])* $stage,)*
        }

        impl SearchStage {
            /// All of them, in the order of a solve.
            pub const ALL: &'static [Self] = &[$(Self::$stage,)*];

            /// Its name in tables.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$stage => $name,)*
                }
            }
        }
    };
}

stages! {
    /// Candidates that a cheaper and larger one replaces are dropped.
    Dominance = "candidate dominance",
    /// The greedy also values a pod by the cheapest node that holds it.
    GreedyAlone = "greedy: pods valued alone",
    /// The greedy also runs with scarce limits made dear, shared nodes left alone, and commitments left to the costing.
    GreedyTastes = "greedy: tastes",
    /// The greedy fills a node in several orders.
    GreedyOrders = "greedy: several orders",
    /// First fit by pod count.
    InsertFirstFit = "insertion: first fit",
    /// Insertion at the least rise in price, pods that keep apart first.
    InsertApart = "insertion: apart first",
    /// Insertion at the least rise in price, dear pods first.
    InsertDearest = "insertion: dearest first",
    /// Gangs and single pods that were left out are offered the remaining room.
    OfferAgain = "admission: offer again",
    /// Exact admission and placement of up to 40 pods.
    SmallExact = "small: exact admission",
    /// Admission by the prices of a relaxation.
    AdmitByPrices = "admission by prices",
    /// What an earlier solve left: contents and prices.
    WarmStart = "warm start",
    /// Dynamic program over multisets of pods.
    ExactProgram = "exact: dynamic program",
    /// Enumeration of plans, cut off at the prices of the relaxation.
    ExactSearch = "exact: enumeration",
    /// Start columns of one class on three kinds of nodes, not one.
    StartColumns = "columns: three to start",
    /// Columns that let a pod take the place of a larger one.
    Exchanges = "columns: exchanges",
    /// Up to four contents of a node kind each round, not only the best.
    SeveralBest = "columns: several best",
    /// Contents for classes that no other content of the round holds.
    OtherContents = "columns: neglected classes",
    /// Node kinds that hold the bound down are priced again at lowered prices.
    Variety = "columns: variety",
    /// Dual smoothing around the prices of the best bound.
    Smoothing = "dual smoothing",
    /// Pricing looks for contents that pay by a margin first.
    Tolerance = "pricing: falling margin",
    /// Loose node kinds are searched harder from round to round.
    Efforts = "pricing: rising effort",
    /// Pods that another pod dominates at the current prices leave the search.
    ItemDominance = "pricing: pod dominance",
    /// Each pod of more than half a node has resource prices of its own.
    LargePods = "pricing: large pods apart",
    /// Shared GPUs are priced by fillings of single GPUs.
    SharedGpus = "pricing: shared GPUs",
    /// Contents of two fillings, before any search.
    TwoFillings = "pricing: two fillings",
    /// Shared GPUs: each large pod has prices of its own.
    LargeShared = "pricing: large pods on shared GPUs",
    /// Dives of one step while the relaxation converges.
    Glimpses = "dives: one step",
    /// Dives to the end that round up from 0.6.
    DeepDives = "dives: to the end",
    /// Further dives that round up from 0.8 and from 0.5.
    MoreDives = "dives: other roundings",
    /// A few fractions are rounded up in one step of a dive, not one.
    DiveSteps = "dives: several at a time",
    /// Dives with single choices of zones or gangs switched.
    Switches = "dives: switched choices",
    /// Pods take surplus places and free room of a plan's nodes.
    Fill = "plan: free room filled",
    /// Each node becomes the cheapest that holds its pods.
    Downgrade = "plan: cheapest node",
    /// Large neighbourhood search: parts of the plan are given up and planned anew.
    Improve = "large neighbourhood search",
    /// Branching on counts of nodes.
    Branching = "branching",
    /// Ceilings that cut searches left loose are searched once more.
    Verify = "bound: verified at the end",
    /// A bound from prices of resources where there was no time for a relaxation.
    ResourceBound = "bound: resources alone",
    /// Prices of pods where the plan was proven without any.
    PriceProven = "prices for proven plans",
    /// Every combination of a few removable nodes.
    Subsets = "moves: all combinations",
    /// A first choice of nodes at rough prices.
    RoughMoves = "moves: rough first choice",
    /// Prices of a relaxation for the choice of nodes.
    FineMoves = "moves: relaxed prices",
    /// Nodes that are likely to go are given no guests at first.
    ShutLikely = "moves: likely leavers shut",
    /// The bound weighs evictions and nodes where they are limited.
    MoveWeights = "moves: weighted bound",
    /// The bound lowers prices where there is much free room.
    MoveScales = "moves: scaled bound",
    /// The engine decides about free room where there are at most 24 nodes.
    FewNodes = "moves: few nodes to the engine",
}

/// The enabled stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// One bit for each stage that is off.
    off: u64,
}

impl Stages {
    /// The same stages without `stage`.
    #[must_use]
    pub fn without(self, stage: SearchStage) -> Self {
        Self { off: self.off | 1 << stage as u32 }
    }

    /// Whether `stage` is on.
    pub(crate) fn has(self, stage: SearchStage) -> bool {
        self.off >> stage as u32 & 1 == 0
    }
}
