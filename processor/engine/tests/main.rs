//! The engine, proven from outside: stories that a reader can check, and laws that hold for whatever comes.

mod endings;
mod laws;
mod moments;
mod stories;
mod world;
