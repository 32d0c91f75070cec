//! Packing: pods in classes, solved pool by pool, with GPU layouts for the nodes that are bought.

pub(crate) mod class_risk;
pub(crate) mod classes;
pub(crate) mod layout;
pub(crate) mod solves;
