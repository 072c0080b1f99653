//! Defaults for fields that facts of earlier versions lack. Messages are part of the facts; journals from before that
//! fold to the messages of that version. No new message is ever added here.

use octoflow_model::Time;

/// Returns the message of a fact, or that of its version if it has none.
pub(super) fn or(message: &str, earlier: impl FnOnce() -> String) -> String {
    if message.is_empty() { earlier() } else { message.to_owned() }
}

pub(super) fn next_attempt(at: Time) -> String {
    format!("the next attempt comes at {at}")
}

pub(super) fn tried_again(at: Time) -> String {
    format!("tried again at {at}")
}
