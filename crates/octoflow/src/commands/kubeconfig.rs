//! `octoflow kubeconfig`: prints what kubectl needs to talk to a server of ours.

use anyhow::{Result, bail};
use serde_json::json;

use crate::{cli::Kubeconfig, exit::Exit, output::Output};

pub(crate) fn kubeconfig(args: &Kubeconfig, output: &Output) -> Result<Exit> {
    let (scheme, host) = match args.server.split_once("://") {
        Some((scheme @ ("http" | "https"), host)) => (scheme, host),
        Some((other, _)) => bail!("the server speaks http or https, not {other}"),
        None => ("http", args.server.as_str()),
    };
    let host = host.trim_end_matches('/');
    if host.is_empty() || host.contains(['@', '/', '?', '#', ' ']) {
        bail!("`{}` is no address of a server; write http://HOST:PORT or https://HOST:PORT", args.server);
    }
    let mut cluster = json!({});
    let mut user = json!({});
    if scheme == "http" {
        // Over plain HTTP kubectl leaves tokens out, but sends what stands before the @.
        cluster["server"] = json!(format!("http://octoflow:{}@{host}", escaped(&args.token)));
    } else {
        cluster["server"] = json!(format!("https://{host}"));
        user["token"] = json!(args.token);
    }
    if let Some(file) = &args.ca_file {
        let path = std::path::absolute(file)?;
        cluster["certificate-authority"] = json!(path);
    } else if args.insecure_skip_verify {
        cluster["insecure-skip-tls-verify"] = json!(true);
    }
    let name = "octoflow";
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {
            "cluster": name, "user": name, "namespace": args.namespace.or_default(),
        }}],
    });
    output.data(&octoflow_manifest::to_yaml(&config))?;
    Ok(Exit::Succeeded)
}

/// What would end the part of an address it stands in is written as percent signs.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
