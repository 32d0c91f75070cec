//! The command as its users meet it: what they type, what they see, and whether plans hold up.

mod cloudformation;
mod commands;
mod pages;
mod plans;
mod process;
mod replays;
mod support;
mod third_cloud;
mod top;
