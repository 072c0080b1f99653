//! Which server is meant: flag, then environment, then the file of settings, then the server that holds the data
//! directory. Nothing is connected here.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::Result;
use octoflow_server::{Beacon, first_token};

use crate::{cli::Reach, exit::Failure, settings::Settings};

/// What is meant when a command needs a server and nobody named one.
const ASSUMED: &str = "http://127.0.0.1:2746";

/// The token of a server that was started with `--allow-default-password`. Everybody knows it, so nothing is given away
/// by sending it.
const DEFAULT_TOKEN: &str = "admin";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Without a slash at its end.
    pub url: String,
    pub token: Option<String>,
    /// The unix socket of a server on this machine, to which nobody needs to send a token.
    pub socket: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    pub skip_verify: bool,
    /// Nobody named it.
    pub assumed: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Named(Endpoint),
    /// It holds the data directory.
    Holder(Endpoint),
    /// Nobody said anything; this is where a server would be.
    Assumed(Endpoint),
}

impl Found {
    pub(crate) fn endpoint(self) -> Endpoint {
        match self {
            Self::Named(endpoint) | Self::Holder(endpoint) | Self::Assumed(endpoint) => endpoint,
        }
    }
}

pub(crate) fn find(reach: &Reach, settings: &Settings, data_dir: &Path) -> Result<Found> {
    // An empty word in the environment says nothing.
    let said = |word: &Option<String>| word.clone().filter(|word| !word.trim().is_empty());
    let named = said(&reach.server).or_else(|| settings.get("server").map(str::to_owned));
    let named = named.as_deref().map(normal).transpose()?;
    let token = said(&reach.token).or_else(|| settings.get("token").map(str::to_owned));
    let holder = Beacon::find(data_dir);
    // The first token is told to nobody but the server whose it is.
    let first = |url: &str| holder.as_ref().filter(|holder| is_at(url, holder)).and_then(|_| first_token(data_dir));
    let of = |url: String, assumed: bool, ca: Option<PathBuf>, socket: Option<PathBuf>| {
        let otherwise = || first(&url).or_else(|| is_loopback(&url).then(|| DEFAULT_TOKEN.to_owned()));
        Endpoint {
            token: if socket.is_some() { token.clone() } else { token.clone().or_else(otherwise) },
            socket,
            ca_file: reach.ca_file.clone().or_else(|| settings.get("ca-file").map(PathBuf::from)).or(ca),
            skip_verify: reach.insecure_skip_verify || settings.get("insecure-skip-verify") == Some("true"),
            url,
            assumed,
        }
    };
    if let Some(url) = named {
        return Ok(Found::Named(of(url, false, None, None)));
    }
    Ok(match &holder {
        Some(holder) => {
            let socket = holder.socket.clone().filter(|path| path.exists());
            Found::Holder(of(normal(&holder.url)?, false, holder.ca_file.clone(), socket))
        }
        None => Found::Assumed(of(ASSUMED.to_owned(), true, None, None)),
    })
}

/// Whether a URL leads to this server: its own, or another name of this machine with its scheme and port.
fn is_at(url: &str, server: &Beacon) -> bool {
    let parts = |url: &str| {
        let (scheme, rest) = url.split_once("://")?;
        let port = rest.split('/').next()?.rsplit_once(':')?.1;
        Some((scheme.to_owned(), port.to_owned()))
    };
    let own = server.url.trim_end_matches('/');
    url == own || is_loopback(url) && is_loopback(own) && parts(url).is_some_and(|found| parts(own) == Some(found))
}

/// With a scheme, without a slash at the end.
fn normal(url: &str) -> Result<String> {
    let url = url.trim().trim_end_matches('/');
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    if url.is_empty() || !(full.starts_with("http://") || full.starts_with("https://")) {
        return Err(Failure::usage(format!("`{url}` is no address of a server"))
            .help("write it like http://127.0.0.1:2746 or https://flows.example.org")
            .into());
    }
    Ok(full)
}

pub(super) fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    fn reach(server: Option<&str>) -> Reach {
        Reach { server: server.map(str::to_owned), token: None, ca_file: None, insecure_skip_verify: false }
    }

    #[test]
    fn flag_file_and_assumption_come_in_this_order() {
        let dir = tempdir().unwrap();
        let mut settings = Settings::default();
        let found = find(&reach(None), &settings, dir.path()).unwrap();
        assert!(matches!(&found, Found::Assumed(endpoint) if endpoint.url == ASSUMED), "{found:?}");
        settings.set("server", "flows.example.org:80/").unwrap();
        let found = find(&reach(None), &settings, dir.path()).unwrap().endpoint();
        assert_eq!((found.url.as_str(), found.token), ("http://flows.example.org:80", None));
        let found = find(&reach(Some("https://localhost:1")), &settings, dir.path()).unwrap().endpoint();
        assert_eq!((found.url.as_str(), found.token.as_deref()), ("https://localhost:1", Some("admin")));
        assert!(find(&reach(Some("ftp://x")), &settings, dir.path()).is_err());
    }

    #[test]
    fn the_first_token_is_for_this_machine_only() {
        assert!(
            is_loopback("http://127.0.0.1:2746") && is_loopback("http://[::1]:1/x") && is_loopback("http://localhost")
        );
        assert!(!is_loopback("http://10.0.0.1") && !is_loopback("http://127.0.0.1.example.org"));
    }
}
