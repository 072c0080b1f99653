//! `Warning` headers for requests that succeeded nevertheless; kubectl prints them.

use axum::http::{HeaderName, HeaderValue};

use crate::answer::Answer;

/// Maximum bytes of warnings in one answer; clients limit their headers.
const MAX_WARNING_BYTES: usize = 4096;

pub(crate) fn warn(mut answer: Answer, warnings: &[String]) -> Answer {
    let mut room = MAX_WARNING_BYTES;
    for text in warnings {
        let clean: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let value = format!("299 - \"{}\"", clean.replace('\\', "\\\\").replace('"', "\\\""));
        if value.len() > room {
            break;
        }
        room -= value.len();
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            answer.headers_mut().append(HeaderName::from_static("warning"), value);
        }
    }
    answer
}
