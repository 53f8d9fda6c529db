//! Whether the defaults of fields are values of their types.

use serde_json::Value;

use super::{AvroSchema, Body, Field, Primitive, Shape, TypeId};

/// Comparisons of a value with a type or a field, in one schema: a default that each of many records might take is given up here.
const STEPS_MAX: u32 = 1_000_000;

impl AvroSchema {
    /// Checks the default of each field.
    ///
    /// # Errors
    /// Which one is none, in words.
    pub(crate) fn check_defaults(&self) -> Result<(), String> {
        let mut steps_left = STEPS_MAX;
        let fields = self.types.iter().filter_map(|this| match &this.shape {
            Shape::Named(named) => match &named.body {
                Body::Record { fields, .. } => Some(fields),
                Body::Enum { .. } | Body::Fixed { .. } => None,
            },
            Shape::Primitive(_) | Shape::Array(_) | Shape::Map(_) | Shape::Union(_) => None,
        });
        for field in fields.flatten() {
            if let Some(default) = &field.default {
                self.takes(field.type_id, default, &mut steps_left).then_some(()).ok_or_else(|| {
                    format!("the default of {} is no value of its type: {default}", field.name)
                })?;
            }
        }
        Ok(())
    }

    /// Whether this is a value of the type, as a default is written. A union takes what one of its branches does.
    fn takes(&self, id: TypeId, value: &Value, steps_left: &mut u32) -> bool {
        if *steps_left == 0 {
            return false;
        }
        *steps_left -= 1;
        match (&self.types[id].shape, value) {
            (Shape::Primitive(primitive), value) => primitive.takes(value),
            (Shape::Array(items), Value::Array(values)) => {
                values.iter().all(|value| self.takes(*items, value, steps_left))
            }
            (Shape::Map(items), Value::Object(values)) => {
                values.values().all(|value| self.takes(*items, value, steps_left))
            }
            (Shape::Union(branches), value) => {
                branches.iter().any(|branch| self.takes(*branch, value, steps_left))
            }
            (Shape::Named(named), value) => match (&named.body, value) {
                (Body::Record { fields, .. }, Value::Object(values)) => {
                    *steps_left = steps_left.saturating_sub(u32::try_from(fields.len()).unwrap_or(u32::MAX));
                    // A default in the place of a missing value is checked at its own field.
                    let mut is_there = |field: &Field| match values.get(&field.name) {
                        Some(value) => self.takes(field.type_id, value, steps_left),
                        None => field.default.is_some(),
                    };
                    fields.iter().all(&mut is_there)
                }
                (Body::Enum { .. } | Body::Fixed { .. }, value) => value.is_string(),
                (Body::Record { .. }, _) => false,
            },
            (Shape::Array(_) | Shape::Map(_), _) => false,
        }
    }
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
