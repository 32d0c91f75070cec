//! Packing: groups pods into classes, and calls the solver to pack them onto existing and new nodes.

pub(crate) mod classes;
pub(crate) mod horizon;
pub(crate) mod kept_room;
pub(crate) mod layout;
pub(crate) mod room_lives;
pub(crate) mod solves;
