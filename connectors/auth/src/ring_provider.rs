//! The cryptography of tokens: `ring`, as for TLS. It verifies RS, PS and ES of 256 to 512 bits, signs nothing, and knows no
//! shared secrets. `ring` has no P-521, and so there is no ES512.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{self, EcdsaVerificationAlgorithm, RsaParameters, UnparsedPublicKey};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// The algorithms of tokens that are accepted.
pub(crate) const ALGORITHMS: [Algorithm; 8] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
];

/// Makes it the process's.
pub(crate) fn install() {
    // Once per process: a later call fails, and the first provider stays.
    let _first = RING.install_default();
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } if key.family() == AlgorithmFamily::Rsa => {
            let parameters = rsa(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
            Ok(Box::new(Rsa { algorithm: *algorithm, parameters, n: n.clone(), e: e.clone() }))
        }
        DecodingKeyKind::SecretOrDer(point) if key.family() == AlgorithmFamily::Ec => {
            let curve = ecdsa(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
            Ok(Box::new(Ec { algorithm: *algorithm, key: UnparsedPublicKey::new(curve, point.clone()) }))
        }
        DecodingKeyKind::RsaModulusExponent { .. } | DecodingKeyKind::SecretOrDer(_) => {
            Err(ErrorKind::InvalidKeyFormat.into())
        }
    }
}

/// Keys of 2,048 to 8,192 bits.
fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::RS256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

fn ecdsa(algorithm: Algorithm) -> Option<&'static EcdsaVerificationAlgorithm> {
    match algorithm {
        Algorithm::ES256 => Some(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Some(&signature::ECDSA_P384_SHA384_FIXED),
        _ => None,
    }
}

struct Rsa {
    algorithm: Algorithm,
    parameters: &'static RsaParameters,
    n: Vec<u8>,
    e: Vec<u8>,
}

impl Verifier<Vec<u8>> for Rsa {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), SignatureError> {
        let key = signature::RsaPublicKeyComponents { n: &self.n, e: &self.e };
        key.verify(self.parameters, message, signature).map_err(|_unspecified| SignatureError::new())
    }
}

impl JwtVerifier for Rsa {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

struct Ec {
    algorithm: Algorithm,
    key: UnparsedPublicKey<Vec<u8>>,
}

impl Verifier<Vec<u8>> for Ec {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), SignatureError> {
        self.key.verify(message, signature).map_err(|_unspecified| SignatureError::new())
    }
}

impl JwtVerifier for Ec {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
