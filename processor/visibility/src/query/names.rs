//! Which attributes a query can name.

use std::collections::BTreeMap;

use crate::attribute::{Attribute, AttributeSource, AttributeType, SystemAttribute, known};

/// Attributes by the names that queries use.
pub trait AttributeNames {
    /// The attribute of a name.
    fn find(&self, name: &str) -> Option<NamedAttribute>;
}

/// An attribute that a query names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAttribute {
    /// The attribute.
    pub attribute: Attribute,
    /// What stands before every value that a query gives for it.
    pub value_prefix: &'static str,
}

/// The attributes of runs in one namespace.
#[derive(Clone, Copy, Debug)]
pub struct RunAttributes<'a> {
    /// The custom ones: numbers of `IndexedValueType` by name. A number that is unknown is as if it were not there.
    pub custom: &'a BTreeMap<String, i32>,
}

/// Asks for a schedule by its own id, and means the Workflow Id of its record.
const SCHEDULE_ID: &str = "ScheduleId";
const SCHEDULE_PREFIX: &str = "temporal-sys-scheduler:";

impl From<Attribute> for NamedAttribute {
    fn from(attribute: Attribute) -> Self {
        Self { attribute, value_prefix: "" }
    }
}

impl AttributeNames for RunAttributes<'_> {
    fn find(&self, name: &str) -> Option<NamedAttribute> {
        let custom = self.custom.get(name).and_then(|number| AttributeType::from_number(*number));
        let custom = custom.map(|kind| Attribute { source: AttributeSource::Named(name.to_owned()), kind });
        if let Some(attribute) = custom.or_else(|| known(name)) {
            return Some(attribute.into());
        }
        let attribute = Attribute::system(SystemAttribute::WorkflowId);
        (name == SCHEDULE_ID).then_some(NamedAttribute { attribute, value_prefix: SCHEDULE_PREFIX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_attribute_comes_first() {
        let custom = BTreeMap::from([
            ("Color".to_owned(), AttributeType::Text.number()),
            ("BuildIds".to_owned(), AttributeType::Int.number()),
            ("Broken".to_owned(), 99),
        ]);
        let names = RunAttributes { custom: &custom };
        let kind = |name| names.find(name).map(|found| found.attribute.kind);
        assert_eq!(kind("Color"), Some(AttributeType::Text));
        assert_eq!(kind("BuildIds"), Some(AttributeType::Int));
        assert_eq!(kind("WorkflowId"), Some(AttributeType::Keyword));
        assert_eq!(kind("Broken"), None);
        assert_eq!(kind("color"), None);
        assert_eq!(names.find("ScheduleId").map(|found| found.value_prefix), Some(SCHEDULE_PREFIX));
        let custom = BTreeMap::from([("ScheduleId".to_owned(), AttributeType::Keyword.number())]);
        let found = RunAttributes { custom: &custom }.find("ScheduleId").expect("a custom attribute");
        assert_eq!((found.attribute.is_named("ScheduleId"), found.value_prefix), (true, ""));
    }
}
