//! Processes: output, exits, signals, environment.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{
    order::{Exit, Order},
    task::{EnvValue, Task},
};
use octoflow_runtime::{logs::Stream, port::Runtime as _, process::Isolation};

use crate::rig::{Rig, command, eventually, processes_with, sh};

fn in_both_isolations(test: impl Fn(&mut Rig)) {
    test(&mut Rig::new());
    test(&mut Rig::plain());
}

pub(crate) fn both_streams_come_back_byte_for_byte() {
    in_both_isolations(|rig| {
        let (attempt, end) = rig.run(sh(r"printf 'a\0b\377\n\n'; printf 'err \001' >&2; printf tail"));
        assert_eq!(end.exit, Exit::Code(0));
        assert_eq!(rig.stream(attempt, Stream::Stdout), b"a\0b\xff\n\ntail");
        assert_eq!(rig.stream(attempt, Stream::Stderr), b"err \x01");
        assert!(end.started.is_some() && !end.log_truncated);
    });
}

pub(crate) fn exit_codes_and_signals_are_told_apart() {
    in_both_isolations(|rig| {
        assert_eq!(rig.sh("exit 0").0, Exit::Code(0));
        assert_eq!(rig.sh("exit 137").0, Exit::Code(137));
        assert_eq!(rig.sh("kill -9 $$").0, Exit::Signal(9));
        assert_eq!(rig.sh("kill -TERM $$").0, Exit::Signal(15));
        assert_eq!(rig.sh("kill -PIPE $$").0, Exit::Signal(13), "nothing of ours is ignored in the task");
    });
}

pub(crate) fn a_program_that_is_not_there_is_named() {
    in_both_isolations(|rig| {
        let exit = |rig: &mut Rig, words: &[&str]| rig.run(command(words)).1.exit;
        let not_found = "exec: \"no-such-program\": executable file not found in $PATH".to_owned();
        assert_eq!(exit(rig, &["no-such-program", "x"]), Exit::NotStarted(not_found));
        let no_file = "exec: \"/no/such\": stat /no/such: no such file or directory".to_owned();
        assert_eq!(exit(rig, &["/no/such"]), Exit::NotStarted(no_file));
        let denied = "exec: \"/etc/passwd\": permission denied".to_owned();
        assert_eq!(exit(rig, &["/etc/passwd"]), Exit::NotStarted(denied));
        assert!(matches!(exit(rig, &["a\0b"]), Exit::NotStarted(why) if why.contains("NUL")));
        let mut task = command(&["true"]);
        task.main.env = vec![("PATH".to_owned(), EnvValue::Plain("/nowhere".to_owned()))];
        assert!(matches!(rig.run(task).1.exit, Exit::NotStarted(_)), "the container's own PATH counts");
    });
}

pub(crate) fn an_unknown_image_without_a_command_is_explained() {
    let entrypoints = BTreeMap::from([("mine".to_owned(), vec!["echo".to_owned(), "configured".to_owned()])]);
    let mut rig = Rig::with(|config| config.entrypoints = entrypoints);
    let image = |image: &str, args: &[&str]| {
        let mut task = command(&[]);
        task.main.image = image.to_owned();
        task.main.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        task
    };
    let (_, end) = rig.run(image("registry.example/what:1", &[]));
    assert!(matches!(end.exit, Exit::NotStarted(why) if why.contains("set `command`")));
    assert!(end.started.is_none());
    let (attempt, end) = rig.run(image("mine:v2", &["more"]));
    assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "configured more\n".to_owned()));
    let (attempt, end) = rig.run(image("busybox", &["-c", "echo $0 hi"]));
    assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "sh hi\n".to_owned()));
}

