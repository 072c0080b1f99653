//! The settings file: names with values, as JSON. Flags and the environment take precedence.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{exit::Failure, load::names};

/// All settings, with their meaning.
pub(crate) const KEYS: [(&str, &str); 4] = [
    ("server", "the address of the server"),
    ("token", "who you are to it"),
    ("ca-file", "the certificate its own is checked against"),
    ("insecure-skip-verify", "`true` trusts any certificate"),
];

#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<String, String>,
}

impl Settings {
    /// Loads the settings; without a file nothing is set.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Self::default());
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        };
        let values = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::usage(format!("`{}` cannot be read: {error}", path.display()))
                .help("it holds one JSON object with texts as values; delete it to begin anew")
        })?;
        Ok(Self { values })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Changes a setting; an empty value removes it.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if !KEYS.iter().any(|(known, _)| *known == key) {
            let known = KEYS.map(|(known, _)| known);
            let help = names::suggestion(key, known).unwrap_or_else(|| format!("there are {}", known.join(", ")));
            return Err(Failure::usage(format!("there is no setting `{key}`")).help(help).into());
        }
        if key == "insecure-skip-verify" && !matches!(value, "" | "true" | "false") {
            return Err(Failure::usage("insecure-skip-verify is `true` or `false`").into());
        }
        if value.is_empty() {
            self.values.remove(key);
        } else {
            self.values.insert(key.to_owned(), value.to_owned());
        }
        Ok(())
    }

    /// Saves the settings, readable by the owner only, because they may hold a token.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let kept = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let fresh = path.with_extension("json.new");
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
            serde_json::to_writer_pretty(&mut file, &self.values)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&fresh, path)
        };
        kept().with_context(|| format!("cannot write `{}`", path.display()))
    }
}

/// Returns the path of the settings: `OCTOFLOW_CONFIG`, else the user's configuration home.
pub(crate) fn path() -> Option<PathBuf> {
    choose(|name| env::var_os(name))
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(file) = variable("OCTOFLOW_CONFIG").filter(|file| !file.is_empty()) {
        return Some(file.into());
    }
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(home.join("octoflow/config.json"))
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    #[test]
    fn settings_survive_the_disk_and_unknown_ones_are_refused() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("a/config.json");
        let mut settings = Settings::load(&path).unwrap();
        settings.set("server", "http://x").unwrap();
        settings.set("token", "t").unwrap();
        settings.set("token", "").unwrap();
        settings.save(&path).unwrap();
        let again = Settings::load(&path).unwrap();
        assert_eq!((again.get("server"), again.get("token")), (Some("http://x"), None));
        let refused = settings.set("sever", "x").unwrap_err();
        assert_eq!(refused.downcast_ref::<Failure>().unwrap().advice(), Some("did you mean `server`?"));
        fs::write(&path, "[]").unwrap();
        assert!(Settings::load(&path).is_err());
    }

    #[test]
    fn the_file_is_in_the_usual_place() {
        let at = |pairs: &[(&str, &str)]| {
            choose(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        assert_eq!(at(&[("HOME", "/h")]), Some("/h/.config/octoflow/config.json".into()));
        assert_eq!(at(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")]), Some("/c/octoflow/config.json".into()));
        assert_eq!(at(&[("OCTOFLOW_CONFIG", "f"), ("HOME", "/h")]), Some("f".into()));
        assert_eq!(at(&[]), None);
    }
}
