//! The settings of TLS for clients.

use std::path::{Path, PathBuf};

use everlog_listen::tls::{self, PemFile, ServerTlsOptions, TlsVersion};

use crate::setting::{Given, Refusal, Setting, choice, section};

choice! {
    /// Whether clients show certificates.
    ClientCertificates {
        /// They are not asked for one.
        None = "none",
        /// They may show one.
        Asked = "asked",
        /// They must show one.
        Required = "required",
    }
}

choice! {
    /// The oldest version of TLS that is spoken.
    VersionMin {
        /// 1.2
        V1_2 = "1.2",
        /// 1.3
        V1_3 = "1.3",
    }
}

section! {
    /// TLS for clients, at `server.address` and `http.address`. With a certificate both speak TLS and nothing else. Metrics and health
    /// stay in plain text; TLS between nodes is in `[cluster]`.
    Tls = "tls" {
        /// A file of PEM with the certificate of the server, and the ones between it and the authority that clients trust. It is read
        /// again when it changes, as the next two are; a file that cannot be used then leaves the former certificates in use.
        certificate_file: Option<PathBuf> = None, ();
        /// A file of PEM with the certificate's private key.
        key_file: Option<PathBuf> = None, ();
        /// A file of PEM with the authorities that certify clients.
        client_ca_file: Option<PathBuf> = None, ();
        /// Whether clients show certificates: "none" asks for none, "asked" takes those that show none as well, "required" refuses
        /// them. A certificate that no authority of `client_ca_file` has signed, or that is not valid now, is always refused.
        client_certificates: ClientCertificates = ClientCertificates::None, ();
        /// The oldest version of TLS that is spoken.
        min_version: VersionMin = VersionMin::V1_2, ();
    }
}

impl Tls {
    /// Checks that concern several keys.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        let Self { certificate_file, key_file, client_ca_file, client_certificates, .. } = self;
        let mut missing = |key: &str, because: &str| {
            faults.push(format!("tls.{key} = \"\" is not allowed with {because}; allowed is a path"));
        };
        match (certificate_file, key_file) {
            (Some(_), None) => missing("key_file", "tls.certificate_file"),
            (None, Some(_)) => missing("certificate_file", "tls.key_file"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let wanted = format!("tls.client_certificates = {}", client_certificates.write());
        match (client_certificates, client_ca_file) {
            (ClientCertificates::None, None) => return,
            (ClientCertificates::None, Some(_)) => faults.push(format!(
                "{wanted} is not allowed with tls.client_ca_file; allowed is \"asked\" or \"required\""
            )),
            (ClientCertificates::Asked | ClientCertificates::Required, None) => {
                missing("client_ca_file", &wanted);
            }
            (ClientCertificates::Asked | ClientCertificates::Required, Some(_)) => {}
        }
        if certificate_file.is_none() && key_file.is_none() {
            let because = if client_ca_file.is_some() { "tls.client_ca_file" } else { &wanted };
            faults.push(format!(
                "tls.certificate_file = \"\" is not allowed with {because}; allowed is a path"
            ));
        }
    }

    /// What listeners of clients need, if they speak TLS.
    pub fn options(&self) -> Option<ServerTlsOptions> {
        let file = |path: &Path, setting| PemFile { path: path.to_owned(), setting };
        let clients = self.client_ca_file.as_deref().map(|path| file(path, "tls.client_ca_file"));
        Some(ServerTlsOptions {
            certificate: file(self.certificate_file.as_deref()?, "tls.certificate_file"),
            key: file(self.key_file.as_deref()?, "tls.key_file"),
            client_certificates: match (self.client_certificates, clients) {
                (ClientCertificates::Asked, Some(file)) => tls::ClientCertificates::Asked(file),
                (ClientCertificates::Required, Some(file)) => tls::ClientCertificates::Required(file),
                (ClientCertificates::None, _) | (_, None) => tls::ClientCertificates::Ignored,
            },
            version_min: match self.min_version {
                VersionMin::V1_2 => TlsVersion::V1_2,
                VersionMin::V1_3 => TlsVersion::V1_3,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn faults([certificate, key, clients]: [&str; 3], client_certificates: ClientCertificates) -> String {
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        let tls = Tls {
            certificate_file: path(certificate),
            key_file: path(key),
            client_ca_file: path(clients),
            client_certificates,
            ..Tls::default()
        };
        let mut faults = Vec::new();
        tls.check(&mut faults);
        assert_eq!(tls.options().is_some(), !certificate.is_empty() && !key.is_empty());
        faults.join("\n")
    }

    fn check(files: [&str; 3], client_certificates: ClientCertificates, expected: Expect) {
        expected.assert_eq(&faults(files, client_certificates));
    }

    #[test]
    fn what_belongs_together_is_set_together() {
        use ClientCertificates::*;
        for files in [["", "", ""], ["c", "k", ""]] {
            check(files, None, expect![""]);
        }
        for wanted in [Asked, Required] {
            check(["c", "k", "ca"], wanted, expect![""]);
        }
        check(
            ["c", "", ""],
            None,
            expect![[r#"tls.key_file = "" is not allowed with tls.certificate_file; allowed is a path"#]],
        );
        check(
            ["", "k", ""],
            None,
            expect![[r#"tls.certificate_file = "" is not allowed with tls.key_file; allowed is a path"#]],
        );
        check(
            ["c", "k", "ca"],
            None,
            expect![[
                r#"tls.client_certificates = "none" is not allowed with tls.client_ca_file; allowed is "asked" or "required""#
            ]],
        );
        check(
            ["c", "k", ""],
            Asked,
            expect![[
                r#"tls.client_ca_file = "" is not allowed with tls.client_certificates = "asked"; allowed is a path"#
            ]],
        );
        check(
            ["", "", "ca"],
            Required,
            expect![[
                r#"tls.certificate_file = "" is not allowed with tls.client_ca_file; allowed is a path"#
            ]],
        );
    }
}
