//! What tests share: keys that sign tokens, and a server that publishes keys, or fails at it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512,
    RsaEncoding, RsaKeyPair,
};
use rsa::Generate;
use rsa::pkcs8::EncodePrivateKey;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Some RSA keys: to make one takes a while.
pub(crate) static RSA: LazyLock<SigningKey> = LazyLock::new(SigningKey::rsa);

/// Base64 as in tokens.
pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key of an issuer.
pub(crate) enum SigningKey {
    Rsa(RsaKeyPair),
    Ec(&'static str, EcdsaKeyPair),
}

impl SigningKey {
    pub(crate) fn rsa() -> Self {
        let der = rsa::PrivateKey::generate().to_pkcs8_der().expect("DER");
        Self::Rsa(RsaKeyPair::from_pkcs8(der.as_bytes()).expect("a key"))
    }

    pub(crate) fn p256() -> Self {
        Self::ec("P-256", &ECDSA_P256_SHA256_FIXED_SIGNING)
    }

    pub(crate) fn p384() -> Self {
        Self::ec("P-384", &ECDSA_P384_SHA384_FIXED_SIGNING)
    }

    fn ec(curve: &'static str, algorithm: &'static ring::signature::EcdsaSigningAlgorithm) -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("DER");
        Self::Ec(curve, EcdsaKeyPair::from_pkcs8(algorithm, der.as_ref(), &random).expect("a key"))
    }

    /// As in a JWKS, with an id.
    pub(crate) fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Rsa(pair) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "kid": id, "n": encoded(public.n), "e": encoded(public.e)})
            }
            Self::Ec(curve, pair) => {
                // The first byte says that both coordinates follow.
                let (x, y) = pair.public_key().as_ref()[1..].split_at(pair.public_key().as_ref().len() / 2);
                json!({"kty": "EC", "crv": curve, "kid": id, "x": encoded(x), "y": encoded(y)})
            }
        }
    }

    /// A token with a header and claims, signed by the header's algorithm.
    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let signature = self.sign(header["alg"].as_str().unwrap_or_default(), message.as_bytes());
        format!("{message}.{}", encoded(signature))
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let encoding: &'static dyn RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).expect("it signs");
                signature
            }
            Self::Ec(_, pair) => pair.sign(&random, message).expect("it signs").as_ref().to_vec(),
        }
    }
}

/// What the server does with a request.
#[derive(Clone)]
pub(crate) enum KeyReply {
    /// The keys of these.
    Keys(Vec<Value>),
    /// These bytes with status 200.
    Bytes(Vec<u8>),
    /// A status, and a header if there is one.
    Status(u16, String),
    /// A head, and then no end.
    Endless,
    /// Nothing, until the other side is gone.
    Silent,
    /// Another one, once it is released.
    Held(Box<KeyReply>),
}

/// Publishes keys on a port of its own.
pub(crate) struct KeyServer {
    pub(crate) url: String,
    reply: Mutex<KeyReply>,
    requests: AtomicUsize,
    /// That of the last request.
    head: Mutex<String>,
    releases: Notify,
}

impl KeyServer {
    pub(crate) async fn start(reply: KeyReply) -> Arc<Self> {
        Self::start_with(reply, "http", async |stream| Some(stream)).await
    }

    pub(crate) async fn start_with<S: AsyncRead + AsyncWrite + Unpin + Send + 'static, F>(
        reply: KeyReply,
        scheme: &str,
        accept: impl Fn(tokio::net::TcpStream) -> F + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        F: Future<Output = Option<S>> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let url = format!("{scheme}://localhost:{port}/keys");
        let server = Arc::new(Self {
            url,
            reply: Mutex::new(reply),
            requests: AtomicUsize::new(0),
            head: Mutex::default(),
            releases: Notify::new(),
        });
        let (serving, accept) = (server.clone(), Arc::new(accept));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (serving, accept) = (serving.clone(), accept.clone());
                tokio::spawn(async move {
                    if let Some(stream) = accept(stream).await {
                        serving.serve(stream).await;
                    }
                });
            }
        });
        server
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// The head of the last request.
    pub(crate) fn head(&self) -> String {
        self.head.lock().clone()
    }

    pub(crate) fn reply(&self, reply: KeyReply) {
        *self.reply.lock() = reply;
    }

    /// Lets one held reply go.
    pub(crate) fn release(&self) {
        self.releases.notify_one();
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let (mut head, mut bytes) = (Vec::new(), [0; 1_024]);
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut bytes).await {
                Ok(0) | Err(_) => return,
                Ok(length) => head.extend_from_slice(&bytes[..length]),
            }
        }
        *self.head.lock() = String::from_utf8_lossy(&head).into_owned();
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut reply = self.reply.lock().clone();
        while let KeyReply::Held(held) = reply {
            self.releases.notified().await;
            reply = *held;
        }
        let (status, header, body) = match reply {
            KeyReply::Keys(keys) => (200, String::new(), json!({"keys": keys}).to_string().into_bytes()),
            KeyReply::Bytes(bytes) => (200, String::new(), bytes),
            KeyReply::Status(status, header) => (status, header, Vec::new()),
            KeyReply::Endless => {
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(format!("400\r\n{}\r\n", " ".repeat(1_024)).as_bytes()).await;
                }
                return;
            }
            // Held ones were let go above.
            KeyReply::Silent | KeyReply::Held(_) => {
                while stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {}
                return;
            }
        };
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} -\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n");
        // The client may have gone.
        let _sent = stream.write_all(&[head.as_bytes(), &body].concat()).await;
        let _closed = stream.shutdown().await;
    }
}
