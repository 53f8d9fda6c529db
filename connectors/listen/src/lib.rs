//! Connections of whoever comes: how many there may be, how long one may be silent, and how much one may make the process hold.
//!
//! Each listener takes its connections here, whatever is spoken on them ([`http1`], [`http2`]). A listener that is full makes room: the
//! connection that has been without a call for the longest is closed, one on which nothing was ever said first. A connection with
//! a call under way is never closed for another.

mod budget;
mod connection;
mod descriptors;
mod first_bytes;
mod held_body;
pub mod http1;
pub mod http2;
mod listener;

pub use budget::{Budget, Share};
pub use connection::{Call, Connection, Lapse, Peer};
pub use descriptors::Descriptors;
pub use held_body::HeldBody;
pub use listener::{Bounds, Counts, Lease, Listener};
