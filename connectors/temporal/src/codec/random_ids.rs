//! Random UUIDs, which never enter a decision, and UUIDs derived from a name.

use uuid::{Builder, Uuid};

/// A random UUID.
pub fn id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("every supported system has a source of random bytes");
    Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// UUIDs derived from a name, for what every node creates at its first start: all nodes take the same one. The next ones serve when
/// it was deleted.
pub(crate) fn ids_of(name: &str) -> impl Iterator<Item = String> {
    (0_u64..).map(move |number| {
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{name}/{number}").as_bytes()).to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_and_never_the_same() {
        let (first, second) = (id(), id());
        assert_ne!(first, second);
        assert_eq!(uuid::Uuid::parse_str(&first).expect("a UUID").get_version_num(), 4);
    }
}
