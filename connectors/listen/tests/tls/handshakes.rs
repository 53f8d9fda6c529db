//! Versions, protocols, and the certificates of clients.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use everlog_listen::tls::{ClientCertificates, HandshakeFailure, TlsVersion};
use everlog_patience as patience;
use rcgen::{DistinguishedName, ExtendedKeyUsagePurpose, date_time_ymd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::certificates::{Authority, Certified};
use crate::client::{Client, ONLY_1_2, ONLY_1_3, certificates};
use crate::failures::is_counted;
use crate::here::{TlsFiles, bounds, http1_over, http2_over};

/// How HTTP/2 begins, with settings (RFC 9113, section 3.4).
const HTTP2_BEGINS: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The type of the frame that announces the end of a connection. It has 8 bytes without a reason.
const GOAWAY: u8 = 7;

#[tokio::test]
async fn the_oldest_version_is_a_setting() {
    let place = TlsFiles::new();
    for (version_min, old_works) in [(TlsVersion::V1_2, true), (TlsVersion::V1_3, false)] {
        let tls = place.tls_from(ClientCertificates::Ignored, version_min).expect("the files are good");
        let served = http1_over(tls, bounds()).await;
        let new = Client { versions: ONLY_1_3, ..Client::new(&place.authority) };
        let old = Client { versions: ONLY_1_2, ..Client::new(&place.authority) };
        assert_eq!(new.told(served.address).await, "shown: none.");
        let told = old.told(served.address).await;
        if old_works {
            assert_eq!(told, "shown: none.");
        } else {
            assert!(told.contains("ProtocolVersion"), "{told}");
            is_counted(&served, HandshakeFailure::Incompatible, 1).await;
        }
    }
}

#[tokio::test]
async fn each_listener_has_its_own_protocol_inside_tls() {
    let place = TlsFiles::new();
    let tls = place.tls(ClientCertificates::Ignored).expect("the files are good");
    let (http1, http2) = (http1_over(tls.clone(), bounds()).await, http2_over(tls, bounds()).await);
    for (served, protocol) in [(&http1, "http/1.1"), (&http2, "h2")] {
        let client = Client { protocols: &["h2", "http/1.1"], ..Client::new(&place.authority) };
        let stream = client.connect(served.address).await.expect("there is one that both speak");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        let stream = Client::new(&place.authority).connect(served.address).await.expect("it may say nothing");
        assert_eq!(stream.get_ref().1.alpn_protocol(), None);
    }
    let client = Client { protocols: &["http/1.1"], ..Client::new(&place.authority) };
    let told = client.told(http2.address).await;
    assert!(told.contains("NoApplicationProtocol"), "{told}");
    is_counted(&http2, HandshakeFailure::Protocol, 1).await;
}

#[tokio::test]
async fn a_client_is_asked_for_a_certificate_or_must_show_one() {
    let (place, clients) = (TlsFiles::new(), Authority::new("clients"));
    let shown = clients.certify("worker");
    let length = certificates(&shown.certificate)[0].len();
    let (with, without) = (Client::showing(&place.authority, &shown), Client::new(&place.authority));
    let ignored = place.served(ClientCertificates::Ignored).await;
    let asked = place.served(ClientCertificates::Asked(place.clients(&clients))).await;
    let required = place.served(ClientCertificates::Required(place.clients(&clients))).await;
    assert_eq!(with.told(ignored.address).await, "shown: none.");
    assert_eq!(without.told(ignored.address).await, "shown: none.");
    assert_eq!(with.told(asked.address).await, format!("shown: {length} bytes."));
    assert_eq!(without.told(asked.address).await, "shown: none.");
    assert_eq!(with.told(required.address).await, format!("shown: {length} bytes."));
    for versions in [ONLY_1_2, ONLY_1_3] {
        let told = Client { versions, ..Client::new(&place.authority) }.told(required.address).await;
        assert!(told.contains("alert") || told.contains("Alert"), "{told}");
    }
    is_counted(&required, HandshakeFailure::CertificateMissing, 2).await;
}

#[tokio::test]
async fn a_certificate_of_a_client_is_verified_wherever_one_is_asked_for() {
    use HandshakeFailure::*;
    let (place, clients) = (TlsFiles::new(), Authority::new("clients"));
    let between = clients.under("team").under("unit");
    let mut alone = between.certify("worker");
    alone.certificate.truncate(alone.certificate.find("-----END").expect("it is PEM") + 26);
    let for_uses = |uses: &[ExtendedKeyUsagePurpose]| {
        clients.certify_as("worker", |asked| asked.extended_key_usages = uses.to_vec())
    };
    let rows: Vec<(&str, Certified, Option<HandshakeFailure>)> = vec![
        ("usual", clients.certify("worker"), None),
        ("for clients", for_uses(&[ExtendedKeyUsagePurpose::ClientAuth]), None),
        ("for servers", for_uses(&[ExtendedKeyUsagePurpose::ServerAuth]), Some(CertificateUnusable)),
        (
            "expired",
            clients.certify_as("worker", |c| c.not_after = date_time_ymd(2020, 1, 2)),
            Some(CertificateExpired),
        ),
        (
            "early",
            clients.certify_as("worker", |c| c.not_before = date_time_ymd(4000, 1, 1)),
            Some(CertificateNotYetValid),
        ),
        ("other authority", Authority::new("clients").certify("worker"), Some(CertificateUnknownAuthority)),
        (
            "alternative name only",
            clients.certify_as("worker", |c| c.distinguished_name = DistinguishedName::new()),
            None,
        ),
        ("common name only", clients.certify_as("worker", |c| c.subject_alt_names.clear()), None),
        ("with those between", between.certify("worker"), None),
        ("without those between", alone, Some(CertificateUnknownAuthority)),
    ];
    for client_certificates in [ClientCertificates::Asked, ClientCertificates::Required] {
        for (name, shown, failure) in &rows {
            let served = place.served(client_certificates(place.clients(&clients))).await;
            let told = Client::showing(&place.authority, shown).told(served.address).await;
            match failure {
                None => assert!(told.ends_with("bytes."), "{name}: {told}"),
                Some(failure) => {
                    assert!(told.contains("lert"), "{name}: {told}");
                    is_counted(&served, *failure, 1).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_chain_of_the_server_is_sent_as_a_whole() {
    let place = TlsFiles::new();
    place.show(&place.authority.under("team").certify("localhost"));
    let served = place.served(ClientCertificates::Ignored).await;
    assert_eq!(Client::new(&place.authority).told(served.address).await, "shown: none.");
}

/// A client whose certificate ends soon, and its connection. How soon depends on how long a handshake takes here.
async fn connected_until(
    clients: &Authority,
    place: &TlsFiles,
    address: SocketAddr,
) -> (Certified, TlsStream<TcpStream>) {
    for lasts_s in [1, 4, 16, 64] {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
        let ends = date_time_ymd(1970, 1, 1) + since_1970 + Duration::from_secs(lasts_s);
        let shown = clients.certify_as("worker", |asked| asked.not_after = ends);
        let stream = Client::showing(&place.authority, &shown).connect(address).await;
        // With TLS 1.3 a client that is refused learns it only when it reads.
        if let Ok(mut stream) = stream
            && stream.write_all(HTTP2_BEGINS).await.is_ok()
            && stream.read(&mut [0; 256]).await.is_ok_and(|bytes| bytes > 0)
        {
            return (shown, stream);
        }
    }
    panic!("no handshake within a minute");
}

#[tokio::test]
async fn a_connection_ends_with_its_clients_certificate() {
    let (place, clients) = (TlsFiles::new(), Authority::new("clients"));
    let tls = place.tls(ClientCertificates::Required(place.clients(&clients))).expect("the files are good");
    let served = http2_over(tls.clone(), bounds()).await;
    let (shown, mut stream) = connected_until(&clients, &place, served.address).await;
    let mut frames = Vec::new();
    // The end is there, whether or not TLS says so first.
    let _ended = patience::answer("the end", stream.read_to_end(&mut frames)).await.expect("it comes");
    let has_goaway = frames.windows(4).any(|header| header == [0, 0, 8, GOAWAY]);
    assert!(has_goaway, "it is announced: {frames:?}");
    let again = http1_over(tls, bounds()).await;
    let told = Client::showing(&place.authority, &shown).told(again.address).await;
    assert!(told.contains("CertificateExpired"), "{told}");
}
