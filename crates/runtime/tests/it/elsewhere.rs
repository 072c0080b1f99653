//! The same program in other environments: a checkout below `/tmp`, one with spaces in its path, and another user. Each
//! runs a small part of the tests once more, from a copy of this program and with data directories of its own.

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt as _},
    path::Path,
    process::{Command, Stdio},
};

/// Tests of what an environment may change: what tasks see, how they are ended, file ownership.
const PART: &[&str] = &[
    "run::exit_codes_and_signals_are_told_apart",
    "run::a_polite_stop_is_heard",
    "isolation::writes_do_not_reach_the_machine",
    "isolation::the_data_directory_is_hidden",
    "isolation::a_task_sees_and_signals_only_its_own_processes",
    "isolation::everything_a_task_left_is_gone_when_its_end_is_told",
    "isolation::scratch_volumes_are_shared_by_name_and_gone_afterwards",
    "pods::init_containers_run_in_order_before_main",
    "hosts::a_task_sees_the_machines_hosts_and_its_own",
];

/// Uid of `nobody` on every Linux.
const NOBODY: u32 = 65534;

fn run_part(around: &Path, name: &str, user: Option<u32>) {
    let home = tempfile::Builder::new().prefix(name).tempdir_in(around).unwrap();
    let (program, data) = (home.path().join("it"), home.path().join("data"));
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::create_dir(&data).unwrap();
    let mut command = Command::new(&program);
    if let Some(user) = user {
        for path in [home.path(), &program, &data] {
            chown(path, Some(user), Some(user)).unwrap();
        }
        command.uid(user).gid(user);
    }
    let output = command
        .args(["--exact"])
        .args(PART)
        .env("OCTOFLOW_TEST_DIR", &data)
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches(" ... ok").count(), PART.len(), "{said}");
    eprintln!("{said}");
}

pub(crate) fn a_checkout_below_tmp() {
    run_part(Path::new("/tmp"), "checkout-", None);
}

pub(crate) fn a_checkout_with_spaces_in_its_path() {
    run_part(Path::new("/var/tmp"), "a check out-", None);
}

pub(crate) fn another_user() {
    if fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).ok() != Some(0) {
        eprintln!("SKIPPED: only root can become another user; all tests run as an ordinary one here anyway");
        return;
    }
    run_part(Path::new("/var/tmp"), "other-", Some(NOBODY));
}
