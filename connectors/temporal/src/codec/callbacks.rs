//! Completion callbacks of a start. A Temporal server calls the addresses that its configuration names, which are none by default;
//! here there are none, so each callback is refused, in that server's words.

use bytes::Bytes;
use everlog_temporal_api::full::temporal::api::common::v1::Callback;
use everlog_temporal_api::full::temporal::api::common::v1::callback::Variant;
use prost::Message;
use tonic::Status;

use crate::codec::status::invalid;
use crate::codec::validation::not_yet;

/// Callbacks of a start.
const CALLBACKS_MAX: usize = 32;
/// Bytes of an address.
const URL_BYTES_MAX: usize = 1_000;

/// Refuses the callbacks of a start, if it has any.
pub(crate) fn refuse(callbacks: &[Bytes]) -> Result<(), Status> {
    if callbacks.len() > CALLBACKS_MAX {
        return Err(invalid(format!("cannot attach more than {CALLBACKS_MAX} callbacks to a workflow")));
    }
    callbacks.iter().try_for_each(refuse_one)
}

fn refuse_one(callback: &Bytes) -> Result<(), Status> {
    let callback = Callback::decode(callback.clone());
    let callback = callback.map_err(|_error| invalid("completion_callbacks cannot be read."))?;
    match callback.variant {
        Some(Variant::Nexus(nexus)) => Err(invalid(format!("invalid url: {}", fault(&nexus.url)))),
        Some(Variant::Internal(_)) => not_yet("completion_callbacks.internal", true),
        Some(Variant::NexusHandler(_)) => not_yet("completion_callbacks.nexus_handler", true),
        None => Err(Status::unimplemented("unknown callback variant: <nil>")),
    }
}

/// What is wrong with an address.
fn fault(url: &str) -> String {
    let scheme = url.split_once(':').map_or("", |(scheme, _rest)| scheme);
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    if url.len() > URL_BYTES_MAX {
        format!("url length longer than max length allowed of {URL_BYTES_MAX}")
    } else if !is_web {
        format!("unknown scheme: {url}")
    } else {
        format!("url does not match any configured callback address: {url}")
    }
}

#[cfg(test)]
mod tests {
    use everlog_temporal_api::full::temporal::api::common::v1::callback::{Internal, Nexus};
    use tonic::Code;

    use super::*;

    fn refusal(callbacks: &[Bytes]) -> (Code, String) {
        let status = refuse(callbacks).expect_err("it has to be refused");
        (status.code(), status.message().to_owned())
    }

    fn encoded(variant: Option<Variant>) -> Bytes {
        Callback { variant, ..Callback::default() }.encode_to_vec().into()
    }

    fn to(url: &str) -> Bytes {
        encoded(Some(Variant::Nexus(Nexus { url: url.into(), ..Nexus::default() })))
    }

    #[test]
    fn no_callback_is_taken() {
        let unknown = "invalid url: url does not match any configured callback address: ";
        for (callback, code, message) in [
            (to("https://a.example/x"), Code::InvalidArgument, format!("{unknown}https://a.example/x")),
            (to("http://a.example:80"), Code::InvalidArgument, format!("{unknown}http://a.example:80")),
            (to("ftp://a"), Code::InvalidArgument, "invalid url: unknown scheme: ftp://a".into()),
            (to(""), Code::InvalidArgument, "invalid url: unknown scheme: ".into()),
            (
                to(&format!("http://{}", "x".repeat(URL_BYTES_MAX))),
                Code::InvalidArgument,
                "invalid url: url length longer than max length allowed of 1000".into(),
            ),
            (encoded(None), Code::Unimplemented, "unknown callback variant: <nil>".into()),
            (
                encoded(Some(Variant::Internal(Internal::default()))),
                Code::InvalidArgument,
                "completion_callbacks.internal is not supported yet.".into(),
            ),
            (
                Bytes::from_static(b"\xff"),
                Code::InvalidArgument,
                "completion_callbacks cannot be read.".into(),
            ),
        ] {
            assert_eq!(refusal(&[callback]), (code, message));
        }
        let message = "cannot attach more than 32 callbacks to a workflow".to_owned();
        assert_eq!(refusal(&vec![to("http://a"); CALLBACKS_MAX + 1]), (Code::InvalidArgument, message));
        assert!(refuse(&[]).is_ok());
    }
}
