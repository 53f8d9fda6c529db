//! The settings of a client to be made, and how it is made of them.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::KafkaResult;

use crate::client::librdkafka::{HasNativeClient, Live};
use crate::client::properties_file::PropertiesFile;
use crate::permissions::KafkaUser;

/// Settings that a client is made of, again and again where it is renewed.
#[derive(Clone)]
pub(crate) struct ClientSettings {
    config: ClientConfig,
    file: Option<Arc<PropertiesFile>>,
    principal: Arc<KafkaUser>,
}

impl ClientSettings {
    pub(crate) fn new(config: ClientConfig, file: Option<Arc<PropertiesFile>>, principal: KafkaUser) -> Self {
        ClientSettings { config, file, principal: Arc::new(principal) }
    }

    /// As whom the brokers know the clients.
    pub(crate) fn principal(&self) -> &KafkaUser {
        &self.principal
    }

    /// Makes a client, with the user name and the password that the file has now. It takes later ones while it lives.
    pub(crate) fn create_with_context<C, T>(&self, context: C) -> KafkaResult<Live<T>>
    where
        C: ClientContext,
        T: FromClientConfigAndContext<C> + HasNativeClient,
    {
        let Some(file) = &self.file else {
            let client = T::from_config_and_context(&self.config, context)?;
            return Ok(Live::of(client, Arc::clone(&self.principal)));
        };
        let mut config = self.config.clone();
        for (key, value) in file.for_new_client().iter() {
            config.set(key, value);
        }
        let client = T::from_config_and_context(&config, context)?;
        Ok(file.live().add(client, Arc::clone(&self.principal)))
    }
}

impl Deref for ClientSettings {
    type Target = ClientConfig;

    fn deref(&self) -> &ClientConfig {
        &self.config
    }
}

impl DerefMut for ClientSettings {
    fn deref_mut(&mut self) -> &mut ClientConfig {
        &mut self.config
    }
}
