//! What the log refuses for want of room, said once per episode and not at every attempt.

/// Whether one kind of call to the log is refused at the moment.
pub(crate) struct RefusalLog {
    what: &'static str,
    lasts: bool,
}

impl RefusalLog {
    pub(crate) fn of(what: &'static str) -> Self {
        Self { what, lasts: false }
    }

    pub(crate) fn begins(&mut self, partition: u32, error: &everlog_log::Error) {
        if !std::mem::replace(&mut self.lasts, true) {
            tracing::warn!(partition, %error, "{} are refused and tried again until they are taken", self.what);
        }
    }

    pub(crate) fn ends(&mut self, partition: u32) {
        if std::mem::replace(&mut self.lasts, false) {
            tracing::info!(partition, "{} are taken again", self.what);
        }
    }
}
