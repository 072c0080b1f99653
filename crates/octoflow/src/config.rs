//! Configuration from flags, then environment, then defaults. Only this file reads the environment.

pub(crate) mod node;
pub(crate) mod settings;
pub(crate) mod system;

use std::{env, ffi::OsString, net::SocketAddr, path::PathBuf};

use anyhow::Result;
use octoflow_control::expire::RetentionPolicy;
use octoflow_runtime::{
    egress::Policy,
    process::hostpath::{HostPaths, NotAbsolute},
};

use crate::exit::Failure;

/// Returns the data directory of this invocation.
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

/// Returns the egress policy: `OCTOFLOW_EGRESS`, else the default for a user's own machine.
pub(crate) fn egress() -> Result<Policy> {
    allowed(env::var("OCTOFLOW_EGRESS").ok().as_deref(), Policy::local)
}

/// Returns the egress policy of a server, which acts for others: public addresses only by default.
pub(crate) fn server_egress() -> Result<Policy> {
    allowed(env::var("OCTOFLOW_EGRESS").ok().as_deref(), Policy::strict)
}

/// Returns the egress policy for plugins and life hooks of a server that listens at this address. Unless
/// `OCTOFLOW_EGRESS` says something, the machine itself may be reached as long as nobody from outside can ask for it.
pub(crate) fn plugin_egress(listen: SocketAddr) -> Result<Policy> {
    plugins_allowed(env::var("OCTOFLOW_EGRESS").ok().as_deref(), listen)
}

fn plugins_allowed(text: Option<&str>, listen: SocketAddr) -> Result<Policy> {
    let alone = listen.ip().to_canonical().is_loopback();
    allowed(text, if alone { Policy::strict_with_loopback } else { Policy::strict })
}

/// Returns the host paths that steps on a server may mount: none by default.
pub(crate) fn host_paths(allowed: &[String]) -> Result<HostPaths> {
    HostPaths::parse(allowed.iter().map(String::as_str)).map_err(|NotAbsolute(word)| {
        Failure::usage(format!("`{word}` cannot be allowed as a hostPath: it is no absolute path"))
            .help("for example: --allow-host-path /srv/data, or OCTOFLOW_ALLOW_HOST_PATH=/srv/data:/mnt/models")
            .into()
    })
}

/// Returns the retention limits of a server: `OCTOFLOW_RETENTION`, else everything is kept for ever.
pub(crate) fn retention() -> Result<RetentionPolicy> {
    let text = env::var("OCTOFLOW_RETENTION").unwrap_or_default();
    text.parse().map_err(|error| Failure::usage(format!("OCTOFLOW_RETENTION cannot be read: {error}")).into())
}

/// Disk limits of steps. By default a share of the disk is kept free.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Disk {
    /// `OCTOFLOW_KEEP_FREE`: with fewer free bytes, logs, artifacts and steps do not write.
    pub keep_free: Option<u64>,
    /// `OCTOFLOW_TASK_DISK_LIMIT`: maximum bytes written by a step without an `ephemeral-storage` limit.
    pub task_limit: Option<u64>,
}

pub(crate) fn disk() -> Result<Disk> {
    let read = |name: &str| bytes(name, env::var(name).ok().as_deref());
    Ok(Disk { keep_free: read("OCTOFLOW_KEEP_FREE")?, task_limit: read("OCTOFLOW_TASK_DISK_LIMIT")? })
}

/// Parses a number of bytes such as `500M` or `2Gi`.
fn bytes(name: &str, text: Option<&str>) -> Result<Option<u64>> {
    const UNITS: [(&str, u64); 9] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("", 1),
    ];
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let read = UNITS.iter().find_map(|(unit, factor)| {
        let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(*factor)
    });
    match read {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(Failure::usage(format!("{name} is not a number of bytes: `{text}`"))
            .help(format!("for example: {name}=512Mi"))
            .into()),
    }
}

fn allowed(text: Option<&str>, otherwise: fn() -> Policy) -> Result<Policy> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(otherwise()) };
    text.parse().map_err(|error| {
        Failure::usage(format!("OCTOFLOW_EGRESS cannot be read: {error}"))
            .help("for example: OCTOFLOW_EGRESS='strict, 10.1.0.0/16, minio.internal, *.corp.example'")
            .into()
    })
}

/// Clap reads `OCTOFLOW_DATA_DIR` as the flag's fallback, so only the user's data home is left here.
fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // By convention a relative data home is ignored.
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

    #[test]
    fn amounts_of_bytes_are_read_or_refused_with_the_name_of_the_setting() {
        let read = |text| bytes("X", text).map_err(|error| error.to_string());
        assert_eq!((read(None), read(Some(" "))), (Ok(None), Ok(None)));
        for (text, expected) in [("0", 0), ("512Mi", 512 << 20), ("2 G", 2_000_000_000), ("7", 7)] {
            assert_eq!(read(Some(text)), Ok(Some(expected)), "{text}");
        }
        for wrong in ["much", "-1", "1.5Gi", "99999999Ti", "Mi"] {
            assert!(read(Some(wrong)).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_may_be_reached_is_configured_or_refused() {
        let local = |text| allowed(text, Policy::local);
        assert_eq!(local(None).unwrap(), Policy::local());
        assert_eq!(local(Some(" ")).unwrap(), Policy::local());
        assert_eq!(local(Some("strict")).unwrap(), Policy::strict());
        assert_eq!(allowed(None, Policy::strict).unwrap(), Policy::strict());
        assert_eq!(allowed(Some("local"), Policy::strict).unwrap(), Policy::local());
        assert!(local(Some("anything goes")).unwrap_err().to_string().contains("OCTOFLOW_EGRESS"));
    }

    #[test]
    fn plugins_on_the_machine_itself_are_for_a_server_that_only_it_can_reach() {
        let may = |text, listen: &str| {
            let policy = plugins_allowed(text, listen.parse().unwrap()).unwrap();
            ["127.0.0.1", "::1", "10.0.0.1", "192.0.2.1"].map(|to| policy.check(to, to.parse().unwrap()).is_ok())
        };
        for inside in ["127.0.0.1:2746", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(may(None, inside), [true, true, false, false], "{inside}");
        }
        for outside in ["0.0.0.0:2746", "[::]:1", "10.0.0.1:1"] {
            assert_eq!(may(None, outside), [false; 4], "{outside}");
        }
        assert_eq!(may(Some("strict"), "127.0.0.1:1"), [false; 4]);
        assert_eq!(may(Some("strict, 127.0.0.1"), "0.0.0.0:1"), [true, false, false, false]);
    }
}
