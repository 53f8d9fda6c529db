//! An index of the branches of a reader's union, so that only branches of a fitting name are compared.

use std::collections::HashMap;

use crate::avro::{AvroSchema, NamedBody, TypeId, TypeShape};
use crate::work_budget::{Stopped, WorkBudget};

/// The index of one union.
pub(super) struct Branches<'a> {
    /// Named types by their names without namespaces, and by their aliases. A match may still be of another kind or
    /// namespace.
    named: HashMap<&'a str, Vec<TypeId>>,
    /// The other types, at most one of each kind.
    unnamed: Vec<TypeId>,
}

impl<'a> Branches<'a> {
    pub(super) fn of(
        schema: &'a AvroSchema,
        branches: &[TypeId],
        steps: &WorkBudget,
    ) -> Result<Self, Stopped> {
        let mut found = Self { named: HashMap::new(), unnamed: Vec::new() };
        for branch in branches {
            let TypeShape::Named(named) = &schema.types[*branch].shape else {
                found.unnamed.push(*branch);
                continue;
            };
            steps.spend(1 + named.aliases.len())?;
            for name in std::iter::once(named.short_name()).chain(named.aliases.iter().map(String::as_str)) {
                let of_this_name = found.named.entry(name).or_default();
                if of_this_name.last() != Some(branch) {
                    of_this_name.push(*branch);
                }
            }
        }
        Ok(found)
    }

    /// A superset of the branches that read the writer's type, which is no union.
    pub(super) fn that_may_read(&self, writer: &TypeShape) -> impl Iterator<Item = &TypeId> {
        let of = |name: &str| self.named.get(name).map_or(&[][..], Vec::as_slice);
        let (by_name, by_alias) = match writer {
            TypeShape::Named(named) if named.full_name == named.short_name() => {
                (of(&named.full_name), &[][..])
            }
            TypeShape::Named(named) => (of(named.short_name()), of(&named.full_name)),
            TypeShape::Primitive(_) | TypeShape::Array(_) | TypeShape::Map(_) | TypeShape::Union(_) => {
                (&self.unnamed[..], &[][..])
            }
        };
        by_name.iter().chain(by_alias)
    }
}

/// Whether a field of the schema has an alias.
pub(super) fn has_field_aliases(schema: &AvroSchema) -> bool {
    schema.types.iter().any(|this| match &this.shape {
        TypeShape::Named(named) => match &named.body {
            NamedBody::Record { fields, .. } => fields.iter().any(|field| !field.aliases.is_empty()),
            NamedBody::Enum { .. } | NamedBody::Fixed { .. } => false,
        },
        TypeShape::Primitive(_) | TypeShape::Array(_) | TypeShape::Map(_) | TypeShape::Union(_) => false,
    })
}
