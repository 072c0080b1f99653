//! Retries transfers that can be repeated: a few times, with growing pauses, if the error may be temporary.

use std::{thread, time::Duration};

use super::{Alive, Error};
use crate::egress;

/// Error of one transfer attempt.
#[derive(Debug)]
pub(super) struct Trouble {
    kind: Kind,
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The next attempt may succeed.
    Passing,
    Lasting,
    /// There is nothing at that location.
    Absent,
}

impl Trouble {
    pub(super) fn passing(why: String) -> Self {
        Self { kind: Kind::Passing, why }
    }

    pub(super) fn lasting(why: String) -> Self {
        Self { kind: Kind::Lasting, why }
    }

    pub(super) fn absent(why: String) -> Self {
        Self { kind: Kind::Absent, why }
    }

    pub(super) fn is_absent(&self) -> bool {
        self.kind == Kind::Absent
    }

    /// Classifies the error of an HTTP request that got no response.
    pub(super) fn of_request(error: &ureq::Error) -> Self {
        if let Some(refused) = egress::refusal(error) {
            return Self::lasting(refused.to_string());
        }
        match error {
            ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::HostNotFound
            | ureq::Error::Protocol(_) => Self::passing(error.to_string()),
            // The address itself may hold a signature or a password.
            ureq::Error::BadUri(_) => Self::lasting("the address, or one it redirects to, is not usable".to_owned()),
            other => Self::lasting(other.to_string()),
        }
    }

    /// Classifies a response status; `None` for success.
    pub(super) fn of_status(status: u16, what: &str, body: &str) -> Option<Self> {
        let why = if body.is_empty() {
            format!("{what} answered {status}")
        } else {
            format!("{what} answered {status}: {body}")
        };
        match status {
            200..=299 => None,
            404 | 410 => Some(Self::absent(why)),
            408 | 425 | 429 | 500 | 502..=504 => Some(Self::passing(why)),
            _ => Some(Self::lasting(why)),
        }
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble.kind {
            Kind::Absent => Self::Absent(trouble.why),
            Kind::Passing | Kind::Lasting => Self::Failed(trouble.why),
        }
    }
}

/// Pauses between attempts.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_millis(800), Duration::from_secs(3), Duration::from_secs(8)];
/// Interval at which a pause checks for cancellation.
const BLINK: Duration = Duration::from_millis(50);

pub(super) fn patiently<T>(alive: Alive<'_>, mut attempt: impl FnMut() -> Result<T, Trouble>) -> Result<T, Trouble> {
    let mut pauses = PAUSES.into_iter();
    loop {
        match attempt() {
            Err(trouble) if trouble.kind == Kind::Passing => {
                let Some(pause) = pauses.next() else {
                    let tries = PAUSES.len() + 1;
                    return Err(Trouble::lasting(format!("{} (tried {tries} times)", trouble.why)));
                };
                let blinks = pause.as_millis() / BLINK.as_millis();
                for _ in 0..blinks {
                    if !alive() {
                        return Err(trouble);
                    }
                    thread::sleep(BLINK);
                }
            }
            done => return done,
        }
    }
}
