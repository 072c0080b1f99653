//! The TaskSet manifest. Holds only the fields the engine reads; the field table decides which fields are allowed.

use serde::{Deserialize, Serialize};

use crate::{Shutdown, meta::Metadata, task::podspec::PodTemplate};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSet {
    pub metadata: Metadata,
    pub spec: TaskSetSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSetSpec {
    pub retry_policy: RetryPolicy,
    pub roles: Vec<RoleSpec>,
    pub priority: Option<i32>,
    pub queue: Option<String>,
    pub suspend: Option<bool>,
    pub shutdown: Option<Shutdown>,
    pub active_deadline_seconds: Option<u64>,
    pub ttl_seconds_after_finished: Option<u64>,
}

/// Retry limit and delay. Counts extra attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryPolicy {
    pub retry: bool,
    /// In seconds.
    pub delay: u64,
    pub max_retry_count: u64,
    /// Only these exit codes are retried; all of them if absent.
    pub retryable_exit_codes: Option<Vec<ExitCodes>>,
    /// These exit codes are never retried.
    pub permanent_exit_codes: Vec<ExitCodes>,
}

/// One exit code, or a range of them such as `1-127`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExitCodes {
    One(i64),
    Range(String),
}

impl ExitCodes {
    /// Returns the first and the last code; `None` if the text is not a range.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        match self {
            Self::One(code) => Some((*code, *code)),
            Self::Range(text) => {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                let (first, last): (i64, i64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
                (0 <= first && first <= last).then_some((first, last))
            }
        }
    }

    pub fn holds(&self, code: i32) -> bool {
        self.bounds().is_some_and(|(first, last)| (first..=last).contains(&i64::from(code)))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleSpec {
    pub name: String,
    pub replicas: u32,
    pub completion_policy: CompletionPolicy,
    pub retry_policy: RetryPolicy,
    pub event_policy: Vec<EventPolicy>,
    pub depends_on: Vec<Dependency>,
    pub template: PodTemplate,
}

/// Thresholds that decide whether a role succeeded or failed. `-1` disables a criterion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompletionPolicy {
    pub max_failed: i32,
    pub min_succeeded: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPolicy {
    pub event: Event,
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    RoleFailed,
    RoleSucceeded,
    /// Either of the two.
    RoleCompleted,
}

impl Event {
    pub const WORDS: [&str; 3] = ["RoleFailed", "RoleSucceeded", "RoleCompleted"];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    TaskSetFailed,
    TaskSetSucceeded,
    /// The TaskSet ends as the role did.
    TaskSetCompleted,
    NoAction,
}

impl Action {
    pub const WORDS: [&str; 4] = ["TaskSetFailed", "TaskSetSucceeded", "TaskSetCompleted", "NoAction"];
}

/// A role that must reach a condition before another one starts: its name alone, or with the condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dependency {
    Role(String),
    Until {
        role: String,
        #[serde(default)]
        condition: Condition,
    },
}

impl Dependency {
    pub fn role(&self) -> &str {
        match self {
            Self::Role(role) | Self::Until { role, .. } => role,
        }
    }

    pub fn condition(&self) -> Condition {
        match self {
            Self::Role(_) => Condition::default(),
            Self::Until { condition, .. } => *condition,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// Every replica has been up.
    #[default]
    Running,
    Succeeded,
    /// Succeeded or failed.
    Completed,
}

impl Condition {
    pub const WORDS: [&str; 3] = ["Running", "Succeeded", "Completed"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_single_or_a_range() {
        let read = |text: &str| serde_json::from_str::<ExitCodes>(text).unwrap();
        assert!(read("3").holds(3) && !read("3").holds(4));
        assert!(read("\"1-127\"").holds(127) && !read("\"1-127\"").holds(128));
        assert!(read("\"7\"").holds(7));
        for wrong in ["\"x\"", "\"9-1\"", "\"-1\"", "\"\""] {
            assert_eq!(read(wrong).bounds(), None, "{wrong}");
        }
    }

    #[test]
    fn a_dependency_is_a_name_or_a_name_with_a_condition() {
        let read = |text: &str| serde_json::from_str::<Dependency>(text).unwrap();
        assert_eq!((read("\"ps\"").role(), read("\"ps\"").condition()), ("ps", Condition::Running));
        let full = read(r#"{"role": "ps", "condition": "Succeeded"}"#);
        assert_eq!((full.role(), full.condition()), ("ps", Condition::Succeeded));
    }
}
