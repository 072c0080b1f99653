//! What a task may see and change. Where the machine refuses isolation these tests have nothing to check and say so; in CI
//! that is a failure.

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt, path::Path};

use octoflow_model::{
    order::{End, Exit, Order},
    task::{ArtifactInput, ArtifactSource, File, Mount, MountSource, Task},
};
use octoflow_runtime::{
    port::Runtime as _,
    process::{Config, hostpath::HostPaths},
};

use crate::rig::{Rig, command, eventually, fresh_dir, processes_with, sh, skip, spawner_of};

fn isolated() -> Option<Rig> {
    isolated_with(|_| {})
}

fn isolated_with(change: impl FnOnce(&mut Config)) -> Option<Rig> {
    let rig = Rig::with(change);
    if !rig.isolated {
        skip("this machine refuses isolation");
    }
    rig.isolated.then_some(rig)
}

fn mount(path: &str, source: MountSource) -> Mount {
    Mount { path: path.to_owned(), source, sub_path: None, read_only: false }
}

fn claim(name: &str) -> MountSource {
    MountSource::Claim { namespace: "default".to_owned(), name: name.to_owned() }
}

fn with_mounts(script: &str, mounts: Vec<Mount>) -> Task {
    Task { mounts, ..sh(script) }
}

pub(crate) fn two_tasks_never_meet_in_tmp() {
    let Some(mut rig) = isolated() else { return };
    let name = format!("/tmp/meeting-{}", std::process::id());
    fs::write(format!("{name}-host"), "host").unwrap();
    let script = |own: &str| {
        sh(&format!("ls /tmp; echo {own} > {name}; until [ -e {name} ]; do :; done; sleep 0.1; cat {name}"))
    };
    let (first, second) = (rig.start(script("one")), rig.start(script("two")));
    rig.end(first);
    rig.end(second);
    assert_eq!(rig.stdout(first), "one\n", "and the machine's own /tmp is not to be seen");
    assert_eq!(rig.stdout(second), "two\n");
    assert!(!Path::new(&name).exists());
    fs::remove_file(format!("{name}-host")).unwrap();
}

pub(crate) fn writes_do_not_reach_the_machine() {
    let own = fresh_dir();
    let Some(mut rig) = isolated_with(|config| config.visible = vec![own.path().to_owned()]) else { return };
    let name = format!("octoflow-test-{}", std::process::id());
    let script = format!("mkdir -p /mnt/{name}/a && echo x > /mnt/{name}/a/b && cat /mnt/{name}/a/b");
    assert_eq!(rig.sh(&script), (Exit::Code(0), "x\n".to_owned()));
    assert!(!Path::new("/mnt").join(&name).exists());
    fs::write(own.path().join("kept"), "old").unwrap();
    let dir = own.path().display();
    let script = format!("cd '{dir}'; cat kept; echo new > kept; rm kept; touch other");
    assert_eq!(rig.sh(&script).1, "old");
    assert_eq!(fs::read_to_string(own.path().join("kept")).unwrap(), "old");
    assert!(!own.path().join("other").exists());
}

pub(crate) fn a_used_file_system_is_as_new_for_the_next_task() {
    let Some(mut rig) = isolated() else { return };
    let dirt = [
        "mkdir -p /tmp/deep/er && echo x > /tmp/deep/er/f && ln -s / /tmp/link",
        "mkdir /tmp/x && chmod 000 /tmp/x",
        "echo x > /new-at-the-top 2>/dev/null; mkdir -p /tmp/a",
        "chmod 700 /tmp",
        "echo x > /dev/shm/left",
        "mount -t tmpfs none /mnt 2>/dev/null && echo x > /mnt/y; true",
        "rm -rf /opt /srv 2>/dev/null; true",
    ];
    for script in dirt {
        let look = "ls -A /tmp /dev/shm; ls -d /new-at-the-top /opt /srv /mnt/y 2>&1 | sort; stat -c %a /tmp";
        let (_, before) = rig.sh(look);
        assert_eq!(rig.sh(script).0, Exit::Code(0), "{script}");
        for _ in 0..4 {
            assert_eq!(rig.sh(look).1, before, "after: {script}");
        }
    }
}

