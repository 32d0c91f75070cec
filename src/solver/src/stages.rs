//! The stages of the search. A measurement can disable single stages to find their effect.
//!
//! The solve is correct with any set of stages. Fewer stages give a more expensive plan, a looser bound or a longer
//! search. Only `make bench-ablation` disables stages; the product has no flag for it.

/// Declares the stages with their names, in the order of a solve.
macro_rules! stages {
    ($($(#[$doc:meta])* $stage:ident = $name:literal,)*) => {
        /// One part of the search that can be disabled.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SearchStage {
            $($(#[$doc])* $stage,)*
        }

        impl SearchStage {
            /// All stages, in the order of a solve.
            pub const ALL: &'static [Self] = &[$(Self::$stage,)*];

            /// Returns the stage's name in tables.
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
    /// Drops candidates that a cheaper and larger candidate replaces.
    Dominance = "candidate dominance",
    /// Lets the greedy heuristic also value a pod by the cheapest node that holds it.
    GreedyAlone = "greedy: pods valued alone",
    /// Runs the greedy heuristic also with scarce limits priced high, without nodes that a node share limits, and without
    /// regard to commitments.
    GreedyTastes = "greedy: tastes",
    /// Lets the greedy heuristic fill a node in several orders.
    GreedyOrders = "greedy: several orders",
    /// Inserts each pod into the open node with the fewest pods (first fit).
    InsertFirstFit = "insertion: first fit",
    /// Inserts pods at the least increase in price, first the pods of which a node holds only one.
    InsertApart = "insertion: apart first",
    /// Inserts pods at the least increase in price, expensive pods first.
    InsertDearest = "insertion: dearest first",
    /// Offers the remaining room to gangs and single pods that were left out.
    OfferAgain = "admission: offer again",
    /// Solves the admission and placement of up to 40 pods exactly.
    SmallExact = "small: exact admission",
    /// Admits pods by the prices of a relaxation.
    AdmitByPrices = "admission by prices",
    /// Starts from the patterns and prices of an earlier solve.
    WarmStart = "warm start",
    /// Solves small problems by a dynamic program over multisets of pods.
    ExactProgram = "exact: dynamic program",
    /// Enumerates the plans of very small problems, pruned by the prices of the relaxation.
    ExactSearch = "exact: enumeration",
    /// Starts with columns of one class on three kinds of nodes, not one.
    StartColumns = "columns: three to start",
    /// Starts from prices of resources alone where there are many node kinds.
    ResourceStart = "columns: resource prices first",
    /// Adds columns that let a pod take the place of a larger one.
    Exchanges = "columns: exchanges",
    /// Adds up to four patterns of a node kind in each round, not only the best.
    SeveralBest = "columns: several best",
    /// Adds patterns for classes that no other pattern of the round holds.
    OtherContents = "columns: neglected classes",
    /// Prices the node kinds that hold the bound down again, at lowered prices.
    Variety = "columns: variety",
    /// Smooths the duals around the prices of the best bound.
    Smoothing = "dual smoothing",
    /// Lets pricing first look for patterns that pay by a margin.
    Tolerance = "pricing: falling margin",
    /// Increases the effort for node kinds with a loose bound from round to round.
    Efforts = "pricing: rising effort",
    /// Drops pods from pricing that another pod dominates at the current prices.
    ItemDominance = "pricing: pod dominance",
    /// Gives each pod of more than half a node its own resource prices.
    LargePods = "pricing: large pods apart",
    /// Prices shared GPUs by fillings of single GPUs.
    SharedGpus = "pricing: shared GPUs",
    /// Combines two fillings into a pattern before any search.
    TwoFillings = "pricing: two fillings",
    /// Gives each large pod on shared GPUs its own prices.
    LargeShared = "pricing: large pods on shared GPUs",
    /// Dives by one step while the relaxation converges.
    Glimpses = "dives: one step",
    /// Dives to the end, rounding up from 0.6.
    DeepDives = "dives: to the end",
    /// Dives again, rounding up from 0.8 and from 0.5.
    MoreDives = "dives: other roundings",
    /// Rounds up several fractions in one step of a dive, not one.
    DiveSteps = "dives: several at a time",
    /// Dives with single choices of zones or gangs switched.
    Switches = "dives: switched choices",
    /// Moves pods into surplus places and free room of the plan's nodes.
    Fill = "plan: free room filled",
    /// Replaces each node by the cheapest that holds its pods.
    Downgrade = "plan: cheapest node",
    /// Empties single nodes and inserts their pods again.
    Reinsert = "plan: nodes emptied",
    /// Large neighbourhood search: removes parts of the plan and plans them again.
    Improve = "large neighbourhood search",
    /// Branches on node counts.
    Branching = "branching",
    /// Repeats searches that were cut off and left the bound loose.
    Verify = "bound: verified at the end",
    /// Derives a bound from resource prices when there was no time for a relaxation.
    ResourceBound = "bound: resources alone",
    /// Computes pod prices when the plan was proven optimal without any.
    PriceProven = "prices for proven plans",
    /// Tries every combination of a few removable nodes.
    Subsets = "moves: all combinations",
    /// Chooses the nodes to remove first at rough prices.
    RoughMoves = "moves: rough first choice",
    /// Chooses the nodes to remove at the prices of a relaxation.
    FineMoves = "moves: relaxed prices",
    /// Places no pods at first on nodes that are likely to be removed.
    ShutLikely = "moves: likely leavers shut",
    /// Prices evictions and nodes in the bound where they are limited.
    MoveWeights = "moves: weighted bound",
    /// Scales prices down in the bound where there is much free room.
    MoveScales = "moves: scaled bound",
    /// Leaves free room to the main solver when there are at most 24 nodes.
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
