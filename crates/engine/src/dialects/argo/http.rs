//! Handles HTTP templates: builds the request of a node and judges the response.
//! Sends nothing itself; secrets go into the request and nowhere else.

use std::time::Duration;

use octoflow_model::{
    argo::{
        Phase,
        body::{HttpHeader, HttpTemplate},
    },
    base64,
    request::{HttpRequest, HttpResponse},
    task::EnvValue,
};
use serde_json::{Map, Value, json};

use super::view::View;
use crate::pod::keyed;
use crate::{
    engine::Keyed,
    expr::{
        self, Meter,
        lang::{Env, EvalContext},
    },
};

/// Timeout of an exchange whose template has none.
const TIMEOUT: Duration = Duration::from_secs(30);

impl View<'_> {
    pub(super) fn http_request(&self, asked: &HttpTemplate) -> Result<HttpRequest, String> {
        if let Some(why) = wrong_url(&asked.url) {
            return Err(why);
        }
        let mut headers = Vec::with_capacity(asked.headers.len());
        for header in &asked.headers {
            let value = self.header(header).map_err(|why| format!("header {}: {why}", header.name))?;
            headers.extend(value.map(|value| (header.name.clone(), value)));
        }
        Ok(HttpRequest {
            headers,
            body: body(asked)?,
            verify: !asked.insecure_skip_verify,
            ..HttpRequest::new(&method(asked), asked.url.as_str(), timeout(asked)?)
        })
    }

    fn header(&self, header: &HttpHeader) -> Result<Option<EnvValue>, String> {
        let from = header.value_from.as_ref().and_then(|from| from.secret_key_ref.as_ref());
        match (from, &header.value) {
            (Some(from), _) => {
                Ok(keyed(self.world, Keyed::Secret, &self.run.state.head.namespace, from)?.map(EnvValue::Secret))
            }
            (None, value) => Ok(Some(EnvValue::Plain(value.as_ref().map(|value| value.0.clone()).unwrap_or_default()))),
        }
    }
}

/// Why no request can be sent to this URL, as far as its text tells.
pub(crate) fn wrong_url(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => None,
        Some(_) => Some(format!("the url '{}' names no host", crate::admit::shape::short(url))),
        None => Some(format!("the url '{}' does not begin with http:// or https://", crate::admit::shape::short(url))),
    }
}

/// Whether the word is a syntactically valid method.
pub(crate) fn is_method(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
}

fn method(asked: &HttpTemplate) -> String {
    let given = asked.method.as_deref().map(str::trim).filter(|method| !method.is_empty());
    given.unwrap_or("GET").to_ascii_uppercase()
}

fn body(asked: &HttpTemplate) -> Result<Vec<u8>, String> {
    if let Some(text) = asked.body.as_ref().filter(|text| !text.0.is_empty()) {
        return Ok(text.0.clone().into_bytes());
    }
    match asked.body_from.as_ref().and_then(|from| from.bytes.as_deref()) {
        Some(bytes) => base64::decode(bytes).map_err(|_| "http.bodyFrom.bytes is not base64".to_owned()),
        None => Ok(Vec::new()),
    }
}

fn timeout(asked: &HttpTemplate) -> Result<Duration, String> {
    let Some(text) = &asked.timeout_seconds else { return Ok(TIMEOUT) };
    match text.0.trim().parse::<u64>() {
        Ok(0) => Ok(TIMEOUT),
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => Err(format!("http.timeoutSeconds '{}' is not a number of seconds", text.0)),
    }
}

/// Judges a response: any 2xx succeeds, unless the template has a condition of its own.
pub(super) fn judge(
    asked: &HttpTemplate,
    response: &HttpResponse,
    occasion: Option<EvalContext>,
    meter: &Meter,
) -> (Phase, String) {
    let Some(condition) = asked.success_condition.as_deref().filter(|condition| !condition.trim().is_empty()) else {
        return match response.status {
            200..=299 => (Phase::Succeeded, String::new()),
            other => (Phase::Failed, format!("received non-2xx response code: {other}")),
        };
    };
    match meter.evaluate(condition, &ExchangeEnv { asked, response, occasion }) {
        Ok(expr::Value::Bool(true)) => (Phase::Succeeded, String::new()),
        Ok(expr::Value::Bool(false)) => (Phase::Failed, format!("successCondition '{condition}' evaluated false")),
        Ok(other) => {
            (Phase::Error, format!("successCondition '{condition}' gave a {} where a bool was expected", other.kind()))
        }
        Err(error) => (Phase::Error, format!("successCondition '{condition}' cannot be evaluated: {error}")),
    }
}

