//! Termination messages: where they are looked for, how they are cut, and what survives an engine.

use octoflow_model::{
    order::{End, Exit},
    pod::{Member, Part, Pod},
    task::{Mount, MountSource, Task, TerminationMessage, WantedOutputs},
};
use octoflow_runtime::port::Runtime as _;

use crate::rig::{Rig, command, eventually, fresh_dir, sh, skip, spawner_of};

const LOG: &str = "/dev/termination-log";

fn asked_at(path: &str, script: &str) -> Task {
    let message = Some(TerminationMessage { path: Some(path.to_owned()), tail: true });
    Task { wanted: WantedOutputs { message, ..WantedOutputs::default() }, ..sh(script) }
}

fn asked(script: &str) -> Task {
    asked_at(LOG, script)
}

fn message(rig: &mut Rig, task: Task) -> Option<String> {
    rig.run(task).1.collected.message
}

fn isolated() -> Option<Rig> {
    let rig = Rig::new();
    if !rig.isolated {
        skip("this machine refuses isolation");
    }
    rig.isolated.then_some(rig)
}

pub(crate) fn what_is_written_into_the_file_is_the_message() {
    let Some(mut rig) = isolated() else { return };
    for path in [LOG, "/dev/deep/down/log", "/dev/shm/log", "/tmp/new/log", "/var/words", "/etc/hostname"] {
        for exit in [0, 3] {
            let script = format!("test -f {path} && ! test -s {path} && echo why > {path}; echo noise; exit {exit}");
            assert_eq!(message(&mut rig, asked_at(path, &script)).as_deref(), Some("why\n"), "{path}");
        }
        assert_eq!(message(&mut rig, asked_at(path, "true")), None, "{path}: the next task finds it empty");
    }
    assert!(!std::path::Path::new(LOG).exists(), "nothing reaches the machine");
    let long = message(&mut rig, asked(&format!("head -c 5000 /dev/zero | tr '\\0' x > {LOG}"))).unwrap();
    assert_eq!(long.len(), 4096);
}

pub(crate) fn a_volume_around_the_file_keeps_what_is_in_it() {
    let Some(mut rig) = isolated() else { return };
    let own = fresh_dir();
    std::fs::write(own.path().join("log"), "of others").unwrap();
    let source = MountSource::Host { path: own.path().display().to_string() };
    let mount = Mount { path: "/vol".to_owned(), source, sub_path: None, read_only: false };
    let task = |script: &str| Task { mounts: vec![mount.clone()], ..asked_at("/vol/log", script) };
    assert_eq!(message(&mut rig, task("true")), None);
    assert_eq!(message(&mut rig, task("echo mine > /vol/log")).as_deref(), Some("mine\n"));
    assert_eq!(std::fs::read_to_string(own.path().join("log")).unwrap(), "of others");
}

pub(crate) fn a_bad_end_without_a_message_tells_the_end_of_the_output() {
    for mut rig in [Rig::new(), Rig::plain()] {
        let both = "echo out; sleep 0.05; echo err >&2; exit 3";
        assert_eq!(message(&mut rig, asked(both)).as_deref(), Some("out\nerr\n"));
        assert_eq!(message(&mut rig, asked("echo hit; kill -9 $$")).as_deref(), Some("hit\n"));
        assert_eq!(message(&mut rig, asked("echo fine")), None);
        assert_eq!(message(&mut rig, asked("exit 3")), None, "who said nothing has no last words");
        let loud = message(&mut rig, asked("seq 1 100000; exit 1")).unwrap();
        assert!(loud.lines().count() == 80 && loud.ends_with("\n100000\n"), "{loud}");
        let long = message(&mut rig, asked("head -c 3000000 /dev/zero | tr '\\0' x; exit 1")).unwrap();
        assert_eq!(long.len(), 2048);
        let mut silent = asked("echo out; exit 3");
        silent.wanted.message = Some(TerminationMessage { path: Some(LOG.to_owned()), tail: false });
        assert_eq!(message(&mut rig, silent), None);
        let missing = Task { wanted: asked("").wanted, ..command(&["no-such-program"]) };
        let (_, end) = rig.run(missing);
        assert!(matches!(end.exit, Exit::NotStarted(_)) && end.collected.message.is_none());
    }
}

pub(crate) fn whoever_does_not_ask_gets_no_message() {
    let mut rig = Rig::new();
    assert_eq!(message(&mut rig, sh("echo out; exit 3")), None);
}

