//! Which release this is: the same value all the time, the labels say it.

use std::collections::HashMap;

use everlog_engine::level;
use prometheus::{IntGauge, Opts, Registry};

pub(super) const NAME: &str = "everlog_build_info";
pub(super) const LABELS: &str = "version, commit, level, format";
pub(super) const HELP: &str = "1; the labels are the release of this node, the commit that it is built from, the highest level of \
                               decisions that it knows, and the version of its journal records.";

pub(super) fn show(registry: &Registry) {
    let values = [
        env!("CARGO_PKG_VERSION").into(),
        env!("EVERLOG_COMMIT").into(),
        level::LATEST.to_string(),
        everlog_wire::VERSION.to_string(),
    ];
    let labels: HashMap<String, String> = LABELS.split(", ").map(str::to_owned).zip(values).collect();
    let info = IntGauge::with_opts(Opts::new(NAME, HELP).const_labels(labels)).expect("well-formed");
    info.set(1);
    registry.register(Box::new(info)).expect("no name stands twice");
}
