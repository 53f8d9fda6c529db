//! The limits of the registry, from the settings.

/// The limits of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text of a schema.
    pub schema_bytes_max: usize,
    /// Bytes of a subject's name.
    pub subject_bytes_max: usize,
    /// Subjects, deleted ones included.
    pub subjects_max: usize,
    /// Versions of a subject, deleted ones included.
    pub versions_max: usize,
    /// Bytes of the texts and identities of all schemas together.
    pub bytes_max: usize,
    /// Bytes of the schemas in one list; a list of a single schema may be larger.
    pub list_bytes_max: usize,
    /// Requests that run at once.
    pub requests_max: usize,
    /// Steps of one check: types, fields, symbols and versions that are parsed and compared.
    pub check_steps_max: usize,
    /// Long checks that run at once.
    pub checks_max: usize,
    /// Long checks that wait for a slot.
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
