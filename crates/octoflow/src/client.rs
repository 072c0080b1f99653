//! HTTP client of a server: one call at a time, JSON in both directions, failures mapped to exit codes. It knows no
//! command; meaning belongs to the caller.

mod address;
mod endpoint;
mod fault;
mod socket;
mod stream;
mod warning;

use std::{fs, io::Read, thread, time::Duration};

use anyhow::{Context as _, Result};
use octoflow_store::LabelTest;
use serde_json::Value;
use ureq::{
    Agent, Body, Error,
    http::{Method, Request, Response},
    tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem},
};

pub(crate) use address::Address;
pub(crate) use endpoint::{ChosenServer, Endpoint, find};
pub(crate) use stream::{Events, Next};

use crate::exit::{Exit, Failure};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum size of an answer.
const MAX_ANSWER_BYTES: u64 = 1 << 30;
/// Number of tries of an idempotent call, with increasing pauses.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(200);

/// Client of one server; connects on demand.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: Agent,
    endpoint: Endpoint,
}

/// One request.
struct ApiRequest<'a> {
    method: Method,
    address: &'a Address,
    body: Option<&'a Value>,
    /// Idempotency key, which makes a creation safe to retry.
    key: Option<&'a str>,
    accept: &'a str,
    /// Media type of the body.
    sends: &'a str,
    /// Timeout of a single read; without it the whole call has a timeout.
    read_timeout: Option<Duration>,
}

impl Client {
    pub(crate) fn new(endpoint: Endpoint) -> Result<Self> {
        let tls = TlsConfig::builder().disable_verification(endpoint.skip_verify);
        let tls = match &endpoint.ca_file {
            None => tls,
            Some(file) => {
                let pem = fs::read(file)
                    .map_err(|error| Failure::usage(format!("cannot read --ca-file `{}`: {error}", file.display())))?;
                let items: Result<Vec<_>, Error> = parse_pem(&pem).collect();
                let items = items.with_context(|| format!("`{}` is no file of certificates", file.display()))?;
                let certificates: Vec<Certificate<'static>> = items
                    .into_iter()
                    .filter_map(|item| match item {
                        PemItem::Certificate(certificate) => Some(certificate),
                        _ => None,
                    })
                    .collect();
                if certificates.is_empty() {
                    return Err(Failure::usage(format!("there is no certificate in `{}`", file.display())).into());
                }
                tls.root_certs(RootCerts::new_with_certs(&certificates))
            }
        };
        let mut config = Agent::config_builder()
            .tls_config(tls.build())
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            .user_agent(concat!("octoflow/", env!("CARGO_PKG_VERSION")));
        if endpoint.socket.is_some() || endpoint::is_loopback(&endpoint.url) {
            // No proxy for local servers, whatever the environment says.
            config = config.proxy(None);
        }
        let config = config.build();
        let agent = match &endpoint.socket {
            Some(path) => socket::agent(config, path),
            None => config.into(),
        };
        Ok(Self { agent, endpoint })
    }

    pub(crate) fn url(&self) -> &str {
        &self.endpoint.url
    }

    pub(crate) fn get(&self, address: &Address) -> Result<Value> {
        self.json(&ApiRequest::of(Method::GET, address), true)
    }

