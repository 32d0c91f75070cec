//! Decisions, compared exactly: what goes in, what comes out. One theme, one file.

mod alternatives;
mod batch_window;
mod daemonsets;
mod demand;
mod empty;
mod end;
mod index;
mod initialize;
mod kit;
mod launch;
mod limits;
mod nominate;
mod notices;
mod packing;
mod pools;
mod prices;
mod properties;
mod reaper;
mod register;
mod room;
mod setbacks;
mod sharing;
mod speed;
mod sticky;
mod terms;
mod unplaced;
