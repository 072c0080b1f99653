//! Arguments of plugins: `--name=value`, `--name value`, or `--name` for a switch.

use std::collections::BTreeMap;

use crate::expr::nearest;

/// Arguments of each plugin with their defaults. Switches have `true` or `false`.
const KNOWN: &[(&str, &[(&str, &str)])] = &[
    ("env", &[]),
    (
        "svc",
        &[("publish-not-ready-addresses", "false"), ("disable-network-policy", "false"), ("inject-hosts-env", "true")],
    ),
    (
        "ssh",
        &[("ssh-key-file-path", "/root/.ssh"), ("ssh-private-key", ""), ("ssh-public-key", ""), ("ssh-port", "22")],
    ),
    (
        "pytorch",
        &[
            ("master", "master"),
            ("worker", "worker"),
            ("port", "23456"),
            ("wait-master-enabled", "false"),
            ("wait-master-timeout", "300"),
            ("wait-master-image", "busybox"),
        ],
    ),
    (
        "tensorflow",
        &[("ps", "ps"), ("worker", "worker"), ("chief", "chief"), ("evaluator", "evaluator"), ("port", "2222")],
    ),
    ("mpi", &[("master", "master"), ("worker", "worker"), ("port", "22")]),
    (
        "ray",
        &[
            ("head", "head"),
            ("headContainer", "head"),
            ("worker", "worker"),
            ("workerContainer", "worker"),
            ("port", "6379"),
            ("dashboardPort", "8265"),
            ("clientPort", "10001"),
        ],
    ),
    ("hcclrank", &[]),
];

/// Arguments whose values are port numbers.
const PORTS: [&str; 4] = ["port", "ssh-port", "dashboardPort", "clientPort"];

/// The arguments of one plugin, defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::dialects::volcano) struct PluginArguments(BTreeMap<String, String>);

impl PluginArguments {
    /// Reads the arguments of a plugin; on error returns what is wrong with them.
    pub(in crate::dialects::volcano) fn read(plugin: &str, arguments: &[String]) -> Result<Self, String> {
        let known = KNOWN.iter().find(|(name, _)| *name == plugin).map_or(&[][..], |(_, known)| known);
        let mut values: BTreeMap<String, String> =
            known.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut left = arguments.iter().map(|argument| argument.trim());
        while let Some(argument) = left.next() {
            let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                return Err(format!("`{argument}` is no argument of plugin {plugin}: it begins with `--`"));
            };
            let (name, given) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
            let Some((_, default)) = known.iter().find(|(known, _)| *known == name) else {
                let near = nearest(name, known.iter().map(|(name, _)| *name));
                let help = near.map(|near| format!("; did you mean --{near}?")).unwrap_or_default();
                return Err(format!("plugin {plugin} has no argument --{name}{help}"));
            };
            let is_switch = matches!(*default, "true" | "false");
            let value = match given {
                Some(value) => value,
                None if is_switch => "true",
                None => left.next().ok_or_else(|| format!("--{name} of plugin {plugin} needs a value"))?,
            };
            if is_switch && !matches!(value, "true" | "false") {
                return Err(format!("--{name} of plugin {plugin} is true or false, not `{value}`"));
            }
            if PORTS.contains(&name) && value.parse::<u16>().map_or(true, |port| port == 0) {
                return Err(format!("--{name} of plugin {plugin} is a port from 1 to 65535, not `{value}`"));
            }
            if name == "wait-master-timeout" && value.parse::<u32>().is_err() {
                return Err(format!("--{name} of plugin {plugin} is a number of seconds, not `{value}`"));
            }
            values.insert(name.to_owned(), value.to_owned());
        }
        Ok(Self(values))
    }

    pub(in crate::dialects::volcano) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name) == "true"
    }
}
