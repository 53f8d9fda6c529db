//! Names for the outside: namespaces by name, schemas by id, activities by task token.

use std::sync::Arc;

use bytes::Bytes;
use everlog_avro::PublicTopic;
use everlog_avro::command::Token;
use everlog_partition::NameResolver;
use everlog_registry::Ids;
use everlog_temporal::{Namespaces, TokenSigner};

/// All of them. Cheap to clone; nothing here blocks.
#[derive(Clone)]
pub struct NodeNames {
    /// The namespaces.
    pub namespaces: Arc<Namespaces>,
    /// Reads task tokens.
    pub token_signer: TokenSigner,
    /// The ids of our schemas in the registry.
    pub ids: Ids,
}

impl NameResolver for NodeNames {
    fn namespace(&self, id: &str) -> Option<Arc<str>> {
        self.namespaces.name(id)
    }

    fn schema_id(&self, noun: PublicTopic) -> u32 {
        self.ids.of(noun)
    }

    fn deleted_namespaces(&self) -> Arc<[String]> {
        self.namespaces.deleted()
    }
}

impl everlog_ingress::Names for NodeNames {
    fn namespace(&self, name: &str) -> Option<(String, i64)> {
        self.namespaces.known(name)
    }

    fn typed(&self, namespace: &str, search_attributes: &Bytes) -> Result<Bytes, String> {
        self.namespaces.typed(namespace, search_attributes)
    }

    fn token(&self, token: &Bytes) -> Option<Token> {
        let task = self.token_signer.activity(token)?;
        Some(Token {
            namespace_id: task.namespace_id,
            workflow_id: task.workflow_id,
            run_id: task.run_id,
            target: task.target,
        })
    }
}