pub(crate) fn devices_work_beside_the_file() {
    let Some(mut rig) = isolated() else { return };
    let script = "
        test -c /dev/null && test -c /dev/zero && echo x > /dev/null && head -c 3 /dev/zero | wc -c
        touch /dev/other 2>/dev/null || echo refused
        echo y > /dev/shm/y && cat /dev/shm/y
        echo through > /dev/stdout
        ls /dev > /tmp/ours; test $(wc -l < /tmp/ours) -gt 5 && echo devices
        if command -v script > /dev/null; then script -qec 'echo terminal' /dev/null; else echo terminal; fi";
    let (attempt, end) = rig.run(asked(script));
    assert_eq!(end.exit, Exit::Code(0));
    let said = rig.stdout(attempt);
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["3", "refused", "y", "through", "devices", "terminal"]);
    let mut terminal = asked("tty; test -t 1 && echo x > /dev/tty");
    terminal.main.tty = true;
    assert_eq!(rig.run(terminal).1.exit, Exit::Code(0));
}

fn several(members: &[(Part, &str, &str)]) -> Task {
    let member = |(part, name, script): &(Part, &str, &str)| {
        let mut container = sh(script).main;
        container.name = (*name).to_owned();
        Member { part: *part, container, files: Vec::new(), mounts: Vec::new(), after: Vec::new(), probe: None }
    };
    let members: Vec<Member> = members.iter().map(member).collect();
    let mut task = asked("");
    task.main = members.iter().find(|member| member.part == Part::Main).unwrap().container.clone();
    task.pod = Some(Box::new(Pod { members, ..Pod::default() }));
    task
}

pub(crate) fn the_message_of_several_containers_is_that_of_the_main_one() {
    for mut rig in [Rig::new(), Rig::plain()] {
        let mains = [
            (Part::Main, "worker", "echo mine; exit 3"),
            (Part::Main, "helper", "echo other; exit 4"),
            (Part::Sidecar, "side", "echo beside; exec sleep 1000"),
        ];
        let (_, end) = rig.run(several(&mains));
        assert_eq!((end.exit, end.collected.message.as_deref()), (Exit::Code(3), Some("mine\n")));
        let well = [(Part::Main, "worker", "echo mine"), (Part::Main, "helper", "echo other; exit 4")];
        assert_eq!(message(&mut rig, several(&well)), None, "the main one ended well");
        let before = [(Part::Init, "before", "echo no; exit 2"), (Part::Main, "worker", "echo mine")];
        assert_eq!(message(&mut rig, several(&before)), None, "the main one never spoke");
        if rig.isolated {
            let written = format!("echo why > {LOG}; exit 3");
            let mains = [(Part::Main, "worker", written.as_str()), (Part::Main, "helper", "sleep 0.1")];
            assert_eq!(message(&mut rig, several(&mains)).as_deref(), Some("why\n"));
        }
    }
}

fn checks(end: &End, message: &str) {
    assert_eq!((end.exit.clone(), end.collected.message.as_deref()), (Exit::Code(3), Some(message)));
}

/// Messages of tasks that end without a connected engine: found by an engine of the same spawner, and by one of the
/// next.
pub(crate) fn last_words_outlive_the_engine() {
    for leave in [false, true] {
        let Some(mut rig) = isolated() else { return };
        let gate = fresh_dir();
        let open = gate.path().join("open");
        let source = MountSource::Host { path: gate.path().display().to_string() };
        let mount = Mount { path: "/gate".to_owned(), source, sub_path: None, read_only: true };
        let task = |how: &str| Task {
            mounts: vec![mount.clone()],
            ..asked(&format!("until [ -e /gate/open ]; do sleep 0.02; done; {how}; exit 3"))
        };
        let (written, spoken) = (format!("echo why > {LOG}"), "echo said");
        let attempts = [rig.start(task(&written)), rig.start(task(spoken))];
        // One that stays keeps the spawner from exiting.
        let stays = rig.start(sh(if leave { "true" } else { "exec sleep 1000" }));
        attempts.iter().for_each(|attempt| rig.started(*attempt));
        rig.started(stays);
        let data = rig.data();
        drop(rig.runtime.take());
        std::fs::write(&open, "").unwrap();
        if leave {
            eventually("the spawner to go", || spawner_of(&data).is_empty());
        }
        let mut rig = Rig::in_dir(std::sync::Arc::clone(&rig.dir), |_| {});
        let believed = attempts.iter().zip([&*written, spoken]).map(|(at, how)| (*at, Box::new(task(how))));
        rig.runtime().adopt(believed.collect(), &[]);
        checks(&rig.end(attempts[0]), "why\n");
        checks(&rig.end(attempts[1]), "said\n");
    }
}