pub(crate) fn a_task_sees_and_signals_only_its_own_processes() {
    let Some(mut rig) = isolated() else { return };
    let mark = format!("7272{}", std::process::id());
    let sleeper = rig.start(sh(&format!("exec sleep {mark}")));
    rig.started(sleeper);
    let find = || processes_with(&format!("sleep\0{mark}\0"));
    eventually("the sleeper", || find().len() == 1);
    let (pid, spawner) = (find()[0], spawner_of(&rig.data())[0]);
    let script = format!(
        "kill -9 {pid} {spawner} {engine}; kill -9 -1; ls -d /proc/[0-9]*; cat /proc/[0-9]*/cmdline | tr '\\0' ' '",
        engine = std::process::id()
    );
    for _ in 0..2 {
        let (_, seen) = rig.sh(&script);
        assert!(seen.starts_with("/proc/1\n/proc/"), "the first process is there: {seen}");
        let pids = seen.lines().filter_map(|line| line.strip_prefix("/proc/")?.parse::<u32>().ok());
        assert!(pids.clone().count() < 4 && pids.max() < Some(100), "and nobody else's: {seen}");
        assert!(!seen.contains("spawner"), "{seen}");
        assert!(!seen.contains(&format!("sleep {mark}")), "{seen}");
    }
    assert_eq!(rig.sh("cat /proc/self/comm").1, "cat\n");
    assert_eq!((find(), spawner_of(&rig.data())), (vec![pid], vec![spawner]), "nobody was hit");
    rig.runtime().send(vec![Order::Stop { attempt: sleeper }]);
    assert_eq!(rig.end(sleeper).exit, Exit::Signal(15), "a task is not the first process, whom signals do not end");
}

pub(crate) fn no_process_leads_to_the_machines_files() {
    let Some(mut rig) = isolated() else { return };
    let secret = rig.data().join("secret");
    fs::write(&secret, "the machine's own").unwrap();
    let script = format!(
        "cd /; for p in /proc/[0-9]*; do cat $p/root{0} $p/cwd{0}; done 2>/dev/null; \
         nsenter -t 1 -m -r cat {0} 2>/dev/null; cat /proc/1/environ 2>/dev/null; ls -l /proc/1/fd 2>/dev/null | grep -v null",
        secret.display()
    );
    let seen = rig.sh(&script).1;
    assert!(!seen.contains("the machine's own") && !seen.contains("PATH="), "{seen}");
    assert!(seen.lines().filter(|line| line.contains("->")).all(|line| line.contains("socket:")), "{seen}");
    // The engine's environment is not in the memory of the init process either.
    let memory = "while read -r range perms rest; do \
                      case $perms in rw*) ;; *) continue ;; esac; \
                      from=$((0x${range%-*} / 4096)); to=$((0x${range#*-} / 4096)); \
                      dd if=/proc/1/mem bs=4096 skip=$from count=$((to - from)) 2>/dev/null; \
                  done < /proc/1/maps";
    let path = std::env::var("PATH").unwrap();
    let (_, looked) =
        rig.sh(&format!("({memory}) 2>/dev/null | tee /tmp/memory | grep -a -c -F '{path}'; wc -c < /tmp/memory"));
    let (found, length) = looked.trim().split_once('\n').unwrap();
    assert_eq!(found, "0", "{looked}");
    assert_eq!(length.trim(), "0", "nobody can look, not even root without its capabilities: {looked}");
}

pub(crate) fn everything_a_task_left_is_gone_when_its_end_is_told() {
    let Some(mut rig) = isolated() else { return };
    let mark = format!("8383{}", std::process::id());
    for _ in 0..3 {
        let script = format!("for i in 1 2 3; do (setsid sleep {mark} >/dev/null 2>&1 &); done; exit 3");
        assert_eq!(rig.sh(&script).0, Exit::Code(3));
        assert!(processes_with(&format!("sleep\0{mark}\0")).is_empty(), "the end is told after the last of them");
    }
}

pub(crate) fn the_data_directory_is_hidden() {
    let Some(mut rig) = isolated() else { return };
    let look = |rig: &Rig| format!("ls -A '{0}'; touch '{0}/x' 2>/dev/null || echo refused", rig.data().display());
    let script = look(&rig);
    assert_eq!(rig.sh(&script), (Exit::Code(0), "refused\n".to_owned()));
    // Also where the folder around it is visible.
    let Some(mut rig) = isolated_with(|config| config.visible = vec![config.data_dir.parent().unwrap().to_owned()])
    else {
        return;
    };
    let script = look(&rig);
    assert_eq!(rig.sh(&script), (Exit::Code(0), "refused\n".to_owned()));
}