/// Variables that a success condition can refer to.
struct ExchangeEnv<'a> {
    asked: &'a HttpTemplate,
    response: &'a HttpResponse,
    occasion: Option<EvalContext>,
}

impl Env for ExchangeEnv<'_> {
    fn root(&self, name: &str) -> Option<expr::Value> {
        let value = match name {
            "request" => {
                // Values from Secrets are not exposed to conditions.
                let sent = self.asked.headers.iter();
                let sent = sent
                    .map(|header| (header.name.as_str(), header.value.as_ref().map_or("", |value| value.0.as_str())));
                json!({
                    "method": method(self.asked),
                    "url": self.asked.url,
                    "body": self.asked.body.as_ref().map_or("", |text| text.0.as_str()),
                    "headers": headers(sent),
                })
            }
            "response" => json!({
                "statusCode": self.response.status,
                "body": self.response.body,
                "headers": headers(self.response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
            }),
            _ => return None,
        };
        Some(value.into())
    }

    fn eval_context(&self) -> Option<EvalContext> {
        self.occasion
    }

    fn names(&self) -> Vec<String> {
        vec!["request".to_owned(), "response".to_owned()]
    }
}

/// Groups headers by canonical name, such as `Content-Type`, with all their values.
fn headers<'h>(lines: impl Iterator<Item = (&'h str, &'h str)>) -> Value {
    let mut all = Map::new();
    for (name, value) in lines {
        let values = all.entry(canonical(name)).or_insert_with(|| json!([]));
        if let Some(values) = values.as_array_mut() {
            values.push(value.into());
        }
    }
    Value::Object(all)
}

fn canonical(name: &str) -> String {
    let mut start = true;
    let spell = |letter: char| {
        let spelled = if start { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
        start = letter == '-';
        spelled
    };
    name.chars().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16) -> HttpResponse {
        let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
        HttpResponse { status, headers, body: "hello".to_owned() }
    }

    fn asked(condition: &str) -> HttpTemplate {
        HttpTemplate {
            success_condition: Some(condition.to_owned()),
            url: "http://x/".to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn without_a_condition_every_2xx_is_good() {
        let plain = HttpTemplate::default();
        assert_eq!(judge(&plain, &response(204), None, &Meter::default()), (Phase::Succeeded, String::new()));
        assert_eq!(judge(&plain, &response(302), None, &Meter::default()).1, "received non-2xx response code: 302");
        assert_eq!(judge(&plain, &response(500), None, &Meter::default()).0, Phase::Failed);
    }

    #[test]
    fn a_condition_sees_the_request_and_the_response() {
        for good in [
            "response.statusCode == 404",
            "response.body contains 'ell'",
            "response.headers['Content-Type'][0] == 'text/plain'",
            "request.method == 'GET' && request.url == 'http://x/'",
        ] {
            assert_eq!(
                judge(&asked(good), &response(404), None, &Meter::default()),
                (Phase::Succeeded, String::new()),
                "{good}"
            );
        }
        let (phase, message) = judge(&asked("response.statusCode == 201"), &response(200), None, &Meter::default());
        assert_eq!(
            (phase, message.as_str()),
            (Phase::Failed, "successCondition 'response.statusCode == 201' evaluated false")
        );
        assert_eq!(judge(&asked("response.statusCode"), &response(200), None, &Meter::default()).0, Phase::Error);
        assert_eq!(judge(&asked("nothing.here"), &response(200), None, &Meter::default()).0, Phase::Error);
    }

    #[test]
    fn only_addresses_of_the_web_are_asked() {
        assert_eq!(wrong_url("https://example.org/a"), None);
        assert!(wrong_url("file:///etc/passwd").is_some());
        assert!(wrong_url("http:///x").is_some());
        assert!(wrong_url("example.org").is_some());
    }
}
