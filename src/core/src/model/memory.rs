//! What decisions worked out from a snapshot, kept for the next one. The model only holds it: whoever puts something in says what it is.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What plans from a snapshot, and from others made from it, tell each other. It saves time and changes no plan. Clones share
/// one content.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

/// Two snapshots do not differ by what was worked out from them.
impl PartialEq for Memory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

impl Memory {
    /// Lets `act` read and change the content. It starts empty, and empty again if it held another type.
    pub(crate) fn with<T: Any + Default + Send, R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let mut content = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = content.take().and_then(|known| known.downcast::<T>().ok()).unwrap_or_default();
        let answer = act(&mut known);
        *content = Some(known);
        answer
    }
}
