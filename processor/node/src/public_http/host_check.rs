//! The host that a request is for, from its target or from `Host`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::extract::Request;
use axum::http::{Version, header};

/// What a name may contain besides letters and digits (RFC 3986, section 3.2.2).
const IN_NAMES: &[u8] = b"-._~%!$&'()*+,;=";

/// A well-formed host, without its port.
#[derive(Debug, PartialEq, Eq)]
pub enum Host<'a> {
    /// An address.
    Number(IpAddr),
    /// A name, in any case.
    Name(&'a str),
}

impl<'a> Host<'a> {
    /// The host that a request names; none where it names none and need not.
    ///
    /// # Errors
    /// Why it does not name exactly one host, as RFC 9112 requires in section 3.2.
    pub fn of(request: &'a Request) -> Result<Option<Self>, &'static str> {
        let mut given = request.headers().get_all(header::HOST).iter();
        let target = request.uri().authority().map(|authority| authority.as_str());
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => Err("there are several Host headers"),
            (Some(given), None) => {
                let given = given.to_str().ok().and_then(Self::parse).ok_or("Host is no host")?;
                match target {
                    Some(target) if Self::parse(target).is_none_or(|target| !target.is(&given)) => {
                        Err("the host of the request's target is no host, or another one than that of Host")
                    }
                    Some(_) | None => Ok(Some(given)),
                }
            }
            (None, _) if request.version() >= Version::HTTP_11 => Err("there is no Host header"),
            (None, _) => match target {
                Some(target) => {
                    Self::parse(target).map(Some).ok_or("the host of the request's target is none")
                }
                None => Ok(None),
            },
        }
    }

    /// Parses a host with an optional port. No user, no second port.
    fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (number, port) = rest.split_once(']')?;
                (Self::Number(number.parse::<Ipv6Addr>().ok()?.into()), port)
            }
            None => {
                let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || IN_NAMES.contains(&byte);
                if name.is_empty() || !name.bytes().all(is_of_names) {
                    return None;
                }
                (
                    name.parse::<Ipv4Addr>().map_or(Self::Name(name), |number| Self::Number(number.into())),
                    port,
                )
            }
        };
        // Rust parses numbers with a sign.
        let is_port = |port: &str| !port.starts_with('+') && port.parse::<u16>().is_ok();
        (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(host)
    }

    fn is(&self, other: &Host<'_>) -> bool {
        match (self, other) {
            (Self::Number(one), Host::Number(other)) => one == other,
            (Self::Name(one), Host::Name(other)) => one.eq_ignore_ascii_case(other),
            (Self::Number(_), Host::Name(_)) | (Self::Name(_), Host::Number(_)) => false,
        }
    }

    /// Whether it always means this machine. A name in DNS never does.
    pub fn is_of_this_machine(&self) -> bool {
        match self {
            Self::Number(_) => true,
            Self::Name(name) => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(version: Version, target: &str, hosts: &[&[u8]]) -> Request {
        let mut request = Request::builder().version(version).uri(target);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        request.body(Body::empty()).expect("a request")
    }

    #[test]
    fn a_page_that_was_led_to_this_machine_is_told_by_its_host() {
        for own in ["localhost:7234", "127.0.0.1:7234", "127.0.0.1", "[::1]:7234", "[::1]", "LOCALHOST"] {
            assert!(Host::parse(own).is_some_and(|host| host.is_of_this_machine()), "{own}");
        }
        for other in [
            "evil.example",
            "evil.example:7234",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "localhost.",
            "0x7f.1",
        ] {
            assert!(Host::parse(other).is_some_and(|host| !host.is_of_this_machine()), "{other}");
        }
    }

    #[test]
    fn what_is_no_host_is_told_from_one() {
        for wrong in [
            "",
            ":7234",
            "user@localhost",
            "user:password@localhost:7234",
            "@localhost",
            "localhost:7234:80",
            "localhost:70000",
            "localhost:+80",
            "localhost:port",
            "localhost/path",
            "localhost localhost",
            "localhost:",
            "localhost:80,evil.example:80",
            "::1",
            "[::1",
            "[::1]7234",
            "[localhost]",
            "[127.0.0.1]",
            "löcalhost",
            "localhost\t",
        ] {
            assert_eq!(Host::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let of = |version, target: &str, hosts: &[&[u8]]| {
            let request = request(version, target, hosts);
            Host::of(&request).map(|host| host.is_some())
        };
        assert_eq!(of(Version::HTTP_11, "/", &[b"localhost"]), Ok(true));
        assert_eq!(of(Version::HTTP_10, "/", &[]), Ok(false), "an old client need not say it");
        assert_eq!(of(Version::HTTP_11, "http://LOCALHOST:1/", &[b"localhost"]), Ok(true));
        let refused: [(&str, &[&[u8]]); 7] = [
            ("/", &[]),
            ("/", &[b"localhost", b"localhost"]),
            ("/", &[b"\xFF"]),
            ("http://localhost/", &[]),
            ("http://evil.example/", &[b"localhost"]),
            ("http://localhost/", &[b"evil.example"]),
            ("http://user@localhost/", &[b"localhost"]),
        ];
        for (target, hosts) in refused {
            let refused = of(Version::HTTP_11, target, hosts);
            assert!(refused.is_err(), "{target} {hosts:?}: {refused:?}");
        }
    }
}
