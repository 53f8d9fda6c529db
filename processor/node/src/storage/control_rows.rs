//! The rows of `control` for namespaces, task queues and schemas.

use std::sync::{Arc, Weak};

use everlog_log::Log;
use everlog_registry::Storage;
use everlog_temporal::Control;

/// The rows of a log. Does not keep the log open.
pub struct ControlRows(Weak<dyn Log>);

impl ControlRows {
    /// Those of this log.
    pub fn of(log: &Arc<dyn Log>) -> Self {
        Self(Arc::downgrade(log))
    }

    fn log(&self) -> Result<Arc<dyn Log>, String> {
        self.0.upgrade().ok_or_else(|| everlog_log::Error::Closed.to_string())
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), String> {
        self.log()?.control_put(key, value).map_err(|error| error.to_string())
    }

    fn visit(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        self.log()?.control_scan(visit).map_err(|error| error.to_string())
    }
}

impl Control for ControlRows {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.write(key, Some(value))
    }

    fn remove(&self, key: &[u8]) -> Result<(), String> {
        self.write(key, None)
    }

    fn scan(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>, String> {
        let mut rows = Vec::new();
        self.visit(&mut |key, value| rows.push((key.to_vec(), value.to_vec())))?;
        Ok(rows)
    }
}

impl Storage for ControlRows {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.write(key, Some(value))
    }

    fn remove(&self, key: &[u8]) -> Result<(), String> {
        self.write(key, None)
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        self.visit(visit)
    }
}

#[cfg(test)]
mod tests {
    use everlog_rocks::log::{Embedded, Options};

    use super::*;

    #[test]
    fn rows_outlive_the_log_that_they_were_put_into() {
        let dir = tempfile::tempdir().expect("a directory");
        let open =
            || -> Arc<dyn Log> { Arc::new(Embedded::open(Options::new(dir.path())).expect("it is free")) };
        let log = open();
        let rows = ControlRows::of(&log);
        Control::put(&rows, b"namespace/1", b"shop").expect("it is open");
        drop(log);
        assert_eq!(Control::scan(&rows), Err("the log is closed".into()));
        let log = open();
        let rows = ControlRows::of(&log);
        assert_eq!(Control::scan(&rows), Ok(vec![(b"namespace/1".to_vec(), b"shop".to_vec())]));
        let mut seen = 0;
        Storage::scan(&rows, &mut |_, _| seen += 1).expect("it is open");
        assert_eq!(seen, 1);
        Storage::remove(&rows, b"namespace/1").expect("it is open");
        assert_eq!(Control::scan(&rows), Ok(Vec::new()));
    }
}