pub(crate) fn a_task_of_root_cannot_undo_its_mounts_and_does_what_containers_do() {
    let Some(mut rig) = isolated() else { return };
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip("only root's tasks have capabilities to give up");
    }
    let data = rig.data().display().to_string();
    for wrong in [
        format!("umount '{data}'"),
        format!("umount -l '{data}'"),
        "mount -t tmpfs none /mnt".to_owned(),
        "mount --bind / /mnt".to_owned(),
        "unshare -m true".to_owned(),
        "mknod /tmp/disk b 8 0".to_owned(),
    ] {
        let (exit, out) = rig.sh(&format!("{wrong} 2>&1 && echo done; ls -A '{data}'"));
        assert_eq!(exit, Exit::Code(0), "{out}");
        assert!(!out.contains("done"), "{wrong}: {out}");
    }
    let script = "set -e
touch /tmp/f; chown 1000:1000 /tmp/f; stat -c %u:%g /tmp/f; chmod 4755 /tmp/f; mkfifo /tmp/p
sleep 100 & kill $!; wait $! || true
su -s /bin/sh nobody -c 'id -un; kill -0 $$'
grep -E '^Cap(Bnd|Eff|Prm|Inh|Amb)' /proc/self/status";
    let (exit, out) = rig.sh(script);
    assert_eq!(exit, Exit::Code(0), "{out}");
    assert!(out.starts_with("1000:1000\nnobody\n"), "{out}");
    // What containers usually have, without the making of devices.
    assert!(out.contains("CapBnd:\t00000000a00425fb\n") && out.contains("CapEff:\t00000000a00425fb\n"), "{out}");
    let listen = "import socket; socket.socket().bind((\"127.0.0.1\", 80)); print(\"bound\")";
    if Path::new("/usr/bin/python3").exists() {
        let (exit, out) = rig.sh(&format!("python3 -c '{listen}' 2>&1"));
        assert!(exit == Exit::Code(0) || out.contains("in use"), "{out}");
    }
}

pub(crate) fn folders_that_are_named_stay_visible_below_tmp() {
    let around = tempfile::Builder::new().prefix("my check out-").tempdir_in("/tmp").unwrap();
    let folder = around.path().join("a folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("kept"), "old").unwrap();
    fs::write(around.path().join("beside"), "hidden").unwrap();
    let Some(mut rig) = isolated_with(|config| config.visible = vec![folder.clone()]) else { return };
    let script = format!("cd '{}' && cat kept; ls ..; ls; echo new > kept; touch other; ls", folder.display());
    for _ in 0..2 {
        assert_eq!(rig.sh(&script).1, "olda folder\nkept\nkept\nother\n", "every task finds it as it is");
    }
    assert_eq!(fs::read_to_string(folder.join("kept")).unwrap(), "old");
    assert!(!folder.join("other").exists());
}

pub(crate) fn file_systems_with_folders_shown_are_used_again_and_are_as_new() {
    let around = tempfile::tempdir_in("/tmp").unwrap();
    let folder = around.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("kept"), "old").unwrap();
    let Some(mut rig) = isolated_with(|config| config.visible = vec![folder.clone()]) else { return };
    // As long as there is a task, others may follow each other in one slot.
    let sleeper = rig.start(sh("exec sleep 1000"));
    rig.started(sleeper);
    let mut places = BTreeSet::new();
    eventually("a place that is used again", || !places.insert(rig.sh("stat -c '%i %z' /tmp").1));

    let (inner, outer) = (folder.display(), around.path().display());
    let look = format!(
        "ls -lA --time-style=+ /tmp; stat -c '%a %u %g' /tmp '{outer}' '{inner}'; ls -A '{outer}' '{inner}'; cat '{inner}/kept'"
    );
    let (_, before) = rig.sh(&look);
    assert!(before.ends_with("kept\nold"), "{before}");
    let dirt = [
        format!("echo new > '{inner}/kept'"),
        format!("touch '{inner}/other'"),
        format!("rm -r '{inner}/kept'"),
        format!("chmod 711 '{inner}'"),
        format!("touch '{outer}/beside'"),
        format!("mkdir -p '{outer}/beside/deep' && ln -s / '{outer}/beside/deep/link'"),
        format!("chmod 711 '{outer}'"),
        format!("mv '{outer}' /tmp/moved 2>/dev/null; true"),
        "mkdir -p /tmp/deep/er && echo x > /tmp/deep/er/f".to_owned(),
        format!("umount '{inner}' 2>/dev/null; true"),
    ];
    for script in dirt {
        assert_eq!(rig.sh(&script).0, Exit::Code(0), "{script}");
        for _ in 0..3 {
            assert_eq!(rig.sh(&look).1, before, "after: {script}");
        }
    }
    assert_eq!(fs::read_to_string(folder.join("kept")).unwrap(), "old");
    assert_eq!(fs::read_dir(&folder).unwrap().count() + fs::read_dir(around.path()).unwrap().count(), 2);
}

