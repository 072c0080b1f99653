//! The request that brings a hook an event: the body as it was written down, with credentials and a signature.

use std::fmt::Write;

use octoflow_engine::plugins::{Address, Plugin};
use octoflow_model::{Time, request::HttpRequest, task::EnvValue};
use octoflow_store::Delivery;
use ring::hmac;

/// The longest answer that is read: it is one word.
const MAX_ANSWER: u64 = 64 * 1024;

/// Returns the request for a delivery; `None` for a plugin that has no address to send it to. `now` is the wall clock.
pub(super) fn request(hook: &Plugin, delivery: &Delivery, now: Time) -> Option<HttpRequest> {
    let Address::Url(url) = &hook.address else { return None };
    let mut headers = vec![("Content-Type".to_owned(), EnvValue::Plain("application/json".to_owned()))];
    if let Some(authorization) = &hook.secrets.authorization {
        headers.push(("Authorization".to_owned(), EnvValue::Secret(format!("Basic {authorization}"))));
    }
    let timestamp = now.seconds().to_string();
    if let Some(key) = &hook.secrets.signing {
        let signature = format!("sha256={}", sign(key, &timestamp, &delivery.body));
        headers.push(("X-Octoflow-Signature".to_owned(), EnvValue::Plain(signature)));
    }
    headers.push(("X-Octoflow-Timestamp".to_owned(), EnvValue::Plain(timestamp)));
    Some(HttpRequest {
        headers,
        body: delivery.body.clone(),
        follow: false,
        idempotency_key: Some(delivery.event.clone()),
        max_body: Some(MAX_ANSWER),
        ..HttpRequest::new("POST", url, hook.timeout)
    })
}

/// Returns the HMAC-SHA256 of `timestamp.body` in hexadecimal.
fn sign(key: &str, timestamp: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(timestamp.as_bytes());
    context.update(b".");
    context.update(body);
    context.sign().as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to memory does not fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_others_compute_for_the_time_and_the_body() {
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac secret
        let expected = "b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163";
        assert_eq!(sign("secret", "1700000000", b"{}"), expected);
        assert_ne!(sign("secret", "1700000001", b"{}"), expected);
        assert_ne!(sign("other", "1700000000", b"{}"), expected);
    }
}
