//! Where this program may connect to on behalf of a manifest: one policy, checked on the address that a name resolves
//! to. Everything a manifest can make us fetch or send goes through [`agent`] or [`Policy::resolve`]; nothing may
//! bypass them.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use ureq::{
    Agent,
    config::Config,
    http::Uri,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem},
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{DefaultConnector, NextTimeout},
    },
};

mod address;
pub(crate) mod redirect;

use address::AddressKind;
pub use address::Net;

/// Addresses that may be reached.
///
/// A policy is written as a mode, then the exceptions to it: `strict, 10.1.0.0/16, minio.internal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    mode: Mode,
    nets: Vec<Net>,
    hosts: Vec<Host>,
    /// Addresses of pods of this controller, each with a port.
    pods: Vec<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// For the user's own machine and manifests: the machine itself and its networks may be reached.
    Local,
    /// For manifests of others: only public addresses, and what is allowed by name or network.
    Strict,
}

/// A host name, or all names below a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Exactly(String),
    Below(String),
}

/// A refused connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connections to {host} are not allowed: {address} is {what}{}", self.advice())]
pub struct Refused {
    pub host: String,
    pub address: IpAddr,
    what: &'static str,
    /// True if configuration could allow it.
    open: bool,
}

impl Refused {
    fn advice(&self) -> &'static str {
        if self.open { "; allow its network or host in OCTOFLOW_EGRESS if it is meant" } else { "" }
    }
}

/// Reason why a name gives no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the host {host} could not be looked up: {source}")]
    Lookup { host: String, source: io::Error },
}

/// Error for a policy that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no egress rule: use `local` or `strict` first, then host names, `*.domains`, addresses or CIDRs")]
pub struct NotAPolicy(String);

impl Policy {
    /// Returns the policy for the user's own machine: loopback and private networks are allowed, link-local and cloud
    /// metadata never.
    pub fn local() -> Self {
        Self { mode: Mode::Local, nets: Vec::new(), hosts: Vec::new(), pods: Vec::new() }
    }

    /// Returns the policy for servers: public addresses only.
    pub fn strict() -> Self {
        Self { mode: Mode::Strict, nets: Vec::new(), hosts: Vec::new(), pods: Vec::new() }
    }

    /// Returns the policy for servers with the machine itself: what listens only there can be asked.
    pub fn strict_with_loopback() -> Self {
        let nets = ["127.0.0.0/8", "::1/128"].map(|net| net.parse().expect("it is a network"));
        Self { nets: nets.to_vec(), ..Self::strict() }
    }

    /// Returns whether this is the policy of a user's own machine, where `file://` gives no more than the user could
    /// read anyway.
    pub fn is_local(&self) -> bool {
        self.mode == Mode::Local
    }

    #[must_use]
    pub fn allow_net(mut self, net: Net) -> Self {
        self.nets.push(net);
        self
    }

    /// Allows a host: `name` or `*.domain`.
    #[must_use]
    pub fn allow_host(mut self, host: &str) -> Self {
        let host = plain(host);
        self.hosts.push(match host.strip_prefix("*.") {
            Some(domain) => Host::Below(format!(".{domain}")),
            None => Host::Exactly(host),
        });
        self
    }

    /// Allows pods of this controller, each at one port. Only addresses of this machine are taken; every other rule stays.
    #[must_use]
    pub fn allow_pods(mut self, pods: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.pods.extend(pods.into_iter().filter(|pod| pod.ip().is_loopback()));
        self
    }

    /// Checks whether a host may be connected to at this address and port.
    pub fn check_at(&self, host: &str, address: SocketAddr) -> Result<(), Refused> {
        if self.pods.contains(&address) { Ok(()) } else { self.check(host, address.ip()) }
    }