pub(crate) fn the_environment_is_the_list_and_the_container() {
    // The runner (nextest, cargo) sets CARGO_* for us; none of it may reach a task.
    in_both_isolations(|rig| {
        let mut task = command(&["env"]);
        task.main.env = vec![
            ("HOME".to_owned(), EnvValue::Plain("/my home".to_owned())),
            ("TOKEN".to_owned(), EnvValue::Secret("s3cret".to_owned())),
        ];
        let (attempt, _) = rig.run(task);
        let stdout = rig.stdout(attempt);
        let names: Vec<&str> = stdout.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
        assert!(stdout.contains("HOME=/my home\n") && stdout.contains("TOKEN=s3cret\n"));
        assert!(names.contains(&"PATH") && names.contains(&"OCTOFLOW_ATTEMPT"));
        assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    });
}

pub(crate) fn the_working_directory_is_made_when_it_is_missing() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let within = |dir: &str| {
        let mut task = command(&["pwd"]);
        task.main.working_dir = Some(dir.to_owned());
        task
    };
    let (attempt, end) = rig.run(within("/tmp/new/dir"));
    assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "/tmp/new/dir\n".to_owned()));
    let (attempt, _) = rig.run(command(&["pwd"]));
    assert_eq!(rig.stdout(attempt), "/\n");
    let (_, end) = rig.run(within("/etc/passwd"));
    assert!(matches!(end.exit, Exit::NotStarted(why) if why.contains("/etc/passwd")));
    let (_, end) = Rig::plain().run(within("/no/such/dir"));
    assert!(matches!(end.exit, Exit::NotStarted(why) if why.contains("does not exist")));
}

/// Prints a line once its traps are set, so that a signal cannot come too early.
fn trapping(trap: &str) -> Task {
    sh(&format!("{trap}; echo ready; while :; do sleep 0.05; done"))
}

fn wait_until_ready(rig: &Rig, attempt: octoflow_model::ids::AttemptId) {
    eventually("the task to be ready", || rig.stream(attempt, Stream::Stdout) == b"ready\n");
}

pub(crate) fn a_polite_stop_is_heard() {
    in_both_isolations(|rig| {
        let attempt = rig.start(trapping("trap 'exit 7' TERM"));
        wait_until_ready(rig, attempt);
        rig.runtime().send(vec![Order::Stop { attempt }]);
        assert_eq!(rig.end(attempt).exit, Exit::Code(7));
        let attempt = rig.start(command(&["sleep", "1000"]));
        rig.started(attempt);
        rig.runtime().send(vec![Order::Stop { attempt }]);
        assert_eq!(rig.end(attempt).exit, Exit::Signal(15));
    });
}

pub(crate) fn whoever_ignores_the_polite_signal_is_killed_after_the_grace() {
    let mut rig = Rig::new();
    let mut task = trapping("trap '' TERM");
    task.grace = Duration::from_millis(50);
    let attempt = rig.start(task);
    wait_until_ready(&rig, attempt);
    rig.runtime().send(vec![Order::Stop { attempt }]);
    assert_eq!(rig.end(attempt).exit, Exit::Signal(9));
}

pub(crate) fn a_kill_is_at_once() {
    let mut rig = Rig::new();
    let attempt = rig.start(trapping("trap '' TERM"));
    wait_until_ready(&rig, attempt);
    rig.runtime().send(vec![Order::Stop { attempt }, Order::Kill { attempt }]);
    assert_eq!(rig.end(attempt).exit, Exit::Signal(9));
}

pub(crate) fn a_background_process_does_not_outlive_its_task() {
    in_both_isolations(|rig| {
        let mark = format!("77{}", rig.data().to_string_lossy().len() + std::process::id() as usize);
        let (exit, stdout) = rig.sh(&format!("sleep {mark} & echo done"));
        assert_eq!((exit, stdout.as_str()), (Exit::Code(0), "done\n"));
        assert!(processes_with(&format!("sleep\0{mark}\0")).is_empty());
    });
}

