//! The metrics of the schema registry.

use super::*;
use crate::services::schemas::{self, Schemas};

pub(super) const REGISTRY: &[Row<schemas::Stats>] = rows! {
    Counts "everlog_registry_questions_total" "Questions to the schema registry." |s| load(&s.questions);
    Counts "everlog_registry_failures_total" "Those of them that it did not answer." |s| load(&s.failures);
};

pub(super) const REGISTRY_WORK: &[Row<everlog_registry::Stats>] = rows! {
    Stands "everlog_registry_checks_running" "Checks of schemas that take long and are under way in the built-in registry; at most `registry.checks_max`." |s| load(&s.checks_running);
    Stands "everlog_registry_checks_waiting" "Those that wait for one of these to end; at most `registry.checks_waiting_max`." |s| load(&s.checks_waiting);
    Counts "everlog_registry_checks_too_large_total" "Checks that were refused because they took more steps than `registry.check_steps_max`." |s| load(&s.checks_too_large);
    Counts "everlog_registry_checks_unwanted_total" "Checks that were ended because nobody waited for the answer any more." |s| load(&s.checks_unwanted);
    Counts "everlog_registry_requests_refused_total" "Requests that were refused with 503 because there were too many at once, or too many checks." |s| load(&s.requests_refused);
    Stands "everlog_registry_schema_bytes" "Bytes of all schemas, and of what tells them apart; at most `registry.bytes_max`." |s| load(&s.schema_bytes);
};

/// Adds the schema registry, as it is asked.
pub fn watch_registry(registry: &Registry, schemas: &Arc<Schemas>) {
    let (asked, work) = (Arc::clone(schemas), schemas.work());
    add(registry, REGISTRY, None, move |visit| visit("", asked.stats()));
    add(registry, REGISTRY_WORK, None, move |visit| work.iter().for_each(|stats| visit("", stats)));
}
