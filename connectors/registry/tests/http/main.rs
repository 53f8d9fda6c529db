//! The built-in registry by real HTTP, with clients of others; and the same conversation with a real registry.

mod apicurio;
mod deletion;
mod load;
mod paths;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use everlog_avro::PublicTopic;
use everlog_patience as patience;
use everlog_registry::{
    ClientError, CompatibilityLevel, Error, Found, Ids, Limits, Registry, RegistryClient, Storage, router,
};
use schema_registry_converter::async_impl::schema_registry::{
    SrSettings, get_schema_by_id, get_schema_by_subject, is_compatible_schema, post_schema,
};
use schema_registry_converter::schema_registry_common::{SchemaType, SubjectNameStrategy, SuppliedSchema};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;

/// A control topic in memory, that fails when it is told to.
#[derive(Default)]
struct Rows {
    rows: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    is_broken: Mutex<bool>,
}

impl Storage for Rows {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        if *self.is_broken.lock().expect("nobody panics") {
            return Err("the disk is full".into());
        }
        self.rows.lock().expect("nobody panics").insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), String> {
        if *self.is_broken.lock().expect("nobody panics") {
            return Err("the disk is full".into());
        }
        self.rows.lock().expect("nobody panics").remove(key);
        Ok(())
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        self.rows.lock().expect("nobody panics").iter().for_each(|(key, value)| visit(key, value));
        Ok(())
    }
}

fn open(rows: &Arc<Rows>) -> Registry {
    Registry::open(rows.clone(), Limits::default()).expect("the rows can be read")
}

async fn serve(registry: Registry) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it has one"));
    tokio::spawn(async { axum::serve(listener, router(registry)).await });
    url
}

/// A registry of others, with its process if it was started for the test.
struct Real {
    url: String,
    process: Option<Child>,
}

impl Real {
    /// Where the tests with real parts are wanted: the one at `EVERLOG_REGISTRY_URL`, or one that is started.
    fn start() -> Option<Self> {
        if std::env::var("EVERLOG_KAFKA_TESTS").is_ok_and(|given| given == "1") {
            let url = std::env::var("EVERLOG_REGISTRY_URL").ok();
            return Some(url.map_or_else(Self::launch, |url| Self { url, process: None }));
        }
        None
    }

    fn launch() -> Self {
        let run = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/kafka/run");
        let mut command = Command::new(run);
        command.args(["registry", "--temporary"]).stdout(Stdio::piped());
        let mut process = command.spawn().expect("tests/kafka/run can be started");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut lines = output.lines().map_while(Result::ok);
        let ready = lines.find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
        Self { url: ready.expect("the registry gets ready"), process: Some(process) }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let asked = Command::new("kill").arg(process.id().to_string()).status();
            assert!(asked.is_ok_and(|status| status.success()) || std::thread::panicking());
            let _ended = process.wait();
        }
    }
}

struct Api {
    url: String,
    http: reqwest::Client,
}

impl Api {
    fn new(url: &str) -> Self {
        // Whoever builds the first client chooses the cryptography; the product's client does.
        RegistryClient::new(url).expect("a URL");
        Self { url: url.into(), http: reqwest::Client::new() }
    }

    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let method = method.parse().expect("a method");
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request
                .header("content-type", "application/vnd.schemaregistry.v1+json")
                .body(body.to_string());
        }
        let response = request.send().await.expect("an answer");
        let kind = response.headers()["content-type"].to_str().expect("text").to_owned();
        assert!(
            kind.starts_with("application/vnd.schemaregistry.v1+json")
                || kind.starts_with("application/json")
        );
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.expect("a body")).expect("JSON"))
    }
}

