//! Which server is meant: flag, then environment, then the file of settings, then the server that holds the data
//! directory. Nothing is connected here.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::Result;
use serde_json::Value;

use crate::{cli::Reach, exit::Failure, local, settings::Settings, workflow::text};

/// What is meant when a command needs a server and nobody named one.
const ASSUMED: &str = "http://127.0.0.1:2746";

/// The token of a server nobody has configured; it is valid on this machine only.
const FIRST_TOKEN: &str = "admin";

/// Where the server that holds a data directory writes how it is reached.
const NOTE: &str = "server.json";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Without a slash at its end.
    pub url: String,
    pub token: Option<String>,
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
    let named = reach.server.as_deref().or(settings.get("server")).map(normal).transpose()?;
    let of = |url: String, assumed: bool, ca: Option<PathBuf>| {
        let token = reach.token.clone().or_else(|| settings.get("token").map(str::to_owned));
        Endpoint {
            token: token.or_else(|| is_loopback(&url).then(|| FIRST_TOKEN.to_owned())),
            ca_file: reach.ca_file.clone().or_else(|| settings.get("ca-file").map(PathBuf::from)).or(ca),
            skip_verify: reach.insecure_skip_verify || settings.get("insecure-skip-verify") == Some("true"),
            url,
            assumed,
        }
    };
    if let Some(url) = named {
        return Ok(Found::Named(of(url, false, None)));
    }
    Ok(match holder(data_dir) {
        Some((url, ca)) => Found::Holder(of(url, false, ca)),
        None => Found::Assumed(of(ASSUMED.to_owned(), true, None)),
    })
}

/// The server that has the data directory open now, and the certificate it made for itself. A note that was left behind
/// by a server that is gone is not believed.
fn holder(data_dir: &Path) -> Option<(String, Option<PathBuf>)> {
    let note: Value = serde_json::from_slice(&fs::read(data_dir.join(NOTE)).ok()?).ok()?;
    let alive = local::holder(data_dir)?;
    if note.get("pid").and_then(Value::as_u64).is_some_and(|pid| pid != u64::from(alive)) {
        return None;
    }
    let url = ["url", "address", "server"].iter().map(|key| text(&note, key)).find(|url| !url.is_empty())?;
    let ca = ["caFile", "ca_file", "ca"].iter().map(|key| text(&note, key)).find(|path| !path.is_empty());
    Some((normal(url).ok()?, ca.map(|path| data_dir.join(path))))
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

fn is_loopback(url: &str) -> bool {
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

    #[test]
    fn a_note_of_a_server_that_is_gone_is_not_believed() {
        let dir = tempdir().unwrap();
        let note = r#"{"url": "http://127.0.0.1:9", "pid": 1}"#;
        fs::write(dir.path().join(NOTE), note).unwrap();
        assert!(matches!(find(&reach(None), &Settings::default(), dir.path()).unwrap(), Found::Assumed(_)));
        fs::write(dir.path().join("lock"), "1").unwrap();
        let found = find(&reach(None), &Settings::default(), dir.path()).unwrap();
        assert!(matches!(&found, Found::Holder(endpoint) if endpoint.url == "http://127.0.0.1:9"), "{found:?}");
    }
}
