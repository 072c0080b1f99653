//! `octoflow kubeconfig`: prints a kubectl configuration for a server of ours.

use anyhow::Result;
use octoflow_server::first_token;
use serde_json::json;

use super::Context;
use crate::{
    cli::Kubeconfig,
    exit::{Exit, Failure},
};

pub(crate) fn kubeconfig(args: &Kubeconfig, context: &Context) -> Result<Exit> {
    let endpoint = context.endpoint()?;
    let (scheme, host) = endpoint.url.split_once("://").unwrap_or(("http", &endpoint.url));
    if host.is_empty() || host.ends_with(':') || host.contains(['@', '/', '?', '#', ' ']) {
        let text =
            format!("`{}` is no address kubectl can use; write http://HOST:PORT or https://HOST:PORT", endpoint.url);
        return Err(Failure::usage(text).into());
    }
    // A server found by its data directory is reached over its socket without a token; kubectl needs one.
    let first = || endpoint.socket.as_ref().and_then(|_| first_token(&context.data_dir));
    let Some(token) = endpoint.token.clone().or_else(first).filter(|token| !token.is_empty()) else {
        let text = format!("say with --token or OCTOFLOW_TOKEN who kubectl is to be at {}", endpoint.url);
        return Err(Failure::usage(text).into());
    };
    let mut cluster = json!({});
    let mut user = json!({});
    if scheme == "http" {
        // Over plain HTTP kubectl does not send tokens, but it sends the credentials in the URL.
        cluster["server"] = json!(format!("http://octoflow:{}@{host}", escaped(&token)));
    } else {
        cluster["server"] = json!(format!("https://{host}"));
        user["token"] = json!(token);
    }
    if let Some(file) = &endpoint.ca_file {
        let path = std::path::absolute(file)?;
        cluster["certificate-authority"] = json!(path);
    } else if endpoint.skip_verify {
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
    context.output.data(&octoflow_manifest::to_yaml(&config))?;
    Ok(Exit::Succeeded)
}

/// Percent-encodes characters that would end the credentials in a URL.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
