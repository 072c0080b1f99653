//! Hosts files of tasks: what tasks see of them, and when the files are deleted.

use std::fs;

use octoflow_model::{
    order::{Exit, Order},
    task::{Mount, MountSource, Task},
};
use octoflow_runtime::port::Runtime as _;

use crate::rig::{Rig, eventually, fresh_dir, sh};

const LINES: &str = "127.1.0.2 worker-0 name-worker-0-0-0\n127.1.0.3 worker-1\n";

fn among(script: &str) -> Task {
    Task { hosts: Some(LINES.into()), ..sh(script) }
}

fn kept(rig: &Rig) -> usize {
    fs::read_dir(rig.data().join("hosts")).map_or(0, Iterator::count)
}

pub(crate) fn a_task_sees_the_machines_hosts_and_its_own() {
    let machine = fs::read_to_string("/etc/hosts").unwrap_or_default();
    for mut rig in [Rig::new(), Rig::plain()] {
        let (attempt, end) = rig.run(among("cat \"$OCTOFLOW_HOSTS_FILE\""));
        let said = rig.stdout(attempt);
        assert_eq!(end.exit, Exit::Code(0));
        assert!(said.starts_with(machine.trim_end()) && said.ends_with(LINES), "{said}");
        if rig.isolated {
            let script =
                "cat /etc/hosts; getent hosts worker-1 || true; echo x 2>/dev/null >> /etc/hosts || echo refused";
            let (attempt, _) = rig.run(among(script));
            let said = rig.stdout(attempt);
            assert!(said.contains(LINES) && said.ends_with("refused\n"), "{said}");
            assert!(!rig.sh("cat /etc/hosts").1.contains("worker-0"), "nobody else sees them");
        }
        assert_eq!(fs::read_to_string("/etc/hosts").unwrap_or_default(), machine, "the machine's own are untouched");
    }
}

pub(crate) fn one_text_is_one_file_and_goes_with_its_last_task() {
    for mut rig in [Rig::new(), Rig::plain()] {
        let attempts: Vec<_> = (0..5).map(|_| rig.start(among("true"))).collect();
        for attempt in &attempts {
            assert_eq!(rig.end(*attempt).exit, Exit::Code(0));
        }
        assert_eq!(kept(&rig), 1);
        rig.runtime().send(attempts.into_iter().map(|attempt| Order::Forget { attempt }).collect());
        assert_eq!(kept(&rig), 0);
    }
}

pub(crate) fn hosts_outlive_the_engine_and_what_nobody_uses_goes() {
    let mut rig = Rig::new();
    let attempt = rig.start(among("sleep 0.5; cat \"$OCTOFLOW_HOSTS_FILE\""));
    rig.started(attempt);
    let mut rig = rig.reopen(false);
    rig.runtime().adopt(vec![(attempt, Box::new(among("not used")))], &[]);
    assert_eq!(kept(&rig), 1);
    rig.end(attempt);
    assert!(rig.stdout(attempt).ends_with(LINES));
    let mut rig = rig.reopen(false);
    rig.runtime().adopt(Vec::new(), &[]);
    eventually("the file to go", || kept(&rig) == 0);
}

pub(crate) fn a_hosts_file_of_the_tasks_own_stays_and_the_others_are_beside_it() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let mut task = among("cat /etc/hosts; cat \"$OCTOFLOW_HOSTS_FILE\"");
    let own = fresh_dir();
    fs::write(own.path().join("hosts"), "own\n").unwrap();
    let source = MountSource::Host { path: own.path().join("hosts").display().to_string() };
    task.mounts.push(Mount { path: "/etc/hosts".to_owned(), source, sub_path: None, read_only: true });
    let (attempt, end) = rig.run(task);
    let said = rig.stdout(attempt);
    assert!(end.exit == Exit::Code(0) && said.starts_with("own\n") && said.ends_with(LINES), "{said}");
}
