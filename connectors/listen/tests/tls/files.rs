//! Files that are named when they are unusable, and that change.

use everlog_listen::tls::{CertificateUse, ClientCertificates};

use crate::certificates::Authority;
use crate::client::{Client, asked, certificates, leaf};
use crate::here::TlsFiles;

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named_with_its_setting() {
    let told = |file: &str, text: Option<&str>| {
        let place = TlsFiles::new();
        let clients = place.clients(&Authority::new("clients"));
        match text {
            Some(text) => drop(place.put(file, text)),
            None => std::fs::remove_file(place.file(file, "").path).expect("it was there"),
        }
        let error = place.tls(ClientCertificates::Required(clients)).expect_err("it is refused").to_string();
        assert!(error.contains(&place.file(file, "").path.display().to_string()), "{error}");
        error
    };
    for (file, setting) in
        [("certificate", "tls.certificate_file"), ("key", "tls.key_file"), ("clients", "tls.client_ca_file")]
    {
        let missing = told(file, None);
        assert!(missing.contains(setting) && missing.contains("cannot be read"), "{missing}");
        let empty = told(file, Some(""));
        assert!(empty.contains(setting) && empty.contains("in PEM"), "{empty}");
        told(file, Some("-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n"));
    }
    let foreign = told("key", Some(&Authority::new("other").certify("localhost").key));
    assert!(foreign.contains("cannot be used with"), "{foreign}");
}

#[tokio::test]
async fn certificates_change_under_open_connections() {
    let place = TlsFiles::new();
    let served = place.served(ClientCertificates::Ignored).await;
    let client = Client::new(&place.authority);
    let mut first = client.connect(served.address).await.expect("it is trusted");
    assert!(!served.tls.reload().expect("nothing has changed"), "nothing has changed");
    let next = place.authority.certify("localhost");
    place.show(&next);
    assert!(served.tls.reload().expect("they are good"));
    let mut second = client.connect(served.address).await.expect("it is trusted");
    assert_ne!(leaf(&first), leaf(&second));
    assert_eq!(leaf(&second), certificates(&next.certificate)[0].to_vec());
    for unusable in ["half a k", &Authority::new("other").certify("localhost").key] {
        place.put("key", unusable);
        served.tls.reload().expect_err("it cannot be used");
        assert!(!served.tls.reload().expect("it was told"), "it is told once");
        let third = client.connect(served.address).await.expect("the former ones are in use");
        assert_eq!(leaf(&third), leaf(&second));
    }
    place.put("key", &next.key);
    assert!(served.tls.reload().expect("they are good again"));
    for stream in [&mut first, &mut second] {
        assert_eq!(asked(stream).await.expect("it has stayed"), "shown: none.");
    }
}

#[tokio::test]
async fn another_authority_of_clients_counts_from_the_next_connection_on() {
    let (place, before, after) = (TlsFiles::new(), Authority::new("before"), Authority::new("after"));
    let served = place.served(ClientCertificates::Required(place.clients(&before))).await;
    let (former, next) = (before.certify("worker"), after.certify("worker"));
    let (former, next) =
        (Client::showing(&place.authority, &former), Client::showing(&place.authority, &next));
    let mut open = former.connect(served.address).await.expect("it is trusted");
    place.put("clients", &(before.certificate() + &after.certificate()));
    assert!(served.tls.reload().expect("both are good"));
    for client in [&former, &next] {
        assert!(client.told(served.address).await.ends_with("bytes."));
    }
    place.clients(&after);
    assert!(served.tls.reload().expect("it is good"));
    assert!(next.told(served.address).await.ends_with("bytes."));
    let told = former.told(served.address).await;
    assert!(told.contains("lert"), "{told}");
    assert!(asked(&mut open).await.expect("it has stayed").ends_with("bytes."));
}

#[tokio::test]
async fn what_is_known_of_certificates_in_use() {
    let place = TlsFiles::new();
    place.show(&place.authority.under("team").certify_as("localhost", |c| {
        c.subject_alt_names.clear();
        c.not_before = rcgen::date_time_ymd(2020, 1, 1);
        c.not_after = rcgen::date_time_ymd(2030, 1, 1);
    }));
    let clients = place.clients(&Authority::new("clients"));
    let tls = place.tls(ClientCertificates::Asked(clients)).expect("the files are good");
    let known = tls.certificates();
    let uses: Vec<_> = known.iter().map(|certificate| certificate.used_as).collect();
    assert_eq!(uses, [CertificateUse::Server, CertificateUse::Server, CertificateUse::ClientCa]);
    assert_eq!((known[0].begins_s, known[0].ends_s), (1_577_836_800, 1_893_456_000));
    assert!(known[0].subject.contains("CN=localhost"), "{}", known[0].subject);
    assert!(!known[0].has_names && known[0].ends.contains("2030"), "{:?}", known[0]);
    assert!(known[2].subject.contains("CN=clients"), "{}", known[2].subject);
}
