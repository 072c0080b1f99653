//! The node view: this machine, its resources, and how much of them runs may use.

use std::{env::consts, fs};

use serde_json::{Value, json};

use super::{Registry, uid};
use crate::objects::known;

impl Registry {
    pub(super) fn node(&self) -> Value {
        let capacity = self.controller().capacity();
        let host = known::host().unwrap_or_else(|| "localhost".to_owned());
        let name = dns(&host);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = memory_kib().map(|kib| format!("{kib}Ki"));
        let began = self.controller().opened().to_string();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let arch = match consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let slots = capacity.slots.to_string();
        let allowed = json!({
            "cpu": format!("{}m", capacity.cpu_milli), "memory": capacity.memory_bytes.to_string(), "pods": slots,
        });
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "uid": uid(&[&host, machine.trim(), "node"]), "resourceVersion": "1",
                "creationTimestamp": began,
                "labels": {
                    "kubernetes.io/hostname": name, "kubernetes.io/os": consts::OS, "kubernetes.io/arch": arch,
                    "node.kubernetes.io/instance-type": "octoflow",
                },
            },
            "spec": {},
            "status": {
                "capacity": {
                    "cpu": cpus.to_string(),
                    "memory": memory.unwrap_or_else(|| capacity.memory_bytes.to_string()),
                    "pods": slots,
                },
                "allocatable": allowed,
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "EngineReady", "message": "the engine takes work",
                    "lastHeartbeatTime": crate::now().to_string(), "lastTransitionTime": began,
                }],
                "addresses": [{"type": "Hostname", "address": host}, {"type": "InternalIP", "address": "127.0.0.1"}],
                "nodeInfo": {
                    "architecture": arch, "operatingSystem": consts::OS, "kernelVersion": kernel.trim(),
                    "machineID": machine.trim(), "systemUUID": "", "bootID": "", "osImage": consts::OS,
                    "containerRuntimeVersion": concat!("octoflow://", env!("CARGO_PKG_VERSION")),
                    "kubeletVersion": concat!("v", env!("CARGO_PKG_VERSION")),
                    "kubeProxyVersion": concat!("v", env!("CARGO_PKG_VERSION")),
                },
            },
        })
    }
}

fn memory_kib() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Turns a host name into a valid object name.
fn dns(host: &str) -> String {
    let letters = host.chars().map(|letter| letter.to_ascii_lowercase());
    let name: String =
        letters.map(|letter| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' }).collect();
    let name = name.trim_matches(['-', '.']).to_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
