//! Readiness probes of containers: what a manifest writes becomes the check that a runtime repeats. Nothing is asked here.

use std::time::Duration;

use octoflow_model::pod::{Check, Probe};
use serde::Deserialize;
use serde_json::Value;

/// A probe as Kubernetes writes it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    exec: Option<Exec>,
    http_get: Option<HttpGet>,
    tcp_socket: Option<TcpSocket>,
    initial_delay_seconds: u64,
    period_seconds: Option<u64>,
    timeout_seconds: Option<u64>,
    success_threshold: Option<u32>,
    failure_threshold: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Exec {
    command: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HttpGet {
    path: String,
    port: u16,
    http_headers: Vec<Header>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    name: String,
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TcpSocket {
    port: u16,
}

/// Reads a probe of a container at this address. `Err` is a sentence.
pub(crate) fn read(written: &Value, address: &str) -> Result<Probe, String> {
    let written =
        Written::deserialize(written).map_err(|error| format!("the readinessProbe cannot be read: {error}"))?;
    let seconds =
        |given: Option<u64>, otherwise| Duration::from_secs(given.filter(|given| *given > 0).unwrap_or(otherwise));
    let times = |given: Option<u32>, otherwise| given.filter(|given| *given > 0).unwrap_or(otherwise);
    let address = address.to_owned();
    let check = match (written.exec, written.http_get, written.tcp_socket) {
        (Some(exec), None, None) if !exec.command.is_empty() => Check::Exec { command: exec.command },
        (None, Some(get), None) if get.port > 0 => {
            let path = if get.path.starts_with('/') { get.path } else { format!("/{}", get.path) };
            let headers: Vec<(String, String)> =
                get.http_headers.into_iter().map(|header| (header.name, header.value)).collect();
            let breaks = |text: &str| text.contains(['\r', '\n']);
            if breaks(&path) || headers.iter().any(|(name, value)| name.is_empty() || breaks(name) || breaks(value)) {
                return Err(
                    "the readinessProbe has a path or a header with line breaks, or one without a name".to_owned()
                );
            }
            Check::Http { address, port: get.port, path, headers }
        }
        (None, None, Some(socket)) if socket.port > 0 => Check::Tcp { address, port: socket.port },
        _ => return Err("a readinessProbe needs one of exec.command, httpGet.port and tcpSocket.port".to_owned()),
    };
    Ok(Probe {
        check,
        delay: Duration::from_secs(written.initial_delay_seconds),
        period: seconds(written.period_seconds, 10),
        timeout: seconds(written.timeout_seconds, 1),
        successes: times(written.success_threshold, 1),
        failures: times(written.failure_threshold, 3),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn probes_have_the_defaults_of_kubernetes() {
        let probe = read(&json!({"tcpSocket": {"port": 80}}), "127.1.2.3").unwrap();
        assert_eq!(probe.check, Check::Tcp { address: "127.1.2.3".to_owned(), port: 80 });
        assert_eq!((probe.delay.as_secs(), probe.period.as_secs(), probe.timeout.as_secs()), (0, 10, 1));
        assert_eq!((probe.successes, probe.failures), (1, 3));
        let get = json!({"httpGet": {"port": 1, "path": "ready", "httpHeaders": [{"name": "a", "value": "b"}]}});
        let Check::Http { path, headers, .. } = read(&get, "h").unwrap().check else { panic!("{get}") };
        assert_eq!((path.as_str(), headers), ("/ready", vec![("a".to_owned(), "b".to_owned())]));
    }

    #[test]
    fn a_probe_asks_for_one_thing() {
        let both = json!({"tcpSocket": {"port": 80}, "exec": {"command": ["true"]}});
        for wrong in [json!({}), both, json!({"exec": {"command": []}}), json!({"tcpSocket": {}})] {
            assert!(read(&wrong, "h").is_err(), "{wrong}");
        }
        let header = json!({"httpGet": {"port": 1, "httpHeaders": [{"name": "a", "value": "b\r\nc: d"}]}});
        assert!(read(&header, "h").unwrap_err().contains("line breaks"));
    }
}