pub(crate) fn a_path_of_the_machine_is_mounted_only_where_it_is_allowed() {
    let (open, shut) = (fresh_dir(), fresh_dir());
    for dir in [&open, &shut] {
        fs::write(dir.path().join("file"), "found").unwrap();
    }
    let host = |path: &Path| MountSource::Host { path: path.display().to_string() };
    let look = |path: &Path| with_mounts("cat /vol/file", vec![mount("/vol", host(path))]);
    let rule = HostPaths::Below(vec![open.path().to_owned()]);
    let Some(mut rig) = isolated_with(|config| config.host_paths = rule) else { return };
    let (attempt, end) = rig.run(look(open.path()));
    assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "found".to_owned()));
    std::os::unix::fs::symlink(shut.path(), open.path().join("out")).unwrap();
    std::os::unix::fs::symlink(rig.data(), open.path().join("data")).unwrap();
    let refused = |end: End| matches!(end.exit, Exit::Environment(why) if why.contains("hostPath"));
    for path in [shut.path(), &open.path().join("out"), &open.path().join("data"), &rig.data(), Path::new("/")] {
        assert!(refused(rig.run(look(path)).1), "{}", path.display());
    }
    let Some(mut rig) = isolated() else { return };
    assert_eq!(rig.run(look(shut.path())).1.exit, Exit::Code(0), "a person's own machine");
    let (data, inside) = (rig.data(), rig.data().join("logs"));
    for path in [data.as_path(), inside.as_path()] {
        assert!(refused(rig.run(look(path)).1), "{}", path.display());
    }
    let (around, name) = (data.parent().unwrap(), data.file_name().unwrap().to_string_lossy().into_owned());
    let script = format!("ls -A /vol/{name}; mv /vol/{name} /vol/moved 2>/dev/null || echo hidden; ls -d /vol/{name}");
    let (attempt, end) = rig.run(with_mounts(&script, vec![mount("/vol", host(around))]));
    assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), format!("hidden\n/vol/{name}\n")));
}

pub(crate) fn a_script_is_found_at_its_path() {
    for mut rig in [Rig::new(), Rig::plain()] {
        let file =
            |path: &str, contents: &[u8], mode| File { path: path.to_owned(), contents: contents.to_vec(), mode };
        let mut task = command(&["sh", "/argo/staging/script"]);
        task.files = vec![file("/argo/staging/script", b"echo from $0 script", 0o600)];
        let (attempt, end) = rig.run(task);
        assert_eq!(end.exit, Exit::Code(0));
        assert!(rig.stdout(attempt).ends_with("script script\n"));
        assert!(!Path::new("/argo").exists());
        let mut task = command(&["/argo/staging/run"]);
        task.files = vec![file("/argo/staging/run", b"#!/bin/sh\necho run", 0o755)];
        let (attempt, _) = rig.run(task);
        assert_eq!(rig.stdout(attempt), "run\n");
    }
}

pub(crate) fn scratch_volumes_are_shared_by_name_and_gone_afterwards() {
    let Some(mut rig) = isolated() else { return };
    let scratch = |name: &str| MountSource::Scratch { name: name.to_owned() };
    let mounts = || vec![mount("/a", scratch("x")), mount("/b/c", scratch("x")), mount("/d", scratch("y"))];
    let script = "echo 1 > /a/f; cat /b/c/f; ls /d; touch /d/g; ls /a /d";
    for _ in 0..2 {
        let (attempt, end) = rig.run(with_mounts(script, mounts()));
        assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "1\n/a:\nf\n\n/d:\ng\n".to_owned()));
        rig.runtime().send(vec![Order::Forget { attempt }]);
    }
    let work = rig.data().join("work");
    eventually("scratch directories to go", || {
        fs::read_dir(&work).unwrap().flatten().all(|slot| !slot.path().join("scratch").exists())
    });
}