    /// Checks whether a host with this address may be connected to.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let refused = |what, open| Err(Refused { host: host.to_owned(), address, what, open });
        // An address embedded in another one is reached as well, so the worst of them counts.
        for inner in address::with_embedded(address) {
            let kind = AddressKind::of(inner);
            let named = || self.nets.iter().any(|net| net.contains(inner) || net.contains(address));
            match kind {
                AddressKind::Public => {}
                // The owner of a name can change its address at any time; only a configured address allows these.
                AddressKind::Metadata => return refused(kind.name(), false),
                AddressKind::LinkLocal | AddressKind::Multicast | AddressKind::Unspecified if !named() => {
                    return refused(kind.name(), true);
                }
                AddressKind::Loopback | AddressKind::Private
                    if self.mode == Mode::Strict && !named() && !self.hosts.iter().any(|rule| rule.matches(host)) =>
                {
                    return refused(kind.name(), true);
                }
                AddressKind::LinkLocal
                | AddressKind::Multicast
                | AddressKind::Unspecified
                | AddressKind::Loopback
                | AddressKind::Private => {}
            }
        }
        Ok(())
    }

    /// Resolves a host to addresses that may be connected to. One forbidden address refuses the host: it is an attack
    /// or a mistake.
    pub fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found = (bare, port)
            .to_socket_addrs()
            .map_err(|source| Error::Lookup { host: host.to_owned(), source })?
            .collect::<Vec<_>>();
        for address in &found {
            self.check_at(bare, *address)?;
        }
        if found.is_empty() {
            let source = io::Error::new(io::ErrorKind::NotFound, "it has no address");
            return Err(Error::Lookup { host: host.to_owned(), source });
        }
        Ok(found)
    }
}

impl FromStr for Policy {
    type Err = NotAPolicy;

    fn from_str(text: &str) -> Result<Self, NotAPolicy> {
        let mut words = text.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
        let mut policy = match words.next() {
            Some("local") => Self::local(),
            Some("strict") => Self::strict(),
            other => return Err(NotAPolicy(other.unwrap_or_default().to_owned())),
        };
        for word in words {
            let is_name = |word: &str| {
                let name = word.strip_prefix("*.").unwrap_or(word);
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            };
            policy = match word.parse::<Net>() {
                Ok(net) => policy.allow_net(net),
                // A word of digits and dots that is no address was meant as one.
                Err(_) if is_name(word) && word.bytes().any(|byte| byte.is_ascii_alphabetic()) => {
                    policy.allow_host(word)
                }
                Err(_) => return Err(NotAPolicy(word.to_owned())),
            };
        }
        Ok(policy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_local() { "local" } else { "strict" })?;
        self.nets.iter().try_for_each(|net| write!(f, ", {net}"))?;
        self.hosts.iter().try_for_each(|host| match host {
            Host::Exactly(name) => write!(f, ", {name}"),
            Host::Below(domain) => write!(f, ", *{domain}"),
        })
    }
}

impl Host {
    fn matches(&self, host: &str) -> bool {
        let host = plain(host);
        match self {
            Self::Exactly(name) => host == *name,
            Self::Below(domain) => host.len() > domain.len() && host.ends_with(domain.as_str()),
        }
    }
}

fn plain(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Timeouts for name resolution, for connecting, and for the next bytes of a response.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns an HTTP client that connects only where the policy allows.
///
/// Statuses are not errors, and neither are redirects: see [`redirect`]. Single requests may change timeouts with
/// `.config()`; the guard is part of the agent and stays. Proxies of the environment are not used: behind one the
/// address could not be checked.
pub fn agent(policy: &Policy) -> Agent {
    build(policy, TlsConfig::default())
}

/// Returns such a client that trusts these certificates (PEM) instead of the public ones.
pub fn agent_trusting(policy: &Policy, pem: &[u8]) -> Result<Agent, String> {
    let mut roots: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| error.to_string())? {
            roots.push(certificate);
        }
    }
    if roots.is_empty() {
        return Err("there is no certificate in the PEM text".to_owned());
    }
    Ok(build(policy, TlsConfig::builder().root_certs(RootCerts::new_with_certs(&roots)).build()))
}

fn build(policy: &Policy, tls: TlsConfig) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .tls_config(tls)
        // Followed by `redirect`, which knows which headers may be forwarded.
        .max_redirects(0)
        .user_agent(concat!("octoflow/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(RESOLVE_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_per_read(Some(READ_TIMEOUT))
        .timeout_per_write(Some(READ_TIMEOUT))
        .build();
    let guard = Guard { policy: Arc::new(policy.clone()), inner: DefaultResolver::default() };
    Agent::with_parts(config, DefaultConnector::default(), guard)
}

/// Returns the refusal behind a request's error.
pub fn refusal(error: &ureq::Error) -> Option<&Refused> {
    match error {
        ureq::Error::Other(inner) => inner.downcast_ref::<Refused>(),
        _ => None,
    }
}

#[derive(Debug)]
struct Guard {
    policy: Arc<Policy>,
    inner: DefaultResolver,
}

impl Resolver for Guard {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        for address in found.iter() {
            self.policy.check_at(host, *address).map_err(|refused| ureq::Error::Other(Box::new(refused)))?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
