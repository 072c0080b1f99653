//! Where things are: flag, then environment, then the user's data home.
//! The environment is read here and handed on; nobody else asks for it.

use std::{env, ffi::OsString, path::PathBuf};

use anyhow::Result;

use crate::exit::Failure;

/// The data directory of this invocation.
pub(crate) fn data_dir(flag: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(dir) = flag {
        return Ok(dir);
    }
    choose(|name| env::var_os(name)).ok_or_else(|| {
        Failure::usage("there is no place for data: neither OCTOFLOW_DATA_DIR nor XDG_DATA_HOME nor HOME is set")
            .help("say where with --data-dir DIR")
            .into()
    })
}

/// `OCTOFLOW_DATA_DIR` reaches clap as the flag's fallback, so only the user's data home is left here.
fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The convention is that a relative data home is ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|home| home.join("octoflow"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Option<PathBuf> {
        choose(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_data_home_is_found_in_the_usual_order() {
        let both = [("XDG_DATA_HOME", "/x"), ("HOME", "/home/me")];
        assert_eq!(chosen(&both), Some("/x/octoflow".into()));
        assert_eq!(chosen(&both[1..]), Some("/home/me/.local/share/octoflow".into()));
        assert_eq!(
            chosen(&[("XDG_DATA_HOME", "relative"), ("HOME", "/home/me")]),
            Some("/home/me/.local/share/octoflow".into())
        );
        assert_eq!(chosen(&[]), None);
    }
}