    /// Reads an object; `None` if it does not exist.
    pub(crate) fn find(&self, address: &Address) -> Result<Option<Value>> {
        match self.get(address) {
            Ok(value) => Ok(Some(value)),
            Err(error) if crate::exit::of(&error) == Exit::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn put(&self, address: &Address, body: &Value) -> Result<Value> {
        self.json(&ApiRequest { body: Some(body), ..ApiRequest::of(Method::PUT, address) }, false)
    }

    /// Changes an object by a merge patch.
    pub(crate) fn patch(&self, address: &Address, body: &Value) -> Result<Value> {
        let request = ApiRequest::of(Method::PATCH, address);
        self.json(&ApiRequest { body: Some(body), sends: "application/merge-patch+json", ..request }, false)
    }

    pub(crate) fn post(&self, address: &Address, body: &Value) -> Result<Value> {
        self.json(&ApiRequest { body: Some(body), ..ApiRequest::of(Method::POST, address) }, false)
    }

    /// Creates an object once however often it is sent, thanks to the idempotency key.
    pub(crate) fn create(&self, address: &Address, body: &Value, key: &str) -> Result<Value> {
        self.json(&ApiRequest { body: Some(body), key: Some(key), ..ApiRequest::of(Method::POST, address) }, true)
    }

    /// Like [`Client::create`]; also returns what the server warns of.
    pub(crate) fn create_with_warnings(
        &self,
        address: &Address,
        body: &Value,
        key: &str,
    ) -> Result<(Value, Vec<String>)> {
        let request = ApiRequest { body: Some(body), key: Some(key), ..ApiRequest::of(Method::POST, address) };
        let response = self.send(&request, true)?;
        let headers = response.headers().get_all("warning").iter();
        let warnings = headers.filter_map(|value| warning::text(value.as_bytes())).collect();
        Ok((self.read_json(response)?, warnings))
    }

    /// Like [`Client::create`], for objects that are created by changing another.
    pub(crate) fn change(&self, address: &Address, body: &Value, key: &str) -> Result<Value> {
        self.json(&ApiRequest { body: Some(body), key: Some(key), ..ApiRequest::of(Method::PUT, address) }, false)
    }

    pub(crate) fn delete(&self, address: &Address) -> Result<Value> {
        self.json(&ApiRequest::of(Method::DELETE, address), false)
    }

    /// Downloads an answer, with its file name if the server gives one.
    pub(crate) fn download(&self, address: &Address) -> Result<(Option<String>, impl Read + use<>)> {
        let request =
            ApiRequest { accept: "*/*", read_timeout: Some(CALL_TIMEOUT), ..ApiRequest::of(Method::GET, address) };
        let response = self.send(&request, true)?;
        let name = response.headers().get("content-disposition").and_then(|value| value.to_str().ok());
        let name = name.and_then(|text| text.split("filename=").nth(1)).map(|name| name.trim_matches('"').to_owned());
        Ok((name, response.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    /// Streams events in the given format. `read_timeout` is the timeout for any sign of life.
    pub(crate) fn events(&self, address: &Address, form: &str, read_timeout: Duration) -> Result<Events> {
        let request =
            ApiRequest { accept: form, read_timeout: Some(read_timeout), ..ApiRequest::of(Method::GET, address) };
        let response = self.send(&request, false)?;
        Ok(Events::new(response.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    fn json(&self, request: &ApiRequest<'_>, repeatable: bool) -> Result<Value> {
        let response = self.send(request, repeatable)?;
        self.read_json(response)
    }

    fn read_json(&self, mut response: Response<Body>) -> Result<Value> {
        let bytes = response
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER_BYTES)
            .read_to_vec()
            .map_err(|error| self.transport_error(&error))?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| {
            let text = format!("{} answers in a way this version does not understand", self.url());
            Failure::new(Exit::Infrastructure, text).help("is it an octoflow server?").into()
        })
    }

    fn send(&self, request: &ApiRequest<'_>, repeatable: bool) -> Result<Response<Body>> {
        let mut tries = 1;
        loop {
            let outcome = self.once(request);
            let passing = match &outcome {
                Err(error) => !is_unreachable(error),
                Ok(response) => response.status().as_u16() == 503,
            };
            if repeatable && passing && tries < TRIES {
                thread::sleep(PAUSE * tries);
                tries += 1;
                continue;
            }
            let mut response = outcome.map_err(|error| self.transport_error(&error))?;
            if response.status().is_success() {
                return Ok(response);
            }
            let status = response.status().as_u16();
            let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec().unwrap_or_default();
            return Err(fault::failure(status, &body, self.url()).into());
        }
    }

    fn once(&self, request: &ApiRequest<'_>) -> Result<Response<Body>, Error> {
        let host = if self.endpoint.socket.is_some() { socket::URL } else { &self.endpoint.url };
        let url = format!("{host}{}", request.address);
        let mut head = Request::builder().method(request.method.clone()).uri(url).header("accept", request.accept);
        if let Some(token) = &self.endpoint.token {
            head = head.header("authorization", format!("Bearer {token}"));
        }
        if let Some(key) = request.key {
            head = head.header("idempotency-key", key);
        }
        let whole = request.read_timeout.is_none().then_some(CALL_TIMEOUT);
        match request.body {
            Some(body) => {
                let http = head.header("content-type", request.sends).body(body.to_string())?;
                let config = self.agent.configure_request(http).timeout_global(whole);
                self.agent.run(config.timeout_per_read(request.read_timeout).build())
            }
            None => {
                let config = self.agent.configure_request(head.body(())?).timeout_global(whole);
                self.agent.run(config.timeout_per_read(request.read_timeout).build())
            }
        }
    }

    fn transport_error(&self, error: &Error) -> anyhow::Error {
        fault::transport_error(error, &self.endpoint).into()
    }
}

impl<'a> ApiRequest<'a> {
    fn of(method: Method, address: &'a Address) -> Self {
        let json = "application/json";
        Self { method, address, body: None, key: None, accept: json, sends: json, read_timeout: None }
    }
}

/// Returns whether no server is reachable there, so that a retry does not help.
fn is_unreachable(error: &Error) -> bool {
    match error {
        Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        Error::ConnectionFailed | Error::HostNotFound | Error::BadUri(_) | Error::Tls(_) | Error::Rustls(_) => true,
        _ => false,
    }
}

/// Formats a label selector.
pub(crate) fn selector(tests: &[LabelTest]) -> String {
    let one = |test: &LabelTest| match test {
        LabelTest::Equals { key, value } => format!("{key}={value}"),
        LabelTest::In { key, values } => format!("{key} in ({})", values.join(",")),
        LabelTest::NotIn { key, values } => format!("{key} notin ({})", values.join(",")),
        LabelTest::Exists { key } => key.clone(),
        LabelTest::Absent { key } => format!("!{key}"),
    };
    tests.iter().map(one).collect::<Vec<_>>().join(",")
}