fn schema(name: &str, fields: &str) -> Value {
    let text = format!(r#"{{"type":"record","name":"{name}","namespace":"io.test","fields":[{fields}]}}"#);
    json!({"schema": text})
}

const A: &str = r#"{"name":"a","type":"string"}"#;
const A_B: &str = r#"{"name":"a","type":"string"},{"name":"b","type":["null","string"],"default":null}"#;
const A_C: &str = r#"{"name":"a","type":"string"},{"name":"c","type":"string"}"#;

/// What Confluent's clients say to a registry, and what it has to answer.
async fn converse(url: &str, subject: &str) {
    let api = Api::new(url);
    let versions = format!("/subjects/{subject}/versions");
    let name = subject.replace('-', "_");
    let (status, answer) = api.call("GET", &versions, None).await;
    assert_eq!((status, &answer["error_code"]), (404, &json!(40401)));
    let (status, first) = api.call("POST", &versions, Some(schema(&name, A))).await;
    assert_eq!(status, 200, "{first}");
    let again = api.call("POST", &versions, Some(schema(&name, A))).await;
    assert_eq!(again, (200, first.clone()), "the same schema has the same id");
    let level = format!("/config/{subject}");
    let (status, answer) = api.call("PUT", &level, Some(json!({"compatibility": "BACKWARD"}))).await;
    // Apicurio answers with the name that it has in the answer to GET.
    let set = answer.get("compatibility").or(answer.get("compatibilityLevel"));
    assert_eq!((status, set), (200, Some(&json!("BACKWARD"))));
    let (_, answer) = api.call("GET", &level, None).await;
    assert_eq!(answer["compatibilityLevel"], "BACKWARD");
    let check = format!("/compatibility/subjects/{subject}/versions/latest");
    let (_, answer) = api.call("POST", &check, Some(schema(&name, A_C))).await;
    assert_eq!(answer["is_compatible"], false);
    let (_, answer) = api.call("POST", &check, Some(schema(&name, A_B))).await;
    assert_eq!(answer["is_compatible"], true);
    let (status, answer) = api.call("POST", &versions, Some(schema(&name, A_C))).await;
    assert_eq!((status, &answer["error_code"]), (409, &json!(409)));
    let (status, second) = api.call("POST", &versions, Some(schema(&name, A_B))).await;
    assert_eq!(status, 200, "{second}");
    assert_ne!(second["id"], first["id"]);
    assert_eq!(api.call("GET", &versions, None).await, (200, json!([1, 2])));
    for (version, number, id) in [("latest", 2, &second["id"]), ("1", 1, &first["id"])] {
        let (status, answer) = api.call("GET", &format!("{versions}/{version}"), None).await;
        assert_eq!((status, &answer["version"], &answer["id"]), (200, &json!(number), id));
        assert_eq!(answer["subject"], subject);
    }
    let (_, answer) = api.call("GET", &format!("/schemas/ids/{}", first["id"]), None).await;
    let text: Value = serde_json::from_str(answer["schema"].as_str().expect("a text")).expect("JSON");
    assert_eq!(text["fields"][0]["name"], "a");
    let (status, answer) = api.call("POST", &format!("/subjects/{subject}"), Some(schema(&name, A))).await;
    assert_eq!((status, &answer["id"], &answer["version"]), (200, &first["id"], &json!(1)));
    let (status, answer) = api.call("GET", "/schemas/ids/999999", None).await;
    assert_eq!((status, &answer["error_code"]), (404, &json!(40403)));
    let (status, answer) = api.call("GET", &format!("{versions}/77"), None).await;
    assert_eq!((status, &answer["error_code"]), (404, &json!(40402)));
    let (status, answer) = api.call("POST", &versions, Some(json!({"schema": "{"}))).await;
    assert_eq!((status, &answer["error_code"]), (422, &json!(42201)));
    let (_, answer) = api.call("GET", "/subjects", None).await;
    assert!(answer.as_array().expect("a list").contains(&json!(subject)));
}

/// The same by a client that others use.
async fn converse_as_others(url: &str, subject: &str) {
    let settings = SrSettings::new(url.to_owned());
    let supply = |fields: &str| {
        let text = schema(&subject.replace('-', "_"), fields)["schema"].as_str().expect("text").to_owned();
        SuppliedSchema::new(None, SchemaType::Avro, text)
    };
    let first = post_schema(&settings, subject.to_owned(), supply(A)).await.expect("registered");
    let read = get_schema_by_id(first.id, &settings).await.expect("found");
    assert_eq!(read.schema, first.schema);
    let api = Api::new(url);
    api.call("PUT", &format!("/config/{subject}"), Some(json!({"compatibility": "FULL_TRANSITIVE"}))).await;
    let refused = post_schema(&settings, subject.to_owned(), supply(A_C)).await.expect_err("not compatible");
    assert!(format!("{refused}").contains("409") || !refused.retriable, "{refused}");
    assert!(is_compatible_schema(&settings, subject.to_owned(), supply(A_B)).await.expect("an answer"));
    assert!(!is_compatible_schema(&settings, subject.to_owned(), supply(A_C)).await.expect("an answer"));
    let topic = subject.trim_end_matches("-value").to_owned();
    let strategy = SubjectNameStrategy::TopicNameStrategy(topic, false);
    assert_eq!(get_schema_by_subject(&settings, &strategy).await.expect("found").id, first.id);
}

fn topic(noun: PublicTopic) -> String {
    format!("test.{}", noun.topic())
}

async fn register_ours(url: &str) -> Ids {
    let client = RegistryClient::new(url).expect("a URL");
    let begun = Instant::now();
    let ids = client.register(topic, begun + patience::most()).await.expect("registered");
    assert_eq!(client.check(topic, begun + patience::most()).await, Ok(ids));
    let Found::Schema(text) = client.schema(ids.of(PublicTopic::Event)).await.expect("an answer") else {
        panic!("not found")
    };
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON"),
        serde_json::from_str::<Value>(PublicTopic::Event.text()).expect("JSON")
    );
    assert_eq!(client.schema(999_999).await, Ok(Found::Unknown));
    ids
}

