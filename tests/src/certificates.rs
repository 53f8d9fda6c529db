//! Certificates for tests: an authority that signs some, made on the spot.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};

/// Whoever signs.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// Those between it and the first one.
    between: String,
}

/// What was made, in PEM.
pub struct Certified {
    /// The certificate, and those between it and the first authority.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// One with a key of its own.
    pub fn new(name: &str) -> Self {
        let issuer = CertifiedIssuer::self_signed(authority(name), key()).expect("it can sign itself");
        Self { issuer, between: String::new() }
    }

    /// One that this one has certified.
    pub fn under(&self, name: &str) -> Self {
        let issuer = CertifiedIssuer::signed_by(authority(name), key(), &self.issuer);
        let issuer = issuer.expect("it can be signed");
        let between = issuer.pem() + &self.between;
        Self { issuer, between }
    }

    /// Its certificate, in PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a host by its name or its address.
    pub fn certify(&self, host: &str) -> Certified {
        self.certify_as(host, |_usual| {})
    }

    /// A certificate that differs from the usual one.
    pub fn certify_as(&self, host: &str, change: impl FnOnce(&mut CertificateParams)) -> Certified {
        let key = key();
        let mut asked = CertificateParams::new([host.to_owned()]).expect("a name or an address");
        asked.distinguished_name.push(DnType::CommonName, host);
        change(&mut asked);
        let made = asked.signed_by(&key, &self.issuer).expect("it can be signed");
        Certified { certificate: made.pem() + &self.between, key: key.serialize_pem() }
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a random key")
}

fn authority(name: &str) -> CertificateParams {
    let mut asked = CertificateParams::default();
    asked.distinguished_name.push(DnType::CommonName, name);
    asked.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    asked.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    asked
}
