//! Broken streams: the client waits for a server that restarts in the middle.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command},
    thread,
};

use crate::place::{Place, Said, eventually, one_step};

/// A command that has its stream open.
fn following(mut command: Command) -> Child {
    let mut child = command.spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(talk.any(|line| line.contains("the stream is open")), "it ended before");
    // Its output must be read from now on, or it would block.
    thread::spawn(move || talk.for_each(drop));
    child
}

#[test]
fn whoever_follows_a_run_outlives_the_server() {
    let mut place = Place::start();
    let flag = place.path("flag");
    let work = format!("echo before; while ! test -e {}; do sleep 0.05; done; echo after", flag.display());
    let file = place.file("long.yaml", &one_step("long", &work));
    place.good(&["submit", &file]);
    eventually("it has begun", || place.good(&["logs", "long"]).contains("before"));
    let [wait, logs, watch] = [&["wait", "long", "-v"][..], &["logs", "-f", "long", "-v"], &["watch", "long", "-v"]]
        .map(|words| following(place.command(words)));
    place.server.stop();
    place.start_server();
    place.file("flag", "");
    let said: Said = wait.wait_with_output().unwrap().into();
    assert_eq!(said.code, 0, "{said}");
    let said: Said = logs.wait_with_output().unwrap().into();
    assert_eq!((said.code, said.out.as_str()), (0, "long: before\nlong: after\n"), "{said}");
    let said: Said = watch.wait_with_output().unwrap().into();
    assert_eq!(said.code, 0, "{said}");
    assert_eq!(place.phase("long"), "Succeeded");
}
