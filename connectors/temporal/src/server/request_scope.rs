//! What a call needs from its request before the handler: its RPC, its namespace or task token, and whether it is a long poll.

use bytes::Bytes;
use everlog_temporal_api::operatorservice::*;
use everlog_temporal_api::workflowservice::*;
use pastey::paste;

use crate::rpc::{Rpc, rpcs};

/// How a request names its namespace.
pub(crate) enum Scope<'a> {
    /// It has none.
    Nameless,
    /// It is about the namespace of this name, and does not act in it. Empty where it names it by its UUID, or all.
    About(&'a str),
    /// By name.
    Name(&'a str),
    /// By a task token, and usually by name as well.
    Token { name: &'a str, token: &'a Bytes },
}

/// A request, as [`super::call::Call`] needs it. Made from the table of RPCs.
pub(crate) trait RequestScope {
    /// The RPC whose request it is.
    const RPC: Rpc;

    fn scope(&self) -> Scope<'_>;

    /// The response may wait for an event.
    fn is_long_poll(&self) -> bool;
}

macro_rules! scope {
    ($request:ident, none) => {
        Scope::Nameless
    };
    ($request:ident, about) => {
        Scope::About(&$request.namespace)
    };
    ($request:ident, name) => {
        Scope::Name(&$request.namespace)
    };
    ($request:ident, token) => {
        Scope::Token { name: &$request.namespace, token: &$request.task_token }
    };
}

macro_rules! is_long_poll {
    ($request:ident, never) => {
        false
    };
    ($request:ident, always) => {
        true
    };
    ($request:ident, $field:ident) => {
        $request.$field
    };
}

macro_rules! requests {
    ($($service:ident { $(
        $rpc:ident = $($handler:ident)::+, $namespace:ident, $needs:ident, $key:ident, $long_poll:ident, $again:ident;
    )* })*) => { paste! { $($(
        impl RequestScope for [<$rpc Request>] {
            const RPC: Rpc = Rpc::$rpc;

            fn scope(&self) -> Scope<'_> {
                scope!(self, $namespace)
            }

            fn is_long_poll(&self) -> bool {
                is_long_poll!(self, $long_poll)
            }
        }
    )*)* } };
}
rpcs!(requests);
