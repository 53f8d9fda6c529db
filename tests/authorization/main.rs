//! Who may do what: every RPC by every kind of caller in every kind of namespace, and each way around it that is known.

mod callers;
mod forged;
mod http;
mod matrix;
mod table;
mod targets;
