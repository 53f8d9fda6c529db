//! The schema of a request: its text, parsed, with its identity.

use std::sync::Arc;

use crate::avro::{AvroSchema, Fault};
use crate::error::Error;
use crate::limits::Limits;
use crate::work_budget::WorkBudget;

/// The schema of a request.
pub(crate) struct SubmittedSchema<'t> {
    pub(crate) text: &'t str,
    pub(crate) avro: AvroSchema,
    /// Equal for two texts of the same schema.
    pub(crate) identity: Arc<str>,
}

impl<'t> SubmittedSchema<'t> {
    /// Parses the text and checks its defaults.
    ///
    /// # Errors
    /// [`Error::SchemaInvalid`], or what stopped the work.
    pub(crate) fn read(text: &'t str, limits: &Limits, steps: &WorkBudget) -> Result<Self, Error> {
        let most = limits.schema_bytes_max;
        if text.len() > most {
            return Err(Error::SchemaInvalid(format!(
                "it has more than {most} bytes, the limit of a schema"
            )));
        }
        let read = AvroSchema::parse(text, steps).and_then(|avro| avro.check_defaults(steps).map(|()| avro));
        match read {
            Ok(avro) => Ok(Self { text, identity: avro.identity().into(), avro }),
            Err(Fault::Invalid(reason)) => Err(Error::SchemaInvalid(reason)),
            Err(Fault::Stopped(stopped)) => Err(stopped.into()),
        }
    }

    /// Bytes of its text and its identity.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.identity.len()
    }
}
