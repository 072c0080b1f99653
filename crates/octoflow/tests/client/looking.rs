//! list, get, describe, logs, explain, delete of runs on a server, in the same words as without one.

use crate::place::{Place, asking, one_step, shows};

#[test]
fn runs_of_a_server_look_as_runs_of_this_machine_do() {
    let place = Place::start();
    let file = place.file("two.yaml", &one_step("two", "echo one; printf 'a\\377b\\n'; echo last"));
    place.good(&["submit", &file, "--wait"]);
    place.good(&["submit", &file, "--name", "other", "--wait"]);
    let asks = place.file("asks.yaml", &asking("asks"));
    place.good(&["submit", &asks]);

    let listed = place.good(&["list", "--no-headers"]);
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["asks", "other", "two"]);
    assert_eq!(place.good(&["list", "-o", "name", "--status", "Succeeded", "--prefix", "ot"]), "other\n");
    assert_eq!(place.good(&["list", "-o", "name", "-l", "app=asks", "--running"]), "asks\n");
    assert_eq!(place.good(&["list", "-o", "name", "--limit", "1"]), "asks\n");
    assert_eq!(place.good(&["list", "-n", "empty"]), "No workflows found\n");
    assert_eq!(place.json(&["list", "--completed"]).as_array().unwrap().len(), 2);

    shows(&place.good(&["get", "two", "asks"]), &["Name:                two", "✔ two", "Name:                asks"]);
    shows(&place.ends(3, &["get", "tow"]).err, &["there is no run `tow`", "did you mean `two`?"]);
    shows(&place.good(&["describe", "two", "other"]), &["Name:                two", "Exit code:", "other"]);
    place.ends(3, &["describe", "nobody"]);

    let whole = place.command(&["logs", "two"]).output().unwrap().stdout;
    assert_eq!(whole, b"two: one\ntwo: a\xffb\ntwo: last\n");
    assert_eq!(place.good(&["logs", "two", "--no-prefix", "--tail", "1"]), "last\n");
    assert_eq!(place.good(&["logs", "two", "two", "--no-prefix", "--grep", "^o"]), "one\n");
    assert_eq!(place.good(&["logs", "two", "--no-prefix", "--since", "1h", "-c", "main", "--tail", "1"]), "last\n");
    shows(&place.good(&["logs", "-l", "app=two", "--tail", "1"]), &["two/two: last", "other/other: last"]);
    place.ends(3, &["logs", "two", "-c", "side"]);
    place.ends(3, &["logs", "two", "nothing"]);
    place.ends(2, &["logs", "two", "--grep", "("]);
    let both = place.file("both.yaml", &one_step("both", "echo out; printf 'a\\377b'; echo err >&2"));
    place.good(&["submit", &both, "--wait"]);
    let raw = place.command(&["logs", "both", "-o", "raw"]).output().unwrap();
    assert_eq!((raw.stdout.as_slice(), raw.stderr.as_slice()), (&b"out\na\xffb"[..], &b"err\n"[..]));

    shows(&place.good(&["explain", "asks"]), &["workflow asks is Running (Suspended)", "ask "]);
    shows(&place.good(&["explain", "two", "two"]), &["Succeeded", "ended well"]);
    place.ends(3, &["explain", "two", "nothing"]);

    shows(&place.ends(7, &["delete", "asks"]).err, &["is not finished"]);
    assert_eq!(place.good(&["delete", "--completed", "--dry-run", "-l", "app=two"]).lines().count(), 2);
    shows(&place.ends(3, &["delete", "two", "nobody"]).out, &["Workflow 'two' deleted"]);
    place.good(&["delete", "--force", "asks"]);
    assert_eq!(place.good(&["delete", "--all"]), "Workflow 'both' deleted\nWorkflow 'other' deleted\n");
    assert_eq!(place.good(&["list"]), "No workflows found\n");
}
