//! Processes of this machine: those a test started, and those that were left behind.

use std::{
    fs,
    path::Path,
    process::{Child, Command},
};

use super::waiting::{PATIENCE, within};

/// Sends a signal to a process this test started.
pub(crate) fn signal(child: &Child, name: &str) {
    let told = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(told.expect("kill can be started").success(), "the process was gone already");
}

/// Returns processes that still use the data directory, after a grace period.
pub(crate) fn left_behind(data_dir: &Path) -> Vec<String> {
    let needle = data_dir.display().to_string();
    let mut found = Vec::new();
    within(PATIENCE, || {
        found = naming(&needle);
        found.is_empty()
    });
    found
}

/// All others whose command line or environment says this.
pub(crate) fn naming(needle: &str) -> Vec<String> {
    let numbers = fs::read_dir("/proc")
        .expect("this is Linux")
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok()?.parse::<u32>().ok());
    let told = numbers.filter(|number| *number != std::process::id()).filter_map(|number| {
        let read = |file: &str| {
            fs::read(format!("/proc/{number}/{file}")).map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        };
        let text = format!("{} {}", read("cmdline").ok()?, read("environ").unwrap_or_default());
        text.contains(needle).then(|| format!("{number}: {}", text.chars().take(200).collect::<String>()))
    });
    told.collect()
}
