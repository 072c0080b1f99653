//! Chooses the server: flag, then environment, then the settings file, then the server that holds the data directory.
//! Does not connect.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::Result;
use octoflow_server::{ServerFile, first_token};

use crate::{cli::ServerArgs, config::settings::Settings, exit::Failure};

/// Default address for commands that need a server.
const DEFAULT_URL: &str = "http://127.0.0.1:2746";

/// Token of a server with `--allow-default-password`. It is public knowledge, so sending it reveals nothing.
const DEFAULT_TOKEN: &str = "admin";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Without a trailing slash.
    pub url: String,
    pub token: Option<String>,
    /// Unix socket of a server on this machine, which needs no token.
    pub socket: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    pub skip_verify: bool,
    /// True if it is the default.
    pub assumed: bool,
}

/// How the server was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChosenServer {
    Named(Endpoint),
    /// It holds the data directory.
    Holder(Endpoint),
    /// The default, because none was named.
    Assumed(Endpoint),
}

impl ChosenServer {
    pub(crate) fn endpoint(self) -> Endpoint {
        match self {
            Self::Named(endpoint) | Self::Holder(endpoint) | Self::Assumed(endpoint) => endpoint,
        }
    }
}

pub(crate) fn find(server_args: &ServerArgs, settings: &Settings, data_dir: &Path) -> Result<ChosenServer> {
    // An empty environment variable counts as unset.
    let said = |word: &Option<String>| word.clone().filter(|word| !word.trim().is_empty());
    let named = said(&server_args.server).or_else(|| settings.get("server").map(str::to_owned));
    let named = named.as_deref().map(normal).transpose()?;
    let token = said(&server_args.token).or_else(|| settings.get("token").map(str::to_owned));
    let holder = ServerFile::find(data_dir);
    // The first token is sent only to the server it belongs to.
    let first = |url: &str| holder.as_ref().filter(|holder| is_at(url, holder)).and_then(|_| first_token(data_dir));
    let of = |url: String, assumed: bool, ca: Option<PathBuf>, socket: Option<PathBuf>| {
        let otherwise = || first(&url).or_else(|| is_loopback(&url).then(|| DEFAULT_TOKEN.to_owned()));
        Endpoint {
            token: if socket.is_some() { token.clone() } else { token.clone().or_else(otherwise) },
            socket,
            ca_file: server_args.ca_file.clone().or_else(|| settings.get("ca-file").map(PathBuf::from)).or(ca),
            skip_verify: server_args.insecure_skip_verify || settings.get("insecure-skip-verify") == Some("true"),
            url,
            assumed,
        }
    };
    if let Some(url) = named {
        return Ok(ChosenServer::Named(of(url, false, None, None)));
    }
    Ok(match &holder {
        Some(holder) => {
            let socket = holder.socket.clone().filter(|path| path.exists());
            ChosenServer::Holder(of(normal(&holder.url)?, false, holder.ca_file.clone(), socket))
        }
        None => ChosenServer::Assumed(of(DEFAULT_URL.to_owned(), true, None, None)),
    })
}

/// Returns whether a URL leads to this server: its own, or another name of this machine with its scheme and port.
fn is_at(url: &str, server: &ServerFile) -> bool {
    let parts = |url: &str| {
        let (scheme, rest) = url.split_once("://")?;
        let port = rest.split('/').next()?.rsplit_once(':')?.1;
        Some((scheme.to_owned(), port.to_owned()))
    };
    let own = server.url.trim_end_matches('/');
    url == own || is_loopback(url) && is_loopback(own) && parts(url).is_some_and(|found| parts(own) == Some(found))
}

/// Adds a scheme and removes a trailing slash.
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

    fn server_args(server: Option<&str>) -> ServerArgs {
        ServerArgs { server: server.map(str::to_owned), token: None, ca_file: None, insecure_skip_verify: false }
    }

    #[test]
    fn flag_file_and_assumption_come_in_this_order() {
        let dir = tempdir().unwrap();
        let mut settings = Settings::default();
        let found = find(&server_args(None), &settings, dir.path()).unwrap();
        assert!(matches!(&found, ChosenServer::Assumed(endpoint) if endpoint.url == DEFAULT_URL), "{found:?}");
        settings.set("server", "flows.example.org:80/").unwrap();
        let found = find(&server_args(None), &settings, dir.path()).unwrap().endpoint();
        assert_eq!((found.url.as_str(), found.token), ("http://flows.example.org:80", None));
        let found = find(&server_args(Some("https://localhost:1")), &settings, dir.path()).unwrap().endpoint();
        assert_eq!((found.url.as_str(), found.token.as_deref()), ("https://localhost:1", Some("admin")));
        assert!(find(&server_args(Some("ftp://x")), &settings, dir.path()).is_err());
    }

    #[test]
    fn the_first_token_is_for_this_machine_only() {
        assert!(
            is_loopback("http://127.0.0.1:2746") && is_loopback("http://[::1]:1/x") && is_loopback("http://localhost")
        );
        assert!(!is_loopback("http://10.0.0.1") && !is_loopback("http://127.0.0.1.example.org"));
    }
}
