//! Talking HTTP to a server: one call at a time, JSON there and back, failures with the exit code they deserve.
//! It knows no command; what is asked and what the answer means is the caller's.

mod address;
mod fault;
mod place;
mod socket;
mod stream;

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
pub(crate) use place::{Endpoint, Found, find};
pub(crate) use stream::{Events, Next};

use crate::exit::{Exit, Failure};

/// Connecting takes longer only when nobody is there.
const CONNECT: Duration = Duration::from_secs(10);
/// A call that takes longer than this has no answer.
const ANSWER: Duration = Duration::from_secs(120);
/// Answers are whole objects; one that is longer is nobody's workflow.
const LARGEST: u64 = 1 << 30;
/// A call that may be made twice without harm is made this often, each time after a longer pause.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(200);

/// A server that was chosen; nothing is connected until something is asked.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: Agent,
    endpoint: Endpoint,
}

/// What is sent.
struct Ask<'a> {
    method: Method,
    address: &'a Address,
    body: Option<&'a Value>,
    /// Makes a creation safe to repeat.
    key: Option<&'a str>,
    accept: &'a str,
    /// How long a read may take; without it the whole call is bounded.
    patience: Option<Duration>,
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
            .timeout_connect(Some(CONNECT))
            .http_status_as_error(false)
            .user_agent(concat!("octoflow/", env!("CARGO_PKG_VERSION")));
        if endpoint.socket.is_some() || place::is_loopback(&endpoint.url) {
            // Nobody else is in between on this machine, whatever the environment says.
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
        self.json(&Ask::of(Method::GET, address), true)
    }

    /// The object, or nothing where there is none.
    pub(crate) fn find(&self, address: &Address) -> Result<Option<Value>> {
        match self.get(address) {
            Ok(value) => Ok(Some(value)),
            Err(error) if crate::exit::of(&error) == Exit::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn put(&self, address: &Address, body: &Value) -> Result<Value> {
        self.json(&Ask { body: Some(body), ..Ask::of(Method::PUT, address) }, false)
    }

    pub(crate) fn post(&self, address: &Address, body: &Value) -> Result<Value> {
        self.json(&Ask { body: Some(body), ..Ask::of(Method::POST, address) }, false)
    }

    /// A creation that makes one thing however often it is sent: the server knows the key again.
    pub(crate) fn create(&self, address: &Address, body: &Value, key: &str) -> Result<Value> {
        self.json(&Ask { body: Some(body), key: Some(key), ..Ask::of(Method::POST, address) }, true)
    }

    /// The same where the thing is made by a change of another.
    pub(crate) fn change(&self, address: &Address, body: &Value, key: &str) -> Result<Value> {
        self.json(&Ask { body: Some(body), key: Some(key), ..Ask::of(Method::PUT, address) }, false)
    }

    pub(crate) fn delete(&self, address: &Address) -> Result<Value> {
        self.json(&Ask::of(Method::DELETE, address), false)
    }

    /// The bytes of an answer and their name, if the server gives one.
    pub(crate) fn download(&self, address: &Address) -> Result<(Option<String>, impl Read + use<>)> {
        let ask = Ask { accept: "*/*", patience: Some(ANSWER), ..Ask::of(Method::GET, address) };
        let response = self.send(&ask, true)?;
        let name = response.headers().get("content-disposition").and_then(|value| value.to_str().ok());
        let name = name.and_then(|text| text.split("filename=").nth(1)).map(|name| name.trim_matches('"').to_owned());
        Ok((name, response.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    /// Events as they come, in the form the face of the server has them. `patience` is how long nothing at all may be heard.
    pub(crate) fn events(&self, address: &Address, form: &str, patience: Duration) -> Result<Events> {
        let ask = Ask { accept: form, patience: Some(patience), ..Ask::of(Method::GET, address) };
        let response = self.send(&ask, false)?;
        Ok(Events::new(response.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    fn json(&self, ask: &Ask<'_>, repeatable: bool) -> Result<Value> {
        let mut response = self.send(ask, repeatable)?;
        let bytes =
            response.body_mut().with_config().limit(LARGEST).read_to_vec().map_err(|error| self.lost(&error))?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| {
            let text = format!("{} answers in a way this version does not understand", self.url());
            Failure::new(Exit::Infrastructure, text).help("is it an octoflow server?").into()
        })
    }

    fn send(&self, ask: &Ask<'_>, repeatable: bool) -> Result<Response<Body>> {
        let mut tries = 1;
        loop {
            let outcome = self.once(ask);
            let passing = match &outcome {
                Err(error) => !nobody(error),
                Ok(response) => response.status().as_u16() == 503,
            };
            if repeatable && passing && tries < TRIES {
                thread::sleep(PAUSE * tries);
                tries += 1;
                continue;
            }
            let mut response = outcome.map_err(|error| self.lost(&error))?;
            if response.status().is_success() {
                return Ok(response);
            }
            let status = response.status().as_u16();
            let body = response.body_mut().with_config().limit(LARGEST).read_to_vec().unwrap_or_default();
            return Err(fault::failure(status, &body, self.url()).into());
        }
    }

    fn once(&self, ask: &Ask<'_>) -> Result<Response<Body>, Error> {
        let host = if self.endpoint.socket.is_some() { socket::URL } else { &self.endpoint.url };
        let url = format!("{host}{}", ask.address);
        let mut head = Request::builder().method(ask.method.clone()).uri(url).header("accept", ask.accept);
        if let Some(token) = &self.endpoint.token {
            head = head.header("authorization", format!("Bearer {token}"));
        }
        if let Some(key) = ask.key {
            head = head.header("idempotency-key", key);
        }
        let whole = ask.patience.is_none().then_some(ANSWER);
        match ask.body {
            Some(body) => {
                let request = head.header("content-type", "application/json").body(body.to_string())?;
                let config = self.agent.configure_request(request).timeout_global(whole);
                self.agent.run(config.timeout_per_read(ask.patience).build())
            }
            None => {
                let config = self.agent.configure_request(head.body(())?).timeout_global(whole);
                self.agent.run(config.timeout_per_read(ask.patience).build())
            }
        }
    }

    fn lost(&self, error: &Error) -> anyhow::Error {
        fault::lost(error, &self.endpoint).into()
    }
}

impl<'a> Ask<'a> {
    fn of(method: Method, address: &'a Address) -> Self {
        Self { method, address, body: None, key: None, accept: "application/json", patience: None }
    }
}

/// Nobody listens there; asking again does not help.
fn nobody(error: &Error) -> bool {
    match error {
        Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        Error::ConnectionFailed | Error::HostNotFound | Error::BadUri(_) | Error::Tls(_) | Error::Rustls(_) => true,
        _ => false,
    }
}

/// A label selector as it was typed.
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
