//! Explanations for people (`poolwright explain`, events, conditions): the requirements of a pod, claim, node or pool, the
//! alternatives considered, and the deciding reason. Each explanation is a few lines of plain text, made from the snapshot and
//! the plan that decisions use.

pub(crate) mod broken;
pub(crate) mod claim;
pub(crate) mod consolidation;
pub(crate) mod event_note;
pub mod events;
pub(crate) mod health;
pub(crate) mod lives;
pub(crate) mod pod;
pub(crate) mod pool;
pub(crate) mod prices;
pub(crate) mod retiring;
pub(crate) mod rulings;
pub(crate) mod split_volumes;
pub(crate) mod uncounted;
pub(crate) mod unpriced;
pub(crate) mod volume_limits;

pub use crate::why::broken::{Broken, Exceeded, broken, closing_taint};
pub use crate::why::claim::{claim, node, undrainable};
pub use crate::why::consolidation::{NOT_OURS, consolidation};
pub use crate::why::event_note::event_note;
pub use crate::why::lives::life;
pub use crate::why::pod::{MOST_LINES, pod, pods};
pub use crate::why::pool::pool;
pub use crate::why::prices::oldest_price;
pub use crate::why::retiring::closed_room;
pub use crate::why::split_volumes::split_volumes;
pub use crate::why::uncounted::uncounted_daemonsets;
pub use crate::why::unpriced::{Unpriced, unpriced};
pub use crate::why::volume_limits::unknown_volume_limits;
