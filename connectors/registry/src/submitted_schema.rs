//! The schema of a request: parsed, with the identity that tells it from others.

use std::sync::Arc;

use crate::avro::{AvroSchema, Fault};
use crate::error::Error;
use crate::limits::Limits;
use crate::work_budget::WorkBudget;

/// The schema of a request.
pub(crate) struct SubmittedSchema<'t> {
    pub(crate) text: &'t str,
    pub(crate) avro: AvroSchema,
    /// Schemas with the same identity are the same.
    pub(crate) identity: Arc<str>,
}

impl<'t> SubmittedSchema<'t> {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::SchemaInvalid`], or that it is too large.
    pub(crate) fn read(text: &'t str, limits: &Limits, steps: &WorkBudget) -> Result<Self, Error> {
        let most = limits.schema_bytes_max;
        if text.len() > most {
            return Err(Error::SchemaInvalid(format!("it has more than {most} bytes")));
        }
        let read = AvroSchema::parse(text, steps).and_then(|avro| avro.check_defaults(steps).map(|()| avro));
        match read {
            Ok(avro) => Ok(Self { text, identity: avro.identity().into(), avro }),
            Err(Fault::Invalid(reason)) => Err(Error::SchemaInvalid(reason)),
            Err(Fault::Stopped(stopped)) => Err(stopped.into()),
        }
    }

    /// Bytes that it takes in the registry.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.identity.len()
    }
}
