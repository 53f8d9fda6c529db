//! TLS over real sockets: who gets in with which certificate, what a client learns that does not, and how files change.

// Of these, each test uses some.
#[allow(dead_code)]
#[path = "../../../tests/src/certificates.rs"]
mod certificates;
#[path = "tls/client.rs"]
mod client;
#[path = "tls/failures.rs"]
mod failures;
#[path = "tls/files.rs"]
mod files;
#[path = "tls/handshakes.rs"]
mod handshakes;
#[path = "tls/here.rs"]
mod here;
