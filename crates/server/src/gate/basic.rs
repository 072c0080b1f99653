//! Translates Basic authentication into bearer tokens: clients that do not send tokens over plain HTTP, such as
//! kubectl, still send the credentials in their server's URL. It only translates; access is decided elsewhere.

use axum::http::{HeaderMap, HeaderValue, header};
use octoflow_model::base64;

/// Turns `Authorization: Basic` into a bearer token: the password, or the user name if there is no password.
pub(crate) fn as_bearer(headers: &mut HeaderMap) {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(encoded) = given.and_then(|text| text.strip_prefix("Basic ")) else { return };
    let decoded = base64::decode_lenient(encoded.trim()).and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(decoded) = decoded else { return };
    let (name, password) = decoded.split_once(':').unwrap_or((&decoded, ""));
    let token = if password.is_empty() { name } else { password };
    if let Ok(value) = HeaderValue::from_str(&format!("Bearer {token}")) {
        headers.insert(header::AUTHORIZATION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_a_token_and_nonsense_stays_what_it_is() {
        for (given, expected) in [
            ("Basic b2N0b2Zsb3c6czNjcmV0", "Bearer s3cret"),
            ("Basic czNjcmV0Og==", "Bearer s3cret"),
            ("Basic !!!", "Basic !!!"),
            ("Bearer x", "Bearer x"),
        ] {
            let mut headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(given))]);
            as_bearer(&mut headers);
            assert_eq!(headers[header::AUTHORIZATION], expected);
        }
    }
}
