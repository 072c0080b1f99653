//! Retention limits for finished runs: how many and for how long, by phase.

use std::{str::FromStr, time::Duration};

use octoflow_engine::argo::duration;

/// The default keeps everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    pub succeeded: PhaseRetention,
    pub failed: PhaseRetention,
    pub errored: PhaseRetention,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseRetention {
    /// Maximum number; the newest are kept.
    pub max_count: Option<u64>,
    /// Maximum age after their end.
    pub max_age: Option<Duration>,
}

impl RetentionPolicy {
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the phases that have limits.
    pub(super) fn phases(&self) -> impl Iterator<Item = (&'static str, PhaseRetention)> + use<> {
        [("Succeeded", self.succeeded), ("Failed", self.failed), ("Error", self.errored)]
            .into_iter()
            .filter(|(_, keep)| *keep != PhaseRetention::default())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not say what to keep; write for example succeeded=1000,failed=720h,errored=100/24h")]
pub struct BadRetention(String);

/// Parses `succeeded=1000,failed=500/720h`: number, age, or both; `completed` means succeeded.
impl FromStr for RetentionPolicy {
    type Err = BadRetention;

    fn from_str(text: &str) -> Result<Self, BadRetention> {
        let bad = || BadRetention(text.to_owned());
        let mut policy = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (phase, keep) = part.split_once('=').ok_or_else(bad)?;
            let place = match phase.trim() {
                "succeeded" | "completed" => &mut policy.succeeded,
                "failed" => &mut policy.failed,
                "errored" => &mut policy.errored,
                _ => return Err(bad()),
            };
            for word in keep.split('/').map(str::trim) {
                match word.parse() {
                    Ok(most) => place.max_count = Some(most),
                    Err(_) => place.max_age = Some(duration::units(word).ok_or_else(bad)?),
                }
            }
        }
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_from_one_line() {
        let policy: RetentionPolicy = "succeeded=1000, failed=720h,errored=100/24h".parse().unwrap();
        assert_eq!(policy.succeeded, PhaseRetention { max_count: Some(1000), max_age: None });
        assert_eq!(policy.failed, PhaseRetention { max_count: None, max_age: Some(Duration::from_secs(720 * 3600)) });
        assert_eq!(
            policy.errored,
            PhaseRetention { max_count: Some(100), max_age: Some(Duration::from_secs(24 * 3600)) }
        );
        assert!("".parse::<RetentionPolicy>().unwrap().keeps_all());
        for bad in ["10", "succeeded=many", "happy=3", "failed=3 days"] {
            assert!(bad.parse::<RetentionPolicy>().is_err(), "{bad}");
        }
    }
}
