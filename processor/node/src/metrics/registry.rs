//! The metrics of the schema registry.

use super::*;
use crate::schemas::{self, Schemas};

pub(super) const REGISTRY: &[Row<schemas::Stats>] = rows! {
    Counts "everlog_registry_questions_total" "Questions to the schema registry." |s| load(&s.questions);
    Counts "everlog_registry_failures_total" "Those of them that it did not answer." |s| load(&s.failures);
};

/// Adds the schema registry, as it is asked.
pub fn watch_registry(registry: &Registry, schemas: &Arc<Schemas>) {
    let schemas = Arc::clone(schemas);
    add(registry, REGISTRY, None, move |visit| visit("", schemas.stats()));
}
