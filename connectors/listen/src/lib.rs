//! Incoming connections and their bounds: their number, how long one may be silent, and how much memory one may hold.
//!
//! Every listener of the process accepts its connections here, for HTTP/1.1 ([`http1`]) and HTTP/2 ([`http2`]). A full listener
//! closes the connection that has been idle for the longest; connections that never sent anything go first. It never closes a
//! connection with a call in progress. A listener may speak TLS ([`tls`]). Nothing here knows gRPC or a request's content.

mod budget;
mod connection;
mod descriptors;
mod first_bytes;
mod held_body;
pub mod http1;
pub mod http2;
mod listener;
pub mod tls;

pub use budget::{Budget, Share};
pub use connection::{CallInProgress, Connection, Lapse, SharedConnection};
pub use descriptors::Descriptors;
pub use held_body::HeldBody;
pub use listener::{Counts, Lease, Listener, ListenerBounds};
