//! The environment of a task: a short list from the engine's own, then the container's variables. Nothing else of the
//! engine's environment ever reaches a task.

use octoflow_model::task::EnvValue;

/// Variables inherited from the engine's environment if they are set.
pub const INHERITED: [&str; 15] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
];

/// Prefix of further variables that are inherited.
pub const INHERITED_PREFIX: &str = "LC_";

/// `PATH` if none is set anywhere.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Inherited variables, computed once.
#[derive(Clone, Debug)]
pub(crate) struct BaseEnvironment {
    variables: Vec<(String, String)>,
}

impl BaseEnvironment {
    /// Takes the inherited variables from `own`. `path` replaces the engine's `PATH`; `extra` is put in front of
    /// either.
    pub(crate) fn new(own: impl IntoIterator<Item = (String, String)>, path: Option<&str>, extra: &[String]) -> Self {
        let mut variables: Vec<(String, String)> = own
            .into_iter()
            .filter(|(name, _)| INHERITED.contains(&name.as_str()) || name.starts_with(INHERITED_PREFIX))
            .collect();
        let own_path = variables.iter().position(|(name, _)| name == "PATH").map(|at| variables.remove(at).1);
        let path = path.map(str::to_owned).or(own_path).unwrap_or_else(|| DEFAULT_PATH.to_owned());
        let whole = extra.iter().map(String::as_str).chain([path.as_str()]).collect::<Vec<_>>().join(":");
        variables.push(("PATH".to_owned(), whole));
        variables.sort();
        Self { variables }
    }

    /// Returns the whole environment as `NAME=value`, and the `PATH` in it. Later values win.
    pub(crate) fn with(&self, own: &[(String, String)], container: &[(String, EnvValue)]) -> (Vec<String>, String) {
        let mut all: Vec<(&str, &str)> = self.variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        let own = own.iter().map(|(name, value)| (&**name, &**value));
        for (name, value) in own.chain(container.iter().map(|(name, value)| (&**name, value.reveal()))) {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) => entry.1 = value,
                None => all.push((name, value)),
            }
        }
        let path = all.iter().find(|(name, _)| *name == "PATH").map_or(DEFAULT_PATH, |(_, value)| value).to_owned();
        (all.iter().map(|(name, value)| format!("{name}={value}")).collect(), path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn only_the_list_is_inherited_and_the_container_wins() {
        let own = [pair("AWS_SECRET", "x"), pair("HOME", "/h"), pair("LC_ALL", "C"), pair("PATH", "/bin")];
        let base = BaseEnvironment::new(own, None, &["/extra".to_owned()]);
        let container =
            [("HOME".to_owned(), EnvValue::Plain("/c".to_owned())), ("S".to_owned(), EnvValue::Secret("s".to_owned()))];
        let (all, path) = base.with(&[pair("TMPDIR", "/t")], &container);
        assert_eq!(all, ["HOME=/c", "LC_ALL=C", "PATH=/extra:/bin", "TMPDIR=/t", "S=s"]);
        assert_eq!(path, "/extra:/bin");
    }

    #[test]
    fn there_is_always_a_path() {
        let (all, path) = BaseEnvironment::new([], None, &[]).with(&[], &[]);
        assert_eq!(all, [format!("PATH={DEFAULT_PATH}")]);
        assert_eq!(path, DEFAULT_PATH);
    }
}
