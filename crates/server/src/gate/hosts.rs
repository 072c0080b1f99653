//! The host names under which this server may be addressed. Requests for any other name are refused, on every route: a
//! page whose own name points to our address (DNS rebinding) would otherwise count as ours in a browser. Ports are
//! never compared here, because proxies and forwarded ports change them.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use axum::http::{HeaderMap, StatusCode, Uri, header};

use crate::answer::fault::Fault;

/// Maximum length of a DNS name.
const MAX_NAME_LENGTH: usize = 253;

/// Host with an optional port: `Host`, `:authority`, or the end of an `Origin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Address(IpAddr),
    /// In lower case, without a trailing dot.
    Name(String),
}

/// Name under which clients reach the server, perhaps through a proxy, with a non-default port if they use one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicName(Authority);

#[derive(Debug, thiserror::Error)]
#[error(
    "a public name is a DNS name such as `flows.example.org`, with a port if clients use one: `flows.example.org:8443`"
)]
pub struct InvalidPublicName;

/// All accepted names.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    public: Vec<PublicName>,
    /// DNS names of the certificate; the first label may be `*`.
    certified: Vec<String>,
    /// True if this server speaks TLS itself, so that our pages begin with https.
    tls: bool,
}

impl Hosts {
    pub(crate) fn new(public: Vec<PublicName>, certified: Option<Vec<String>>) -> Self {
        let tls = certified.is_some();
        let certified = certified.unwrap_or_default().into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { public, certified, tls }
    }

    /// Returns the host a request is addressed to, if it is ours.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, Fault> {
        let mut named = headers.get_all(header::HOST).iter();
        let header = match (named.next(), named.next()) {
            (_, Some(_)) => return Err(Fault::bad_request("the request has more than one Host header")),
            (Some(value), None) => Some(value.to_str().ok().and_then(Authority::parse).ok_or_else(unreadable)?),
            (None, None) => None,
        };
        // HTTP/2 names the host here, and so do HTTP/1.1 requests in absolute form.
        let target = match uri.authority() {
            Some(authority) => Some(Authority::parse(authority.as_str()).ok_or_else(unreadable)?),
            None => None,
        };
        let asked = match (target, header) {
            (Some(target), Some(header)) if target != header => {
                return Err(Fault::bad_request("the Host header and the target of the request name different hosts"));
            }
            (Some(authority), _) | (None, Some(authority)) => authority,
            (None, None) => return Err(Fault::bad_request("the request has no Host header")),
        };
        if self.has(&asked.host) {
            return Ok(asked);
        }
        let text = format!(
            "this server does not answer to the name {}; use its address or localhost, or start it with --public-name {}",
            asked.host, asked.host
        );
        Err(Fault::new(StatusCode::MISDIRECTED_REQUEST, "MisdirectedRequest", text))
    }

    fn has(&self, host: &Host) -> bool {
        let name = match host {
            // An address cannot be rebound.
            Host::Address(_) => return true,
            Host::Name(name) => name,
        };
        // Browsers and resolvers treat these as loopback without asking DNS.
        let local = name == "localhost" || name.ends_with(".localhost");
        local || self.public.iter().any(|known| known.0.host == *host) || self.is_certified(name)
    }

    fn is_certified(&self, name: &str) -> bool {
        self.certified.iter().any(|known| match known.strip_prefix("*.") {
            Some(parent) => name.split_once('.').is_some_and(|(_, rest)| rest == parent),
            None => known == name,
        })
    }

    /// Returns whether an `Origin` is a page of ours, for a request to `asked`: the same host and port, or a public
    /// name.
    pub(crate) fn is_own_origin(&self, origin: &str, asked: &Authority) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else { return false };
        let usual = match scheme {
            "https" => 443,
            // Behind a proxy with TLS we cannot know; with TLS of our own, http pages are not ours.
            "http" if !self.tls => 80,
            _ => return false,
        };
        let Some(origin) = Authority::parse(rest) else { return false };
        let same = |other: &Authority| {
            origin.host == other.host && origin.port.unwrap_or(usual) == other.port.unwrap_or(usual)
        };
        same(asked) || self.public.iter().any(|name| same(&name.0))
    }
}

impl Authority {
    /// Parses a host. Returns `None` for what no browser or client would send: users, empty hosts, invalid characters.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            return Some(Self { host: Host::Address(IpAddr::V6(address).to_canonical()), port: port(rest)? });
        }
        let (host, rest) = match text.find(':') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let port = port(rest)?;
        if let Ok(address) = host.parse::<std::net::Ipv4Addr>() {
            return Some(Self { host: Host::Address(address.into()), port });
        }
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let label = |label: &str| !label.is_empty() && label.bytes().all(letter);
        (name.len() <= MAX_NAME_LENGTH && name.split('.').all(label)).then_some(Self { host: Host::Name(name), port })
    }
}

