//! The metrics of the schema registry.

use super::*;
use crate::services::schemas::{self, Schemas};

pub(super) const REGISTRY: &[Row<schemas::Stats>] = rows! {
    Counts "everlog_registry_questions_total" "Requests to the schema registry." |s| load(&s.questions);
    Counts "everlog_registry_failures_total" "Requests that the schema registry did not answer." |s| load(&s.failures);
};

pub(super) const REGISTRY_WORK: &[Row<everlog_registry::Stats>] = rows! {
    Stands "everlog_registry_checks_running" "Long schema checks that the built-in registry is running; at most `registry.checks_max`." |s| {
        load(&s.checks_running)
    };
    Stands "everlog_registry_checks_waiting" "Schema checks that wait for a running one to end; at most `registry.checks_waiting_max`." |s| {
        load(&s.checks_waiting)
    };
    Counts "everlog_registry_checks_too_large_total" "Schema checks refused because they took more steps than `registry.check_steps_max`." |s| {
        load(&s.checks_too_large)
    };
    Counts "everlog_registry_checks_unwanted_total" "Schema checks cancelled because their caller was gone." |s| {
        load(&s.checks_unwanted)
    };
    Counts "everlog_registry_requests_refused_total" "Requests to the built-in registry refused with 503: too many requests or checks at once." |s| {
        load(&s.requests_refused)
    };
    Stands "everlog_registry_schema_bytes" "Bytes of all schemas and their index; at most `registry.bytes_max`." |s| {
        load(&s.schema_bytes)
    };
};

/// Adds the schema registry.
pub fn watch_registry(registry: &Registry, schemas: &Arc<Schemas>) {
    let (asked, work) = (Arc::clone(schemas), schemas.work());
    add(registry, REGISTRY, None, move |visit| visit("", asked.stats()));
    add(registry, REGISTRY_WORK, None, move |visit| work.iter().for_each(|stats| visit("", stats)));
}
