//! What became of one delivery: how the answer of a hook is read, and what follows from it.

use std::time::Duration;

use octoflow_model::{Time, request::Answer};
use octoflow_store::Change;

use super::MAX_DEAD;

/// The pause after the first try that failed; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// The answer to one delivery.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub plugin: String,
    pub event: String,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Acknowledged,
    /// To be sent again, and why.
    Again(String),
    /// Never to be sent again by itself, and why.
    Refused(String),
}

impl Verdict {
    /// Reads an answer. The reasons repeat nothing of what the hook wrote.
    pub(super) fn of(answer: &Answer) -> Self {
        let response = match answer {
            Answer::Http(response) => response,
            Answer::Refused(why) => return Self::Again(why.clone()),
            Answer::Object(_) | Answer::Listing(_) | Answer::Probed | Answer::Failed(_) | Answer::Stopped => {
                return Self::Again("it was not answered".to_owned());
            }
        };
        match (response.status, response.body.trim().to_ascii_uppercase().as_str()) {
            (200, "OK") => Self::Acknowledged,
            (200, "EX") => Self::Refused("the hook answered EX".to_owned()),
            (200, "RE") => Self::Again("the hook answered RE".to_owned()),
            (200, _) => Self::Again("the answer is none of OK, RE and EX".to_owned()),
            (status @ 400..=499, _) => Self::Refused(format!("the hook answered with status {status}")),
            (status @ 300..=399, _) => {
                Self::Again(format!("the hook answered with status {status}; redirects are not followed"))
            }
            (status, _) => Self::Again(format!("the hook answered with status {status}")),
        }
    }
}

/// What a verdict means for a delivery after so many tries, this one included.
#[derive(Debug)]
pub(super) enum Fate {
    Delivered,
    Retried,
    Dead,
}

impl Outcome {
    /// Returns what is to be stored. `most` is how often the plugin's deliveries are tried.
    pub(super) fn change(&self, tries: u32, most: u32, now: Time) -> (Fate, Change) {
        let event = self.event.clone();
        match &self.verdict {
            Verdict::Acknowledged => (Fate::Delivered, Change::DeleteDelivery { event }),
            Verdict::Again(reason) if tries < most => {
                let due = now.saturating_add(pause(tries));
                (Fate::Retried, Change::RetryDelivery { event, due, reason: reason.clone() })
            }
            Verdict::Again(reason) => {
                let reason = format!("given up after {tries} tries: {reason}");
                (Fate::Dead, Change::BuryDelivery { event, reason, keep: MAX_DEAD })
            }
            Verdict::Refused(reason) => {
                (Fate::Dead, Change::BuryDelivery { event, reason: reason.clone(), keep: MAX_DEAD })
            }
        }
    }
}

/// Returns the pause after so many tries.
fn pause(tries: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use octoflow_model::request::HttpResponse;

    use super::*;

    fn verdict(status: u16, body: &str) -> Verdict {
        Verdict::of(&Answer::Http(HttpResponse { status, headers: Vec::new(), body: body.to_owned() }))
    }

    #[test]
    fn words_count_trimmed_and_in_any_case_and_only_with_status_200() {
        for body in ["OK", "ok", " Ok\n", "\tOK\r\n"] {
            assert_eq!(verdict(200, body), Verdict::Acknowledged, "{body:?}");
        }
        assert!(matches!(verdict(200, "re"), Verdict::Again(_)));
        assert!(matches!(verdict(200, "Ex "), Verdict::Refused(_)));
        for body in ["", "okay", "{\"code\":\"OK\"}"] {
            assert!(matches!(verdict(200, body), Verdict::Again(_)), "{body:?}");
        }
        for status in [201, 204, 301, 307, 500, 503] {
            assert!(matches!(verdict(status, "OK"), Verdict::Again(_)), "{status}");
        }
        for status in [400, 404, 410, 429] {
            assert!(matches!(verdict(status, "OK"), Verdict::Refused(_)), "{status}");
        }
        assert!(matches!(Verdict::of(&Answer::Refused("no route".to_owned())), Verdict::Again(_)));
    }

    #[test]
    fn the_answer_of_a_hook_is_not_in_the_reason() {
        let (Verdict::Again(why) | Verdict::Refused(why)) = verdict(500, "password=hunter2") else {
            panic!("it failed")
        };
        assert!(why.contains("500") && !why.contains("hunter2"), "{why}");
    }

    #[test]
    fn pauses_grow_to_five_minutes_and_the_last_try_is_the_last() {
        let pauses: Vec<u64> = (1..12).map(|tries| pause(tries).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(pause(u32::MAX), MAX_PAUSE);
        let again = Outcome {
            plugin: "p".to_owned(),
            event: "e".to_owned(),
            verdict: Verdict::Again("the hook answered RE".to_owned()),
        };
        let (fate, change) = again.change(2, 3, Time(0));
        assert!(matches!(change, Change::RetryDelivery { due: Time(2_000_000), .. }), "{fate:?}");
        let (_, change) = again.change(3, 3, Time(0));
        let Change::BuryDelivery { reason, .. } = change else { panic!("it is given up") };
        assert_eq!(reason, "given up after 3 tries: the hook answered RE");
    }
}
