//! What a task's priority says of its turn in a queue: the level that it waits at, and whose share of that level it is.

use bytes::Bytes;
use prost::Message;

/// The level of a task that names none.
pub const LEVEL_DEFAULT: u8 = 3;
/// The last level; whoever asks for a later one waits here.
pub const LEVEL_MAX: u8 = 5;
/// How far a task of weight 1 moves its share on. Weights up to 1,000 can be told apart by a hundredth.
pub const STRIDE: u32 = 100_000;
/// The lightest and the heaviest share; what is beyond counts as these.
const WEIGHTS: (f32, f32) = (0.001, 1_000.0);

/// A task's place among those that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPriority {
    /// 1 goes first, 5 last.
    pub level: u8,
    /// Tasks of one key share a turn; empty = those of one run do.
    pub fairness_key: Box<str>,
    /// How far a task moves its share on: the heavier the share, the shorter, 100 to 100,000,000.
    pub stride: u32,
}

impl Default for TaskPriority {
    fn default() -> Self {
        Self { level: LEVEL_DEFAULT, fairness_key: Box::default(), stride: STRIDE }
    }
}

/// `temporal.api.common.v1.Priority`, which the engine carries without looking into it.
#[derive(Clone, PartialEq, Message)]
struct Priority {
    #[prost(int32, tag = "1")]
    priority_key: i32,
    #[prost(string, tag = "2")]
    fairness_key: String,
    #[prost(float, tag = "3")]
    fairness_weight: f32,
}

impl TaskPriority {
    /// As another node has told it; 0 = as usual.
    pub fn new(level: u32, fairness_key: Box<str>, stride: u32) -> Self {
        let usual = Self::default();
        let level = match u8::try_from(level) {
            Ok(0) => usual.level,
            Ok(level) => level.min(LEVEL_MAX),
            Err(_later) => LEVEL_MAX,
        };
        Self { level, fairness_key, stride: if stride == 0 { usual.stride } else { stride } }
    }

    /// Of a task by what it says itself, and its run where it says nothing. What cannot be read says nothing.
    pub fn of(own: Option<&Bytes>, of_run: Option<&Bytes>) -> Self {
        if own.is_none() && of_run.is_none() {
            return Self::default();
        }
        let read = |given: Option<&Bytes>| {
            given.and_then(|bytes| Priority::decode(bytes.clone()).ok()).unwrap_or_default()
        };
        let (own, of_run) = (read(own), read(of_run));
        let key = if own.priority_key > 0 { own.priority_key } else { of_run.priority_key };
        let fairness_key = if own.fairness_key.is_empty() { of_run.fairness_key } else { own.fairness_key };
        let weight = if own.fairness_weight > 0.0 { own.fairness_weight } else { of_run.fairness_weight };
        let level = match u8::try_from(key) {
            _none if key <= 0 => LEVEL_DEFAULT,
            Ok(level) => level.min(LEVEL_MAX),
            Err(_later) => LEVEL_MAX,
        };
        Self { level, fairness_key: fairness_key.into(), stride: stride(weight) }
    }

    /// Of a share of this weight.
    #[cfg(test)]
    pub(crate) fn of_weight(weight: f32) -> Self {
        Self { stride: stride(weight), ..Self::default() }
    }

    /// How heavy its share is, 0.001 to 1,000.
    pub fn weight(&self) -> f64 {
        f64::from(STRIDE) / f64::from(self.stride.max(1))
    }
}

/// How far a task of a share of this weight moves it on. What is no number weighs as much as nothing said.
pub fn stride(weight: f32) -> u32 {
    let weight = if weight > 0.0 { weight.clamp(WEIGHTS.0, WEIGHTS.1) } else { 1.0 };
    (STRIDE as f32 / weight).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(priority_key: i32, fairness_key: &str, fairness_weight: f32) -> Bytes {
        Priority { priority_key, fairness_key: fairness_key.into(), fairness_weight }.encode_to_vec().into()
    }

    #[test]
    fn a_task_says_itself_or_its_run_does_or_nobody() {
        assert_eq!(TaskPriority::of(None, None), TaskPriority::default());
        let (own, run) = (bytes(1, "", 0.0), bytes(5, "tenant", 2.0));
        let both = TaskPriority::of(Some(&own), Some(&run));
        assert_eq!(both, TaskPriority { level: 1, fairness_key: "tenant".into(), stride: 50_000 });
        assert_eq!(TaskPriority::of(None, Some(&run)).level, 5);
        assert_eq!(TaskPriority::of(Some(&Bytes::from_static(b"\xff")), None), TaskPriority::default());
    }

    #[test]
    fn whatever_is_given_is_a_level_and_a_stride_that_ends() {
        for (key, level) in [(i32::MIN, 3), (-1, 3), (0, 3), (1, 1), (5, 5), (6, 5), (i32::MAX, 5)] {
            assert_eq!(TaskPriority::of(Some(&bytes(key, "", 0.0)), None).level, level, "{key}");
        }
        let weights =
            [(f32::NAN, STRIDE), (-1.0, STRIDE), (f32::INFINITY, 100), (1e30, 100), (1e-30, 100_000_000)];
        for (weight, stride) in weights {
            let given = TaskPriority::of(Some(&bytes(0, "", weight)), None).stride;
            assert!(given.abs_diff(stride) <= stride / 1_000, "{weight}: {given}");
        }
    }
}
