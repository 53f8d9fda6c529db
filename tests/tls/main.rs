//! TLS of a whole node: certificates that change under a thousand open polls, the subcommands over TLS, `everlog dev --tls`, and
//! what is said of settings and files that cannot be used.

mod client;
mod development;
mod handshakes;
#[path = "../fuzz/inputs.rs"]
mod inputs;
mod rotation;
mod secured;
mod settings;
mod subcommands;
