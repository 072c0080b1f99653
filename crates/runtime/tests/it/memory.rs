//! Memory limits: which tasks exceed one, and whose limit it is.

use std::time::Duration;

use octoflow_model::{
    order::Exit,
    pod::{Member, Part, Pod},
    task::{Task, TaskContainer},
};

use octoflow_runtime::process;

use crate::rig::{Rig, sh, skip};

const MEBIBYTE: u64 = 1024 * 1024;
/// `dd` has a buffer as large as the block it copies.
const LARGE: &str = "dd if=/dev/zero of=/dev/null bs=512M count=1";
const SMALL: &str = "dd if=/dev/zero of=/dev/null bs=20M count=1";

fn limited(script: &str, limit: Option<u64>) -> Task {
    let mut task = sh(script);
    task.main.memory_limit = limit;
    task
}

/// Returns how a task that exceeds its limit ends. Without cgroups only the allocation fails.
fn beyond() -> Exit {
    match process::memory_limits() {
        Ok(_) => Exit::OutOfMemory,
        Err(why) => {
            eprintln!("limits hold for single processes only: {why}");
            Exit::Code(1)
        }
    }
}

fn in_both_isolations(test: impl Fn(&mut Rig)) {
    test(&mut Rig::new());
    test(&mut Rig::plain());
}

pub(crate) fn whoever_wants_more_than_its_limit_fails() {
    in_both_isolations(|rig| {
        let (_, end) = rig.run(limited(&format!("exec {LARGE}"), Some(50 * MEBIBYTE)));
        assert_eq!(end.exit, beyond(), "it is ended, or `dd` says that its memory is exhausted");
    });
}

pub(crate) fn whoever_stays_below_its_limit_succeeds() {
    in_both_isolations(|rig| {
        let (_, end) = rig.run(limited(SMALL, Some(50 * MEBIBYTE)));
        assert_eq!(end.exit, Exit::Code(0));
    });
    // Even the smallest limit leaves a program room to start and to print something.
    let mut rig = Rig::new();
    let (attempt, end) = rig.run(limited("echo here", Some(1)));
    assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "here\n".to_owned()));
}

pub(crate) fn without_a_limit_there_is_none() {
    let mut rig = Rig::new();
    assert_eq!(rig.run(limited(LARGE, None)).1.exit, Exit::Code(0));
    let (attempt, _) = rig.run(limited("ulimit -d", None));
    let (other, _) = rig.run(limited("ulimit -d", Some(u64::MAX)));
    assert_eq!(rig.stdout(attempt), rig.stdout(other), "more than there can be is no limit");
}

pub(crate) fn a_limit_holds_for_a_terminal_too() {
    // The shell stays, because `dd` closes the terminal before it ends.
    let mut task = limited(&format!("{LARGE}; exit $?"), Some(50 * MEBIBYTE));
    task.main.tty = true;
    assert_eq!(Rig::new().run(task).1.exit, beyond());
}

pub(crate) fn a_limit_holds_for_the_children_of_a_process() {
    let mut rig = Rig::new();
    let (attempt, end) = rig.run(limited(&format!("{LARGE} || echo refused"), Some(50 * MEBIBYTE)));
    if process::memory_limits() == Ok(2) {
        assert_eq!(end.exit, Exit::OutOfMemory, "all of a container goes");
        return;
    }
    assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "refused\n".to_owned()));
}

pub(crate) fn a_limit_holds_for_all_processes_of_a_container_together() {
    if let Err(why) = process::memory_limits() {
        return skip(&format!("limits hold for single processes only: {why}"));
    }
    // Each stays far below the limit, and all of them hold their memory at the same time.
    let script = "for i in 1 2 3 4; do dd if=/dev/zero bs=40M count=1 2>/dev/null | sleep 2 & done; wait; exit 1";
    in_both_isolations(|rig| {
        assert_eq!(rig.run(limited(script, Some(100 * MEBIBYTE))).1.exit, Exit::OutOfMemory);
        assert_eq!(rig.run(limited(script, Some(1000 * MEBIBYTE))).1.exit, Exit::Code(1));
    });
}

pub(crate) fn a_limit_is_of_one_container_and_not_of_its_siblings() {
    in_both_isolations(|rig| {
        let members = [("free", None), ("bound", Some(50 * MEBIBYTE)), ("roomy", Some(2048 * MEBIBYTE))];
        let member = |(name, limit): (&str, Option<u64>)| {
            let container = TaskContainer { name: name.to_owned(), ..limited(LARGE, limit).main };
            Member {
                part: Part::Main,
                container,
                files: Vec::new(),
                mounts: Vec::new(),
                after: Vec::new(),
                probe: None,
            }
        };
        let members: Vec<Member> = members.into_iter().map(member).collect();
        let task = Task {
            name: "test".to_owned(),
            main: TaskContainer { name: "main".to_owned(), ..members[0].container.clone() },
            grace: Duration::from_secs(30),
            pod: Some(Box::new(Pod { members, ..Pod::default() })),
            ..Task::default()
        };
        let (_, end) = rig.run(task);
        let exits: Vec<Option<Exit>> = end.members.into_iter().map(|member| member.exit).collect();
        assert_eq!(exits, [Exit::Code(0), beyond(), Exit::Code(0)].map(Some));
        assert_eq!(end.exit, beyond());
    });
}
