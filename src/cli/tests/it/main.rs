//! Tests of the command as its users see it: what they type, what it prints, and whether its plans are correct.

mod api;
mod cloudformation;
mod commands;
mod explain;
mod namespaces;
mod open;
mod pages;
mod plans;
mod process;
mod replays;
mod support;
mod third_cloud;
mod top;
