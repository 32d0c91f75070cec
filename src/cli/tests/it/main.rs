//! Tests of the command as its users see it: what they type, what it prints, and whether its plans are correct.

mod api;
mod check;
mod class_provider;
mod cloudformation;
mod commands;
mod explain;
mod mistaken;
mod namespaces;
mod narrowed;
mod node_classes;
mod open;
mod pages;
mod plans;
mod prepaid;
mod process;
mod providers;
mod refused;
mod replays;
mod rounds;
mod shared_gpus;
mod support;
mod third_cloud;
mod top;
mod unpriced;
mod unreachable;
mod usual_classes;
