//! What Apicurio's serializers and deserializers call, as they send it.

use super::*;

const ROOT: &str = "/apis/registry/v2";
const ARTIFACT: &str = "/apis/registry/v2/groups/default/artifacts/orders-value";
const ORDER: &str = r#"{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}"#;
const NEWER: &str = r#"{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"n","type":"int","default":0}]}"#;
const OTHER: &str = r#"{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}"#;

struct Serializer(Api);

impl Serializer {
    async fn new() -> Self {
        Self(Api::new(&serve(open(&Arc::default())).await))
    }

    /// A request with these headers and this schema; its status and its answer.
    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        schema: &'static str,
    ) -> (u16, Value) {
        let url = format!("{}{path}", self.0.url);
        let mut request = self.0.http.request(method.parse().expect("a method"), url);
        for (name, value) in headers.iter().chain(&[("Content-Type", "application/json")]) {
            request = request.header(*name, *value);
        }
        let response = request.body(schema).send().await.expect("an answer");
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.expect("a body")).expect("JSON"))
    }

    async fn register(&self, schema: &'static str) -> (u16, Value) {
        let path = format!("{ROOT}/groups/default/artifacts?ifExists=RETURN_OR_UPDATE&canonical=false");
        let headers = [("X-Registry-ArtifactId", "orders-value"), ("X-Registry-ArtifactType", "AVRO")];
        self.ask("POST", &path, &headers, schema).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, &[], "").await
    }
}

fn metadata(version: &str, id: u32) -> (u16, Value) {
    let told = json!({
        "groupId": "default", "id": "orders-value", "version": version, "type": "AVRO", "state": "ENABLED",
        "globalId": id, "contentId": id, "references": [],
    });
    (200, told)
}

fn text(schema: &str) -> (u16, Value) {
    (200, serde_json::from_str(schema).expect("JSON"))
}

#[tokio::test]
async fn a_schema_is_registered_and_found_by_each_of_its_ids() {
    let serializer = Serializer::new().await;
    assert_eq!(serializer.register(ORDER).await, metadata("1", 1));
    assert_eq!(serializer.register(NEWER).await, metadata("2", 2));
    assert_eq!(serializer.register(ORDER).await, metadata("1", 1), "it is there already");
    assert_eq!(serializer.get(&format!("{ARTIFACT}/meta")).await, metadata("2", 2));
    assert_eq!(serializer.get(&format!("{ARTIFACT}/versions/1/meta")).await, metadata("1", 1));
    let by_content = serializer.ask("POST", &format!("{ARTIFACT}/meta?canonical=true"), &[], ORDER).await;
    assert_eq!(by_content, metadata("1", 1));
    for ids in ["contentIds", "globalIds"] {
        assert_eq!(serializer.get(&format!("{ROOT}/ids/{ids}/1?dereference=false")).await, text(ORDER));
        assert_eq!(serializer.get(&format!("{ROOT}/ids/{ids}/2/references")).await, (200, json!([])));
    }
    // Clients of Confluent's paths have the same.
    let (status, schema) = serializer.get("/subjects/orders-value/versions/2").await;
    assert_eq!((status, &schema["id"]), (200, &json!(2)));
}

#[tokio::test]
async fn what_cannot_be_had_is_refused() {
    let serializer = Serializer::new().await;
    assert_eq!(serializer.get(&format!("{ARTIFACT}/meta")).await.0, 404);
    assert_eq!(serializer.register(ORDER).await.0, 200);
    assert_eq!(serializer.register(OTHER).await.0, 409);
    assert_eq!(serializer.register("{").await.0, 422);
    let other_group = ARTIFACT.replace("default", "shop");
    for missing in [
        format!("{other_group}/meta"),
        format!("{ARTIFACT}/versions/9/meta"),
        format!("{ROOT}/ids/contentIds/9"),
        format!("{ROOT}/ids/globalIds/9/references"),
    ] {
        assert_eq!(serializer.get(&missing).await.0, 404, "{missing}");
    }
    let (id, exists) = (("X-Registry-ArtifactId", "orders-value"), "?ifExists=RETURN_OR_UPDATE");
    for (group, query, headers) in [
        ("shop", exists, vec![id]),
        ("default", exists, vec![]),
        ("default", exists, vec![id, ("X-Registry-ArtifactType", "JSON")]),
        ("default", exists, vec![id, ("X-Registry-Version", "7")]),
        ("default", "?ifExists=UPDATE", vec![id]),
        ("default", "", vec![id]),
    ] {
        let path = format!("{ROOT}/groups/{group}/artifacts{query}");
        assert_eq!(serializer.ask("POST", &path, &headers, NEWER).await.0, 422, "{path} {headers:?}");
    }
    assert_eq!(
        serializer.get(&format!("{ARTIFACT}/meta")).await,
        metadata("1", 1),
        "no refusal left anything"
    );
}