#[tokio::test]
async fn confluents_clients_find_what_they_expect() {
    let url = serve(open(&Arc::default())).await;
    converse(&url, "orders-value").await;
    converse_as_others(&url, "carts-value").await;
    register_ours(&url).await;
}

#[tokio::test]
async fn a_real_registry_answers_the_same() {
    let Some(real) = Real::start() else {
        eprintln!("EVERLOG_KAFKA_TESTS is not 1: no real registry is asked");
        return;
    };
    // A registry that is not empty any more may know older runs of this test.
    let run = format!("t{}", std::process::id());
    converse(&real.url, &format!("{run}-orders-value")).await;
    converse_as_others(&real.url, &format!("{run}-carts-value")).await;
    register_ours(&real.url).await;
}

#[tokio::test]
async fn what_was_registered_is_there_after_a_restart() {
    let rows = Arc::new(Rows::default());
    rows.rows
        .lock()
        .expect("nobody panics")
        .insert(b"namespaces/default".to_vec(), b"of somebody else".to_vec());
    let before = Ids::built_in(&open(&rows), topic).expect("registered");
    assert_eq!(Ids::built_in(&open(&rows), topic), Ok(before));
    let url = serve(open(&rows)).await;
    assert_eq!(register_ours(&url).await, before);
    let api = Api::new(&url);
    let level = api.call("GET", "/config/test.events-value", None).await;
    assert_eq!(level, (200, json!({"compatibilityLevel": "FULL_TRANSITIVE"})));
    let next = open(&rows).register("other", schema("o", A)["schema"].as_str().unwrap()).expect("registered");
    assert_eq!(next, 5, "ids go on where they ended");
}

/// A log in which every earlier release has registered its schemas, at the level that they have.
#[test]
fn our_schemas_go_with_those_of_every_earlier_release() {
    let registry = open(&Arc::default());
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas/versions");
    for noun in PublicTopic::ALL {
        let subject = PublicTopic::subject(&topic(noun));
        registry.set_level(Some(&subject), CompatibilityLevel::FullTransitive).expect("stored");
        let path = |number: u32| folder.join(format!("{}.{number}.avsc", noun.name()));
        let earlier = (1..).map_while(|number| std::fs::read_to_string(path(number)).ok());
        for (text, number) in earlier.zip(1..) {
            let registered = registry.register(&subject, &text);
            registered.unwrap_or_else(|error| panic!("{noun:?} {number}: {error}"));
        }
    }
    Ids::built_in(&registry, topic).expect("registered");
}

#[tokio::test]
async fn an_id_is_given_out_only_when_it_is_stored() {
    let rows = Arc::new(Rows::default());
    let registry = open(&rows);
    *rows.is_broken.lock().expect("nobody panics") = true;
    let url = serve(registry.clone()).await;
    let api = Api::new(&url);
    let (status, answer) = api.call("POST", "/subjects/s/versions", Some(schema("s", A))).await;
    assert_eq!((status, &answer["error_code"]), (500, &json!(50001)));
    assert_eq!(api.call("GET", "/subjects", None).await, (200, json!([])));
    assert_eq!(api.call("GET", "/schemas/ids/1", None).await.0, 404);
    *rows.is_broken.lock().expect("nobody panics") = false;
    assert_eq!(api.call("POST", "/subjects/s/versions", Some(schema("s", A))).await, (200, json!({"id": 1})));
}

