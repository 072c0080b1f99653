//! Hera, the real one, against the real server. `cargo xtask setup` installs it where these tests look.

use std::{env, path::PathBuf, process::Command};

use crate::host::Host;

#[test]
fn hera_submits_waits_reads_and_steers() {
    let Some(python) = python() else { return };
    let host = Host::start();
    let said = Command::new(python)
        .arg("-u")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/argo/drive.py"))
        .arg(format!("http://{}", host.server.address))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(said.status.success(), "{}\n{}", text(&said.stdout), text(&said.stderr));
    assert!(text(&said.stdout).ends_with("everything went well\n"), "{}", text(&said.stdout));
}

/// Finds a Python that has Hera. Outside of CI its absence is reported and the test passes.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should see what they did not do")]
fn python() -> Option<PathBuf> {
    let var = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = var("OCTOFLOW_CI_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|dir| dir.join("octoflow-ci")))
        .or_else(|| var("HOME").map(|dir| dir.join(".cache/octoflow-ci")));
    let hera = cache.map(|dir| dir.join("tools/hera")).filter(|hera| hera.join("ready").is_file());
    let python = hera.map(|hera| hera.join("bin/python"));
    if python.is_none() {
        let told = "SKIPPED: Hera is not installed, so nobody checks that it works; run `cargo xtask setup`";
        assert_ne!(env::var("CI").as_deref(), Ok("true"), "{told}");
        eprintln!("{told}");
    }
    python
}
