//! Identity of an object that an attempt creates: derived from the attempt, so that creation is idempotent.

use octoflow_model::AttemptId;
use sha2::{Digest, Sha256};

/// Number of tries when a generated name is taken.
const NAME_TRIES: u32 = 16;

pub(super) struct Identity {
    seed: String,
}

impl Identity {
    /// `owner` is the uid of the attempt's run, which a retry keeps, and `retries` how often it was retried.
    pub(super) fn new(owner: &str, retries: u32, attempt: AttemptId) -> Self {
        let AttemptId { task, attempt, .. } = attempt;
        Self {
            seed: match retries {
                0 => format!("{owner}/{task}/{attempt}"),
                _ => format!("{owner}#{retries}/{task}/{attempt}"),
            },
        }
    }

    /// Returns the identity of what follows from the owner's uid and a text that names it.
    pub(super) fn of(owner: &str, what: &str) -> Self {
        Self { seed: format!("{owner}/{what}") }
    }

    /// Returns the uid in its usual text form.
    pub(super) fn uid(&self) -> String {
        let mut bytes = self.hash("uid");
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: String = bytes[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Returns the candidates for a generated name, in order.
    pub(super) fn names<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = String> + 'a {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..NAME_TRIES).map(move |draw| {
            let bytes = self.hash(&format!("name/{draw}"));
            let suffix = bytes[..5].iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
            prefix.chars().chain(suffix).collect()
        })
    }

    fn hash(&self, of: &str) -> [u8; 32] {
        Sha256::digest(format!("{}/{of}", self.seed).as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::{NodeIx, RunId};

    use super::*;

    #[test]
    fn the_same_attempt_makes_the_same_object_and_another_does_not() {
        let identity = |attempt| Identity::new("u", 0, AttemptId { run: RunId(1), task: NodeIx(2), attempt });
        assert_eq!(identity(0).uid(), identity(0).uid());
        assert_ne!(identity(0).uid(), identity(1).uid());
        assert_eq!(identity(0).uid().len(), 36);
        let names: Vec<String> = identity(0).names("w-").take(2).collect();
        assert!(names[0].starts_with("w-") && names[0].len() == 7 && names[0] != names[1]);
    }

    #[test]
    fn the_same_attempt_of_a_run_that_is_retried_makes_an_object_of_its_own() {
        let identity =
            |retries, run| Identity::new("u", retries, AttemptId { run: RunId(run), task: NodeIx(2), attempt: 0 });
        assert_eq!(identity(1, 2).uid(), identity(1, 2).uid());
        assert_ne!(identity(0, 1).uid(), identity(1, 2).uid());
        assert_ne!(identity(1, 2).uid(), identity(2, 3).uid());
        let name = |retries, run| identity(retries, run).names("w-").next();
        assert_ne!(name(0, 1), name(1, 2));
    }
}
