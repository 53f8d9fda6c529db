//! A part of a run that its copies share until one of them changes it; while it is empty it takes no memory of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A type with a value that stands for nothing, to be read by all.
pub trait Empty: Clone + PartialEq + 'static {
    /// Nothing.
    const EMPTY: &'static Self;
}

impl<K: Clone + PartialEq + 'static, V: Clone + PartialEq + 'static> Empty for BTreeMap<K, V> {
    const EMPTY: &'static Self = &Self::new();
}

impl<T: Clone + PartialEq + 'static> Empty for Vec<T> {
    const EMPTY: &'static Self = &Self::new();
}

/// A `T` among the parts of a run. Copying counts a reference where there is something in it, and does nothing else.
#[derive(Clone)]
pub struct CopyOnWrite<T>(Option<Arc<T>>);

impl<T: Empty> CopyOnWrite<T> {
    /// The value to be changed: from here on this copy has its own.
    pub fn make_mut(&mut self) -> &mut T {
        Arc::make_mut(self.0.get_or_insert_with(|| Arc::new(T::EMPTY.clone())))
    }
}

impl<T> CopyOnWrite<T> {
    /// Both are the same value, not only equal ones.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl<T> Default for CopyOnWrite<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Empty> From<T> for CopyOnWrite<T> {
    fn from(value: T) -> Self {
        Self((value != *T::EMPTY).then(|| Arc::new(value)))
    }
}

impl<T: Empty> Deref for CopyOnWrite<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Empty> AsRef<T> for CopyOnWrite<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: Empty> PartialEq for CopyOnWrite<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Empty + fmt::Debug> fmt::Debug for CopyOnWrite<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emptied_is_as_if_nothing_had_ever_been_there() {
        let mut part = CopyOnWrite::<Vec<i32>>::default();
        let before = part.clone();
        part.make_mut().push(1);
        assert_eq!((part.as_slice(), before.as_slice()), (&[1][..], &[][..]), "a copy keeps what it had");
        part.make_mut().clear();
        assert_eq!(part, before);
        assert_eq!(part, CopyOnWrite::from(Vec::new()));
    }
}
