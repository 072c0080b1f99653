//! Retries transfers that can be repeated: a few times, with growing pauses, if the error may be temporary.

use std::{thread, time::Duration};

use super::{Error, IsWanted};
use crate::egress;

/// Error of one transfer attempt.
#[derive(Debug)]
pub(super) struct TransferError {
    kind: TransferErrorKind,
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransferErrorKind {
    /// The next attempt may succeed.
    Retryable,
    Permanent,
    /// There is nothing at that location.
    Absent,
}

impl TransferError {
    pub(super) fn retryable(why: String) -> Self {
        Self { kind: TransferErrorKind::Retryable, why }
    }

    pub(super) fn permanent(why: String) -> Self {
        Self { kind: TransferErrorKind::Permanent, why }
    }

    pub(super) fn absent(why: String) -> Self {
        Self { kind: TransferErrorKind::Absent, why }
    }

    pub(super) fn is_absent(&self) -> bool {
        self.kind == TransferErrorKind::Absent
    }

    /// Classifies the error of an HTTP request that got no response.
    pub(super) fn of_request(error: &ureq::Error) -> Self {
        if let Some(refused) = egress::refusal(error) {
            return Self::permanent(refused.to_string());
        }
        match error {
            ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::HostNotFound
            | ureq::Error::Protocol(_) => Self::retryable(error.to_string()),
            // The address itself may hold a signature or a password.
            ureq::Error::BadUri(_) => Self::permanent("the address, or one it redirects to, is not usable".to_owned()),
            other => Self::permanent(other.to_string()),
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
            408 | 425 | 429 | 500 | 502..=504 => Some(Self::retryable(why)),
            _ => Some(Self::permanent(why)),
        }
    }
}

impl From<TransferError> for Error {
    fn from(failed_attempt: TransferError) -> Self {
        match failed_attempt.kind {
            TransferErrorKind::Absent => Self::Absent(failed_attempt.why),
            TransferErrorKind::Retryable | TransferErrorKind::Permanent => Self::Failed(failed_attempt.why),
        }
    }
}

/// Pauses between attempts.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_millis(800), Duration::from_secs(3), Duration::from_secs(8)];
/// Interval at which a pause checks for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn with_retries<T>(
    is_wanted: IsWanted<'_>,
    mut attempt: impl FnMut() -> Result<T, TransferError>,
) -> Result<T, TransferError> {
    let mut pauses = PAUSES.into_iter();
    loop {
        match attempt() {
            Err(failed_attempt) if failed_attempt.kind == TransferErrorKind::Retryable => {
                let Some(pause) = pauses.next() else {
                    let tries = PAUSES.len() + 1;
                    return Err(TransferError::permanent(format!("{} (tried {tries} times)", failed_attempt.why)));
                };
                let polls = pause.as_millis() / POLL_INTERVAL.as_millis();
                for _ in 0..polls {
                    if !is_wanted() {
                        return Err(failed_attempt);
                    }
                    thread::sleep(POLL_INTERVAL);
                }
            }
            done => return done,
        }
    }
}
