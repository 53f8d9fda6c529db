//! Certificates for tests: an authority that signs some, made on the spot, written as X.509 has it (RFC 5280).

use std::net::IpAddr;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const BYTES: u8 = 0x04;
const IDENTIFIER: u8 = 0x06;
const TEXT: u8 = 0x0c;
const TIME: u8 = 0x18;
const TRUE: &[u8] = &[0x01, 0x01, 0xff];
/// ecdsa-with-SHA256, id-ecPublicKey, prime256v1, commonName, basicConstraints, subjectAltName.
const SIGNED_BY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const CURVE: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const OTHER_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// Whoever signs.
pub struct Authority {
    name: String,
    key: EcdsaKeyPair,
    certificate: Vec<u8>,
}

/// What was made, in PEM.
pub struct Certified {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// One with a key of its own.
    pub fn new(name: &str) -> Self {
        let (key, _) = pair();
        let certificate = certificate(name, name, &key, &key, &[constraints()], "99991231235959Z");
        Self { name: name.to_owned(), key, certificate }
    }

    /// Its certificate, in PEM.
    pub fn certificate(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// A certificate for a host by its name or its address.
    pub fn certify(&self, host: &str) -> Certified {
        self.certify_until(host, "99991231235959Z")
    }

    /// The same, up to a moment: `YYYYMMDDhhmmssZ`.
    pub fn certify_until(&self, host: &str, until: &str) -> Certified {
        let (key, secret) = pair();
        let name = match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => block(0x87, &address.octets()),
            Ok(IpAddr::V6(address)) => block(0x87, &address.octets()),
            Err(_name) => block(0x82, host.as_bytes()),
        };
        let names = extension(OTHER_NAMES, &block(SEQUENCE, &name));
        let made = certificate(&self.name, host, &self.key, &key, &[names], until);
        Certified { certificate: pem("CERTIFICATE", &made), key: pem("PRIVATE KEY", &secret) }
    }
}

fn pair() -> (EcdsaKeyPair, Vec<u8>) {
    let random = SystemRandom::new();
    let secret =
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).expect("a random key");
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, secret.as_ref(), &random);
    (key.expect("it was just made"), secret.as_ref().to_vec())
}

fn certificate(
    by: &str,
    of: &str,
    signs: &EcdsaKeyPair,
    key: &EcdsaKeyPair,
    extensions: &[Vec<u8>],
    until: &str,
) -> Vec<u8> {
    let algorithm = block(SEQUENCE, &block(IDENTIFIER, SIGNED_BY));
    let point = [&[0], key.public_key().as_ref()].concat();
    let kind = block(SEQUENCE, &[block(IDENTIFIER, KEY), block(IDENTIFIER, CURVE)].concat());
    let body = [
        block(0xa0, &block(INTEGER, &[2])),
        block(INTEGER, &[1]),
        algorithm.clone(),
        name(by),
        block(SEQUENCE, &[block(TIME, b"20200101000000Z"), block(TIME, until.as_bytes())].concat()),
        name(of),
        block(SEQUENCE, &[kind, block(BITS, &point)].concat()),
        block(0xa3, &block(SEQUENCE, &extensions.concat())),
    ];
    let body = block(SEQUENCE, &body.concat());
    let signature = signs.sign(&SystemRandom::new(), &body).expect("a signature");
    let signature = block(BITS, &[&[0], signature.as_ref()].concat());
    block(SEQUENCE, &[body, algorithm, signature].concat())
}

fn name(text: &str) -> Vec<u8> {
    let part = [block(IDENTIFIER, COMMON_NAME), block(TEXT, text.as_bytes())].concat();
    block(SEQUENCE, &block(SET, &block(SEQUENCE, &part)))
}

/// It may sign others.
fn constraints() -> Vec<u8> {
    extension(CONSTRAINTS, &block(SEQUENCE, TRUE))
}

fn extension(identifier: &[u8], value: &[u8]) -> Vec<u8> {
    block(SEQUENCE, &[&block(IDENTIFIER, identifier), TRUE, &block(BYTES, value)].concat())
}

/// A tag, the length, and what it is the length of (DER).
fn block(tag: u8, content: &[u8]) -> Vec<u8> {
    let bytes = content.len().to_be_bytes();
    let short = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1)..];
    let length = match content.len() {
        0..=127 => short.to_vec(),
        _long => [&[0x80 | u8::try_from(short.len()).expect("8 at most")], short].concat(),
    };
    [&[tag], &length[..], content].concat()
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {kind}-----\n");
    for line in bytes.chunks(48) {
        for three in line.chunks(3) {
            let number = three.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
                << (8 * (3 - three.len()));
            for at in 0..4 {
                let letter = LETTERS[(number >> (18 - 6 * at)) as usize & 63];
                text.push(if at <= three.len() { char::from(letter) } else { '=' });
            }
        }
        text.push('\n');
    }
    text + &format!("-----END {kind}-----\n")
}