pub(crate) fn a_claim_keeps_what_was_written() {
    let Some(mut rig) = isolated() else { return };
    let mut below = mount("/part", claim("data"));
    below.sub_path = Some("sub/dir".to_owned());
    let (_, end) =
        rig.run(with_mounts("echo kept > /vol/f; echo part > /part/g", vec![mount("/vol", claim("data")), below]));
    assert_eq!(end.exit, Exit::Code(0));
    let (attempt, _) =
        rig.run(with_mounts("cat /elsewhere/f /elsewhere/sub/dir/g", vec![mount("/elsewhere", claim("data"))]));
    assert_eq!(rig.stdout(attempt), "kept\npart\n");
    assert_eq!(fs::read_to_string(rig.data().join("claims/default/data/f")).unwrap(), "kept\n");
    let mut evil = mount("/part", claim("data"));
    evil.sub_path = Some("../../..".to_owned());
    assert!(matches!(rig.run(with_mounts("true", vec![evil])).1.exit, Exit::Environment(_)));
}

pub(crate) fn a_read_only_mount_refuses_writes() {
    let Some(mut rig) = isolated() else { return };
    let own = fresh_dir();
    fs::write(own.path().join("f"), "host").unwrap();
    let host = |path: String| MountSource::Host { path };
    let path = own.path().to_str().unwrap().to_owned();
    let mut read_only = mount("/ro", host(path.clone()));
    read_only.read_only = true;
    let script = "cat /ro/f; touch /ro/x 2>/dev/null || echo refused; echo written > /rw/y";
    let (attempt, end) = rig.run(with_mounts(script, vec![read_only, mount("/rw", host(path))]));
    assert_eq!((end.exit, rig.stdout(attempt)), (Exit::Code(0), "hostrefused\n".to_owned()));
    assert_eq!(fs::read_to_string(own.path().join("y")).unwrap(), "written\n");
    let (_, end) = rig.run(with_mounts("true", vec![mount("/x", host("/no/such/dir".to_owned()))]));
    assert!(matches!(end.exit, Exit::Environment(why) if why.contains("/no/such/dir")));
}

pub(crate) fn memory_files_are_private() {
    let Some(mut rig) = isolated() else { return };
    let name = format!("octoflow-{}", std::process::id());
    assert_eq!(rig.sh(&format!("echo x > /dev/shm/{name} && cat /dev/shm/{name}")).1, "x\n");
    assert!(!Path::new("/dev/shm").join(&name).exists());
    assert_eq!(rig.sh("echo x > /dev/null && head -c 3 /dev/zero | wc -c").1.trim(), "3");
}

pub(crate) fn without_isolation_the_working_directory_is_private() {
    let mut rig = Rig::plain();
    let (first, end) = rig.run(sh("pwd; echo $TMPDIR; ls -A; touch x"));
    assert_eq!(end.exit, Exit::Code(0));
    let lines: Vec<String> = rig.stdout(first).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "the directory is empty");
    assert_eq!(lines[0], lines[1]);
    assert!(Path::new(&lines[0]).starts_with(rig.data().canonicalize().unwrap()));
    rig.runtime().send(vec![Order::Forget { attempt: first }]);
    let wait = "while [ $(ls -A | wc -l) -lt 2 ]; do touch $0; sleep 0.01; [ -e stop ] && exit; done; echo met";
    let pair = [rig.start(command(&["sh", "-c", wait, "one"])), rig.start(command(&["sh", "-c", wait, "two"]))];
    pair.iter().for_each(|attempt| rig.started(*attempt));
    rig.runtime().send(pair.iter().map(|attempt| Order::Stop { attempt: *attempt }).collect());
    for attempt in pair {
        assert_eq!((rig.end(attempt).exit, rig.stdout(attempt)), (Exit::Signal(15), String::new()), "they never meet");
    }
    let (_, end) = rig.run(with_mounts("true", vec![mount("/vol", claim("data"))]));
    assert!(matches!(end.exit, Exit::Environment(why) if why.contains("without isolation")));
}

pub(crate) fn an_input_never_overwrites_a_file_of_the_machine() {
    let mut rig = Rig::plain();
    let own = fresh_dir();
    let taken = own.path().join("taken");
    fs::write(&taken, "mine").unwrap();
    let free = own.path().join("free");
    let with_input = |path: &Path| {
        let path = path.to_str().unwrap().to_owned();
        let source = ArtifactSource::Raw { data: "input".to_owned() };
        let input =
            ArtifactInput { name: "in".to_owned(), path, source, mode: None, recurse_mode: false, archive: None };
        Task { inputs: vec![input], ..sh(&format!("cat '{}'", free.display())) }
    };
    let (_, end) = rig.run(with_input(&taken));
    assert!(matches!(end.exit, Exit::Environment(why) if why.contains("exists on this machine")));
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    let (attempt, _) = rig.run(with_input(&free));
    assert_eq!(rig.stdout(attempt), "input");
    rig.runtime().send(vec![Order::Forget { attempt }]);
    assert!(!free.exists());
}
