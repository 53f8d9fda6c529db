//! The names in a client's certificate, which TLS has verified already.

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use crate::error::{DenialClass, Unidentified};

/// A certificate without a rule is known by its name in log lines, which end here.
const NAME_BYTES_MAX: usize = 256;

/// What rules look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CertificateNames {
    /// None where the subject has several, because it is not said which one counts.
    pub(crate) common_name: Option<String>,
    pub(crate) uris: Vec<String>,
    pub(crate) dns: Vec<String>,
}

impl CertificateNames {
    /// Reads a certificate's DER.
    pub(crate) fn read(der: &[u8]) -> Result<Self, Unidentified> {
        let unreadable =
            || Unidentified::denied(DenialClass::Certificate, "the client certificate cannot be read");
        let (rest, certificate) = X509Certificate::from_der(der).map_err(|_unparsed| unreadable())?;
        if !rest.is_empty() {
            return Err(unreadable());
        }
        let mut names = Self::default();
        let mut common_names = certificate.subject().iter_common_name();
        if let (Some(only), None) = (common_names.next(), common_names.next()) {
            names.common_name = only.as_str().ok().map(str::to_owned);
        }
        let alternative = certificate.subject_alternative_name().map_err(|_unparsed| unreadable())?;
        for name in alternative.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::URI(name) => names.uris.push((*name).to_owned()),
                GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                // GrantRules have no other names.
                _ => {}
            }
        }
        Ok(names)
    }

    /// What it is called where no rule names it.
    pub(crate) fn any(&self) -> String {
        let name = self.uris.first().or(self.dns.first()).or(self.common_name.as_ref());
        let mut name = name.cloned().unwrap_or_else(|| "a certificate without a name".into());
        name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
        name
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn the_common_name_and_both_kinds_of_alternative_names_are_read() {
        let der = certificate(|params| {
            params.distinguished_name.push(DnType::CommonName, "Zoë");
            params.distinguished_name.push(DnType::OrganizationName, "never looked at");
            params.subject_alt_names = vec![
                SanType::URI("spiffe://example.org/orders".try_into().expect("ASCII")),
                SanType::DnsName("orders.example.org".try_into().expect("ASCII")),
                SanType::Rfc822Name("orders@example.org".try_into().expect("ASCII")),
            ];
        });
        let names = CertificateNames::read(&der).expect("it is one");
        let expected = CertificateNames {
            common_name: Some("Zoë".into()),
            uris: vec!["spiffe://example.org/orders".into()],
            dns: vec!["orders.example.org".into()],
        };
        assert_eq!(names, expected);
        assert_eq!(names.any(), "spiffe://example.org/orders");
    }

    #[test]
    fn a_certificate_without_names_matches_nothing_and_is_called_so() {
        let names = CertificateNames::read(&certificate(|_| ())).expect("it is one");
        assert_eq!(names, CertificateNames::default());
        assert_eq!(names.any(), "a certificate without a name");
        let long = certificate(|params| params.distinguished_name.push(DnType::CommonName, "é".repeat(200)));
        assert_eq!(CertificateNames::read(&long).expect("it is one").any().len(), 256);
    }

    #[test]
    fn of_several_common_names_none_counts() {
        let mut der = certificate(|params| {
            params.distinguished_name.push(DnType::CommonName, "orders");
            params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 99]), "admins");
        });
        // Makes the second attribute a common name too: its type is 2.5.4.3. The signature is not looked at.
        let at = der.windows(3).rposition(|bytes| bytes == [0x55, 0x04, 99]).expect("the subject has it");
        der[at + 2] = 3;
        let names = CertificateNames::read(&der).expect("it is one");
        assert_eq!(names.common_name, None);
    }

    #[test]
    fn what_is_no_certificate_is_denied() {
        let der = certificate(|_| ());
        let longer = [&der[..], b"x"].concat();
        for bytes in [&b""[..], b"certificate", &der[..der.len() - 1], &longer] {
            let denied = CertificateNames::read(bytes).expect_err("it is none");
            assert!(matches!(denied, Unidentified::Denied(DenialClass::Certificate, _)));
        }
    }
}