#[tokio::test]
async fn ids_are_serial_though_many_register_at_once() {
    let url = serve(open(&Arc::default())).await;
    let calls = (0..24).map(|number| {
        let url = url.clone();
        tokio::spawn(async move {
            let api = Api::new(&url);
            let body = schema(&format!("n{}", number % 12), A);
            api.call("POST", &format!("/subjects/s{}/versions", number % 6), Some(body)).await.1
        })
    });
    let mut ids = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        let answer = call.await.expect("it answers");
        // The second schema of a subject has another name and is refused.
        ids.extend(answer["id"].as_u64());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_too_large_or_too_much_is_refused() {
    let limits = Limits { schema_bytes_max: 1_000, subjects_max: 2, versions_max: 1, ..Limits::default() };
    let registry = Registry::open(Arc::new(Rows::default()), limits).expect("no rows");
    let text = |fields: &str| schema("r", fields)["schema"].as_str().unwrap().to_owned();
    registry.register("a", &text(A)).expect("room");
    assert!(matches!(registry.register("a", &text(A_B)), Err(Error::Limit(_))));
    registry.register("b", &text(A)).expect("room");
    assert!(matches!(registry.register("c", &text(A)), Err(Error::Limit(_))));
    assert!(matches!(registry.register("", &text(A)), Err(Error::Request(_))));
    let large = format!(r#"{{"type":"enum","name":"E","symbols":["{}"]}}"#, "x".repeat(1_000));
    assert!(matches!(registry.register("a", &large), Err(Error::SchemaInvalid(_))));
    let api = Api::new(&serve(registry).await);
    let body = json!({"schema": "\"string\"", "schemaType": "JSON"});
    assert_eq!(api.call("POST", "/subjects/a/versions", Some(body)).await.1["error_code"], 42201);
    let body = json!({"compatibility": "SOMETIMES"});
    assert_eq!(api.call("PUT", "/config", Some(body)).await.1["error_code"], 42203);
    assert_eq!(api.call("GET", "/subjects/a/versions/zero", None).await.1["error_code"], 42202);
    assert_eq!(api.call("GET", "/config/a", None).await.1["error_code"], 40408);
    assert_eq!(api.call("GET", "/nowhere", None).await.0, 404);
}

#[tokio::test]
async fn rows_that_cannot_be_read_stop_the_registry() {
    for (key, value) in
        [("schemas/id/x", "\"int\""), ("schemas/id/0000000001", "{"), ("schemas/level/", "ODD")]
    {
        let rows = Arc::new(Rows::default());
        rows.rows.lock().expect("nobody panics").insert(key.into(), value.into());
        assert!(matches!(Registry::open(rows, Limits::default()), Err(Error::Storage(_))), "{key}");
    }
    let rows = Arc::new(Rows::default());
    rows.rows.lock().expect("nobody panics").insert(b"schemas/subject/s/0000000002".to_vec(), b"1".to_vec());
    assert!(Registry::open(rows, Limits::default()).is_err(), "version 1 and the schema are missing");
}

#[tokio::test]
async fn a_registry_that_is_away_is_waited_for_until_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it has one"));
    drop(listener);
    let client = RegistryClient::new(&url).expect("a URL");
    let begun = Instant::now();
    let registered = client.register(topic, begun + Duration::from_millis(300));
    let registered = patience::answer("the end of a registration", registered).await.expect("it ends");
    let error = registered.expect_err("nobody is there");
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert!(matches!(client.schema(1).await, Err(ClientError::Unreachable { .. })));
    assert!(RegistryClient::new("no url").is_err());
    let away = RegistryClient::new("http://ann:secret@127.0.0.1:1")
        .expect("a URL")
        .schema(1)
        .await
        .expect_err("away");
    assert!(!away.to_string().contains("secret"), "{away}");
}

#[tokio::test]
async fn a_schema_that_does_not_go_with_ours_is_told_apart_from_a_registry_that_is_away() {
    let registry = open(&Arc::default());
    let strange = r#"{"type":"record","name":"WorkflowEvent","namespace":"io.everlog","fields":[{"name":"x","type":"int"}]}"#;
    registry.register("test.events-value", strange).expect("it is the first");
    let client = RegistryClient::new(&serve(registry).await).expect("a URL");
    let (begun, most) = (Instant::now(), patience::most());
    let refused = |error: ClientError| match error {
        ClientError::Refused { subject, code, .. } => (subject, code),
        away @ ClientError::Unreachable { .. } => panic!("{away}"),
    };
    let error = client.check(topic, begun + most).await.expect_err("another schema");
    assert_eq!(refused(error), ("test.events-value".into(), 40_403));
    let error = client.register(topic, begun + most).await.expect_err("it does not go with the other");
    assert_eq!(refused(error), ("test.events-value".into(), 409));
}
