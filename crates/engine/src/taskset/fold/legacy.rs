//! What facts of earlier versions leave out. Texts for people are part of the facts; journals from before that fold to the
//! texts of that time. Nothing new is ever said here.

use octoflow_model::Time;

/// The text of a fact, or the one of its time when it has none.
pub(super) fn or(message: &str, earlier: impl FnOnce() -> String) -> String {
    if message.is_empty() { earlier() } else { message.to_owned() }
}

pub(super) fn next_attempt(at: Time) -> String {
    format!("the next attempt comes at {at}")
}

pub(super) fn tried_again(at: Time) -> String {
    format!("tried again at {at}")
}
