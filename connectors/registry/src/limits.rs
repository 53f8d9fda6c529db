//! The limits of the registry.

/// How much is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a schema's text.
    pub schema_bytes_max: usize,
    /// Bytes of a subject's name.
    pub subject_bytes_max: usize,
    /// Subjects.
    pub subjects_max: usize,
    /// Versions of a subject.
    pub versions_max: usize,
    /// Bytes of all schemas together, and of what tells them apart.
    pub bytes_max: usize,
    /// Bytes of the schemas of one list; a single one may be larger.
    pub list_bytes_max: usize,
    /// Requests at once.
    pub requests_max: usize,
    /// Steps of one check: types, fields, symbols and versions that are read and compared.
    pub check_steps_max: usize,
    /// Checks at once that take long.
    pub checks_max: usize,
    /// Those that wait for one of these to end.
    pub checks_waiting_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            schema_bytes_max: 1 << 20,
            subject_bytes_max: 512,
            subjects_max: 10_000,
            versions_max: 1_000,
            bytes_max: 256 << 20,
            list_bytes_max: 16 << 20,
            requests_max: 64,
            check_steps_max: 4_000_000,
            checks_max: 2,
            checks_waiting_max: 8,
        }
    }
}