/// Parses what follows the host: nothing, or a colon and a port.
#[expect(clippy::option_option, reason = "no port is well written, and so is one")]
fn port(text: &str) -> Option<Option<u16>> {
    match text.strip_prefix(':') {
        None => text.is_empty().then_some(None),
        Some("") => Some(None),
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?.map(Some),
    }
}

fn unreadable() -> Fault {
    Fault::bad_request("the Host header is not a host name or an address with a port")
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for PublicName {
    type Err = InvalidPublicName;

    fn from_str(text: &str) -> Result<Self, InvalidPublicName> {
        Authority::parse(text).map(Self).ok_or(InvalidPublicName)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn hosts() -> Hosts {
        let public = vec!["flows.example.org".parse().unwrap(), "other.example.org:8443".parse().unwrap()];
        Hosts::new(public, None)
    }

    fn checked(hosts: &Hosts, uri: &str, named: &[&str]) -> Result<Authority, u16> {
        let mut headers = HeaderMap::new();
        for name in named {
            headers.append(header::HOST, HeaderValue::from_str(name).unwrap());
        }
        hosts.check(&uri.parse().unwrap(), &headers).map_err(|fault| fault.status.as_u16())
    }

    #[test]
    fn addresses_loopback_names_and_public_names_are_ours_and_nothing_else_is() {
        let hosts = hosts();
        for own in [
            "127.0.0.1:2746",
            "192.0.2.7",
            "[::1]:2746",
            "[2001:db8::1]",
            "localhost:2746",
            "LOCALHOST.",
            "a.localhost",
            "flows.example.org",
            "Flows.Example.Org:9999",
            "other.example.org",
        ] {
            assert!(checked(&hosts, "/livez", &[own]).is_ok(), "{own}");
        }
        for foreign in ["evil.example", "localhost.evil.example", "xlocalhost", "127.0.0.1.evil.example", "0x7f.1", "x"]
        {
            assert_eq!(checked(&hosts, "/livez", &[foreign]), Err(421), "{foreign}");
        }
        for broken in
            ["", "a b", "user@localhost", "localhost:x", "localhost:99999", "[::1", "::1", "a..b", "local/host"]
        {
            assert_eq!(checked(&hosts, "/livez", &[broken]), Err(400), "{broken}");
        }
    }

    #[test]
    fn the_host_is_named_once_or_twice_the_same() {
        let hosts = hosts();
        assert_eq!(checked(&hosts, "/livez", &[]), Err(400));
        assert_eq!(checked(&hosts, "/livez", &["localhost", "localhost"]), Err(400));
        assert_eq!(checked(&hosts, "http://evil.example/livez", &["localhost"]), Err(400));
        assert_eq!(checked(&hosts, "http://evil.example/livez", &[]), Err(421));
        assert!(checked(&hosts, "http://localhost:1/livez", &[]).is_ok());
        assert!(checked(&hosts, "http://localhost:1/livez", &["localhost:1"]).is_ok());
    }

    #[test]
    fn names_of_the_certificate_are_ours() {
        let hosts = Hosts::new(Vec::new(), Some(vec!["Flows.internal".to_owned(), "*.pods.internal".to_owned()]));
        for own in ["flows.internal", "a.pods.internal"] {
            assert!(checked(&hosts, "/", &[own]).is_ok(), "{own}");
        }
        for foreign in ["pods.internal", "a.b.pods.internal", "internal"] {
            assert_eq!(checked(&hosts, "/", &[foreign]), Err(421), "{foreign}");
        }
    }

    #[test]
    fn an_origin_is_ours_with_the_same_host_and_port_or_a_public_name() {
        let plain = hosts();
        let asked = Authority::parse("127.0.0.1:2746").unwrap();
        for own in ["http://127.0.0.1:2746", "https://flows.example.org", "https://other.example.org:8443"] {
            assert!(plain.is_own_origin(own, &asked), "{own}");
        }
        for foreign in [
            "null",
            "http://127.0.0.1:9999",
            "http://127.0.0.1",
            "http://localhost:2746",
            "https://other.example.org",
            "https://flows.example.org:1",
            "http://evil.example",
            "file://",
            "chrome-extension://127.0.0.1:2746",
            "http://127.0.0.1:2746/",
        ] {
            assert!(!plain.is_own_origin(foreign, &asked), "{foreign}");
        }
        let asked = Authority::parse("flows.internal").unwrap();
        let tls = Hosts::new(Vec::new(), Some(vec!["flows.internal".to_owned()]));
        assert!(tls.is_own_origin("https://flows.internal", &asked));
        assert!(tls.is_own_origin("https://flows.internal:443", &asked));
        assert!(!tls.is_own_origin("http://flows.internal", &asked));
    }
}
