//! One HTTP request and its response, bounded in time and size.

use std::time::Instant;

use octoflow_model::{
    request::{Answer, HttpRequest, HttpResponse},
    task::EnvValue,
};
use ureq::{
    Agent, AsSendBody, Body, Error, Timeout,
    http::{self, Response, header::HeaderValue},
    tls::TlsConfig,
};

use crate::egress::{
    self,
    redirect::{self, Hop},
};

/// Limit of a response body: it becomes a text that conditions and other steps use.
pub const MAX_BODY: u64 = 4 * 1024 * 1024;

pub(super) fn exchange(agent: &Agent, request: HttpRequest) -> Answer {
    let url = request.url.clone();
    let seconds = request.timeout.as_secs_f64();
    let explain = |error: &Error| match (egress::refusal(error), error) {
        (Some(refused), _) => refused.to_string(),
        (None, Error::Timeout(_)) => format!("{url} did not answer within {seconds} s"),
        (None, Error::BodyExceedsLimit(limit)) => {
            format!("the response of {url} is larger than {limit} bytes, the most that is taken")
        }
        (None, error) => format!("the request to {url} failed: {error}"),
    };
    let limit = request.max_body.unwrap_or(MAX_BODY);
    match send(agent, request).and_then(|response| received(response, limit)) {
        Ok(response) => Answer::Http(response),
        Err(error) => Answer::Refused(explain(&error)),
    }
}

fn send(agent: &Agent, request: HttpRequest) -> Result<Response<Body>, Error> {
    let mut head = http::Request::builder().method(request.method.as_str()).uri(&request.url);
    for (name, value) in &request.headers {
        let mut text = HeaderValue::from_str(value.reveal()).map_err(|error| Error::Http(error.into()))?;
        text.set_sensitive(matches!(value, EnvValue::Secret(_)));
        head = head.header(name, text);
    }
    if let Some(key) = &request.idempotency_key {
        head = head.header("Idempotency-Key", key);
    }
    // A method without a body must not announce an empty one.
    if request.body.is_empty() && !matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
        run(agent, head.body(())?, &request)
    } else {
        let body = request.body.clone();
        run(agent, head.body(body)?, &request)
    }
}

/// Sends a request and follows redirects. All hops together share the timeout of one request.
fn run(agent: &Agent, request: http::Request<impl AsSendBody>, asked: &HttpRequest) -> Result<Response<Body>, Error> {
    let until = Instant::now() + asked.timeout;
    let (parts, body) = request.into_parts();
    let hop = Hop::new(&parts)?;
    let answer = run_once(agent, http::Request::from_parts(parts, body), asked, until)?;
    if !asked.follow {
        return Ok(answer);
    }
    redirect::follow(hop, answer, |next| run_once(agent, next, asked, until))
}

fn run_once(
    agent: &Agent,
    request: http::Request<impl AsSendBody>,
    asked: &HttpRequest,
    until: Instant,
) -> Result<Response<Body>, Error> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Error::Timeout(Timeout::Global));
    }
    let mut config = agent.configure_request(request).timeout_global(Some(left)).allow_non_standard_methods(true);
    if !asked.verify {
        config = config.tls_config(TlsConfig::builder().disable_verification(true).build());
    }
    agent.run(config.build())
}

fn received(mut response: Response<Body>, limit: u64) -> Result<HttpResponse, Error> {
    let headers = response.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    let headers = headers.collect();
    let body = response.body_mut().with_config().limit(limit).read_to_vec()?;
    let body = String::from_utf8(body).unwrap_or_else(|raw| String::from_utf8_lossy(raw.as_bytes()).into_owned());
    Ok(HttpResponse { status: response.status().as_u16(), headers, body })
}
