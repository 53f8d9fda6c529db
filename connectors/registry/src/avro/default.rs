//! Checks that the defaults of fields are values of their types.

use serde_json::Value;

use crate::avro::{AvroSchema, Fault, NamedBody, Primitive, TypeId, TypeShape};
use crate::work_budget::{Stopped, WorkBudget};

impl AvroSchema {
    /// Checks the default of each field. A step is a comparison of a value with a type or a field.
    ///
    /// # Errors
    /// [`Fault::Invalid`]: a default is no value of its type. [`Fault::Stopped`].
    pub(crate) fn check_defaults(&self, steps: &WorkBudget) -> Result<(), Fault> {
        let fields = self.types.iter().filter_map(|this| match &this.shape {
            TypeShape::Named(named) => match &named.body {
                NamedBody::Record { fields, .. } => Some(fields),
                NamedBody::Enum { .. } | NamedBody::Fixed { .. } => None,
            },
            TypeShape::Primitive(_) | TypeShape::Array(_) | TypeShape::Map(_) | TypeShape::Union(_) => None,
        });
        for field in fields.flatten() {
            if let Some(default) = &field.default
                && !self.takes(field.type_id, default, steps)?
            {
                Err(format!("the default of the field {} is no value of its type: {default}", field.name))?;
            }
        }
        Ok(())
    }

    /// Whether a default is a value of the type. A value of any branch is a value of a union.
    fn takes(&self, id: TypeId, value: &Value, steps: &WorkBudget) -> Result<bool, Stopped> {
        steps.spend(1)?;
        match (&self.types[id].shape, value) {
            (TypeShape::Primitive(primitive), value) => Ok(primitive.takes(value)),
            (TypeShape::Array(items), Value::Array(values)) => {
                all(values.iter(), |value| self.takes(*items, value, steps))
            }
            (TypeShape::Map(items), Value::Object(values)) => {
                all(values.values(), |value| self.takes(*items, value, steps))
            }
            (TypeShape::Union(branches), value) => {
                Ok(!all(branches.iter(), |branch| self.takes(*branch, value, steps).map(|takes| !takes))?)
            }
            (TypeShape::Named(named), value) => match (&named.body, value) {
                (NamedBody::Record { fields, .. }, Value::Object(values)) => {
                    steps.spend(fields.len())?;
                    // A default in the place of a missing value is checked at its own field.
                    all(fields.iter(), |field| match values.get(&field.name) {
                        Some(value) => self.takes(field.type_id, value, steps),
                        None => Ok(field.default.is_some()),
                    })
                }
                (NamedBody::Enum { .. } | NamedBody::Fixed { .. }, value) => Ok(value.is_string()),
                (NamedBody::Record { .. }, _) => Ok(false),
            },
            (TypeShape::Array(_) | TypeShape::Map(_), _) => Ok(false),
        }
    }
}

/// Whether a test is true for all items. Stops at the first one for which it is false.
fn all<T>(
    each: impl Iterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, Stopped>,
) -> Result<bool, Stopped> {
    for one in each {
        if !holds(one)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Primitive {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Int => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            Self::Long => value.is_i64(),
            Self::Float | Self::Double => value.is_number(),
            Self::Bytes | Self::String => value.is_string(),
        }
    }
}
