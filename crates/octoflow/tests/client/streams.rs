//! Streams that break off: a server that is started again in the middle is waited for.

use crate::place::{Place, Said, eventually, one_step};

#[test]
fn whoever_follows_a_run_outlives_the_server() {
    let mut place = Place::start();
    let flag = place.path("flag");
    let work = format!("echo before; while ! test -e {}; do sleep 0.05; done; echo after", flag.display());
    let file = place.file("long.yaml", &one_step("long", &work));
    place.good(&["submit", &file]);
    eventually("it has begun", || place.good(&["logs", "long"]).contains("before"));
    let wait = place.command(&["wait", "long"]).spawn().unwrap();
    let logs = place.command(&["logs", "-f", "long"]).spawn().unwrap();
    let watch = place.command(&["watch", "long"]).spawn().unwrap();
    place.stop_server();
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