pub(crate) fn a_daemon_that_left_the_group_does_not_outlive_its_task() {
    in_both_isolations(|rig| {
        let mark = format!("88{}", rig.data().to_string_lossy().len() + std::process::id() as usize);
        let script = format!(
            "setsid sh -c 'setsid env -i sleep {mark} & env -i sleep {mark} & sleep {mark}' >/dev/null 2>&1 &
             while [ $(grep -lsxz {mark} /proc/[0-9]*/cmdline | wc -l) -lt 3 ]; do sleep 0.01; done; echo up"
        );
        let (exit, stdout) = rig.sh(&script);
        assert_eq!((exit, stdout.as_str()), (Exit::Code(0), "up\n"));
        eventually("the daemons to die", || processes_with(&format!("sleep\0{mark}\0")).is_empty());
    });
}

pub(crate) fn a_start_sent_twice_runs_once() {
    let mut rig = Rig::new();
    let attempt = rig.attempt();
    let start = || Order::Start { attempt, task: Box::new(sh("echo once")) };
    rig.runtime().send(vec![start(), start()]);
    rig.end(attempt);
    rig.runtime().send(vec![start()]);
    let other = rig.start(sh("true"));
    rig.end(other);
    assert_eq!(rig.stdout(attempt), "once\n");
}

pub(crate) fn a_terminal_is_given_when_wanted() {
    in_both_isolations(|rig| {
        let script = "test -t 0 && test -t 1 && test -t 2 && echo yes || echo no; cat";
        let mut task = sh("test -t 0 && test -t 1 && test -t 2 && echo yes");
        task.main.tty = true;
        let (attempt, end) = rig.run(task);
        assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "yes\r\n".to_owned()));
        assert_eq!(rig.sh(script).1, "no\n", "and standard input is empty otherwise");
    });
}

pub(crate) fn whoever_lets_go_of_its_terminal_is_not_hung_up() {
    in_both_isolations(|rig| {
        let mut task = sh("echo here; exec 0<&- 1>&- 2>&-; sleep 0.2; exit 3");
        task.main.tty = true;
        let (attempt, end) = rig.run(task);
        assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(3), "here\r\n".to_owned()));
    });
}

pub(crate) fn the_log_limit_cuts_and_the_task_goes_on() {
    let mut rig = Rig::with(|config| config.log_limit = 100_000);
    let (attempt, end) = rig.run(sh("head -c 5000000 /dev/zero && echo fine >&2"));
    assert_eq!(end.exit, Exit::Code(0));
    assert!(end.log_truncated);
    let kept = rig.stream(attempt, Stream::Stdout).len();
    assert!((90_000..=100_000).contains(&kept), "{kept}");
    assert!(!rig.stream(attempt, Stream::Note).is_empty());
}

pub(crate) fn a_mebibyte_on_each_stream_arrives_whole() {
    let mut rig = Rig::new();
    let script = "head -c 1048577 /dev/zero | tr '\\0' o & head -c 1048579 /dev/zero | tr '\\0' e >&2; wait";
    let (attempt, _) = rig.run(sh(script));
    let (out, err) = (rig.stream(attempt, Stream::Stdout), rig.stream(attempt, Stream::Stderr));
    assert!(out.len() == 1_048_577 && out.iter().all(|byte| *byte == b'o'));
    assert!(err.len() == 1_048_579 && err.iter().all(|byte| *byte == b'e'));
}

pub(crate) fn many_tasks_at_once_all_end() {
    for isolation in [Isolation::Overlay, Isolation::None] {
        let mut rig = Rig::with(|config| config.isolation = isolation);
        let attempts: Vec<_> = (0..200).map(|number| rig.start(sh(&format!("echo {number}")))).collect();
        for (number, attempt) in attempts.into_iter().enumerate() {
            assert_eq!(rig.end(attempt).exit, Exit::Code(0));
            assert_eq!(rig.stdout(attempt), format!("{number}\n"));
            rig.runtime().send(vec![Order::Forget { attempt }]);
        }
    }
}

pub(crate) fn sh_understands_what_bash_and_busybox_understand() {
    if !std::path::Path::new("/bin/bash").exists() {
        return;
    }
    let (exit, stdout) = Rig::new().sh("[[ abc == a* ]] && echo $0");
    assert_eq!((exit, stdout.as_str()), (Exit::Code(0), "sh\n"));
}
