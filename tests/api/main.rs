//! What docs/api.md and docs/compatibility.md list is true: methods, commands, events, features and their tests.

mod commands;
mod events;
mod features;
mod methods;
mod table;
