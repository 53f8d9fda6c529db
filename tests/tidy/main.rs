//! Keeps the house in order: who may depend on whom, what the engine may not know, how long things may get.

mod graph;
mod layout;
mod pages;
mod patience;
mod planted;
mod purity;
mod rust;
mod text;
mod tree;
