//! Grants in the claims of a token: a list of texts such as `orders:write`.

use std::sync::atomic::{AtomicU64, Ordering};

use regex::Regex;
use serde_json::Value;

use crate::error::OpenError;
use crate::principal::Grants;

/// How the elements of the list are read.
pub(crate) enum PermissionFormat {
    /// `NAMESPACE:ROLE`
    Plain,
    /// By an expression with the groups `namespace` and `role`, which matches the whole element.
    Expression(Regex),
}

impl PermissionFormat {
    /// By the expression, if there is one.
    pub(crate) fn read(expression: Option<&str>) -> Result<Self, OpenError> {
        let Some(expression) = expression else { return Ok(Self::Plain) };
        let refused = |fault: String| OpenError::Setting { setting: "permissions_regex", fault };
        Regex::new(expression).map_err(|error| refused(error.to_string()))?;
        // A match within an element would give "not-orders:admin" what "orders:admin" gives.
        let whole =
            Regex::new(&format!(r"\A(?:{expression})\z")).map_err(|error| refused(error.to_string()))?;
        for group in ["namespace", "role"] {
            if !whole.capture_names().flatten().any(|name| name == group) {
                return Err(refused(format!("it has no group (?<{group}>...)")));
            }
        }
        Ok(Self::Expression(whole))
    }

    /// What a list grants. Anything else than a list grants nothing; wrong elements are skipped and counted.
    pub(crate) fn grants(&self, permissions: &Value, skipped: &AtomicU64) -> Grants {
        let mut grants = Grants::default();
        let Some(elements) = permissions.as_array() else {
            skipped.fetch_add(1, Ordering::Relaxed);
            return grants;
        };
        for element in elements {
            let is_added = match (self, element.as_str()) {
                (_, None) => false,
                (Self::Plain, Some(text)) => grants.add_text(text).is_ok(),
                (Self::Expression(expression), Some(text)) => add(&mut grants, expression, text).is_some(),
            };
            if !is_added {
                skipped.fetch_add(1, Ordering::Relaxed);
            }
        }
        grants
    }
}

fn add(grants: &mut Grants, expression: &Regex, text: &str) -> Option<()> {
    let captures = expression.captures(text)?;
    let (namespace, role) = (captures.name("namespace")?.as_str(), captures.name("role")?.as_str());
    // As one text, so that both forms have the same rules; a namespace with a colon is none.
    let text = format!("{namespace}:{role}");
    (!namespace.contains(':')).then(|| grants.add_text(&text).ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Access;

    fn granted(expression: Option<&str>, permissions: Value) -> (Grants, u64) {
        let format = PermissionFormat::read(expression).expect("it is one");
        let skipped = AtomicU64::new(0);
        let grants = format.grants(&permissions, &skipped);
        (grants, skipped.into_inner())
    }

    #[test]
    fn wrong_elements_are_skipped_and_the_others_count() {
        let wrong = json!([
            7,
            null,
            ["orders:admin"],
            "orders",
            "orders:owner",
            ":admin",
            "a:b:admin",
            "orders:READ"
        ]);
        let (grants, skipped) = granted(None, wrong);
        assert_eq!(skipped, 7);
        assert!(grants.allow(Access::READ, "orders") && !grants.allow(Access::WRITE, "orders"));
        let (grants, _) = granted(None, json!(["orders:write", "orders:worker", "temporal-system:read"]));
        assert!(grants.allow(Access::WORK, "orders") && grants.allow(Access::SYSTEM_READ, ""));
    }

    #[test]
    fn anything_else_than_a_list_grants_nothing() {
        for permissions in
            [json!("orders:admin"), json!({"orders": "admin"}), json!(null), json!(7), json!([])]
        {
            assert!(granted(None, permissions.clone()).0.is_empty(), "{permissions}");
        }
    }

    #[test]
    fn an_expression_matches_whole_elements() {
        let expression = Some("everlog/(?P<namespace>[a-z]+)/(?<role>[a-z]+)");
        let elements = json!([
            "everlog/orders/write",
            "x-everlog/stock/admin",
            "everlog/stock/admin/",
            "everlog/stock/admin\n",
            "everlog/stock/owner",
            "orders:admin",
        ]);
        let (grants, skipped) = granted(expression, elements);
        assert_eq!(skipped, 5);
        assert!(grants.allow(Access::WRITE, "orders") && !grants.allow(Access::ADMIN, "orders"));
        assert!(!grants.allow_somewhere(Access::ADMIN));
        let alternatives = Some("(?<namespace>a):(?<role>read)|b");
        assert_eq!(granted(alternatives, json!(["xa:read", "b", "a:read"])).1, 2);
        let (grants, skipped) =
            granted(Some("(?<namespace>.*)/(?<role>.*)"), json!(["a:b/admin", "/admin", "x/admin"]));
        assert_eq!((grants.allow(Access::ADMIN, "x"), skipped), (true, 2));
    }

    #[test]
    fn a_bad_expression_is_refused() {
        for (expression, fault) in [
            ("(", "unclosed group"),
            ("(?<namespace>a):(role)", "it has no group (?<role>...)"),
            ("(?<role>a)", "it has no group (?<namespace>...)"),
            (")|(?<namespace>a):(?<role>b)(", "unopened group"),
            ("(?x) (?<namespace>a):(?<role>b) # comment", "unclosed group"),
        ] {
            let told = PermissionFormat::read(Some(expression)).err().expect(expression).to_string();
            assert!(told.starts_with("auth.permissions_regex: ") && told.contains(fault), "{told}");
        }
    }
}
