//! What tests of the whole product share: a server started as a user would start it.

pub use everlog_patience as patience;

pub mod caller;
pub mod certificates;
pub mod dice;
pub mod fate;
pub mod kafka;
pub mod page;
pub mod process;
pub mod raw;
pub mod server;
pub mod shim;
