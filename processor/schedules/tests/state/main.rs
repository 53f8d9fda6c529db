//! What becomes of a schedule's times: stories of one schedule, and random lives.

mod changes;
mod lives;
mod overlaps;
mod stories;
mod world;
