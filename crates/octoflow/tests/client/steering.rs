//! stop, terminate, suspend, resume and node set on a server.

use crate::place::{Place, asking, eventually, one_step, shows};

#[test]
fn runs_are_steered_by_name_and_by_labels() {
    let place = Place::start();
    let slow = place.file("slow.yaml", &one_step("slow", "sleep 600"));
    for name in ["one", "two", "three"] {
        place.good(&["submit", &slow, "--name", name]);
    }
    assert_eq!(place.good(&["suspend", "one"]), "workflow one suspended\n");
    shows(&place.good(&["get", "one"]), &["Running (Suspended)"]);
    assert_eq!(place.good(&["resume", "one"]), "workflow one resumed\n");
    assert_eq!(place.good(&["stop", "one", "--message", "enough"]), "workflow one is being stopped\n");
    place.ends(1, &["wait", "one"]);
    shows(&place.ends(7, &["stop", "one"]).err, &["one"]);
    let said = place.ends(3, &["terminate", "two", "nobody"]);
    assert_eq!(said.out, "workflow two is being terminated\n");
    place.ends(1, &["wait", "two"]);
    assert_eq!(place.good(&["terminate", "-l", "app=slow"]), "workflow three is being terminated\n");
    place.ends(1, &["wait", "three"]);
    assert_eq!(place.good(&["suspend", "-l", "app=slow"]), "No workflows found\n");
}

#[test]
fn nodes_that_wait_are_given_what_they_wait_for() {
    let place = Place::start();
    let asks = place.file("asks.yaml", &asking("asks"));
    let waits = |name: &str| {
        eventually("it waits", || {
            let asked = place.good(&["get", name, "-o", "jsonpath={.status.nodes[?(@.displayName==\"ask\")].phase}"]);
            asked == "Running"
        });
    };
    place.good(&["submit", &asks]);
    waits("asks");
    let chosen = ["--node-field-selector", "displayName=ask"];
    place.ends(2, &[&["node", "set", "asks"][..], &chosen].concat());
    let nobody = ["node", "set", "asks", "--node-field-selector", "displayName=nobody", "-p", "word=x"];
    place.ends(7, &nobody);
    assert_eq!(
        place.good(&[&["node", "set", "asks", "-p", "word=yes"][..], &chosen].concat()),
        "workflow asks values set\n"
    );
    place.good(&[&["resume", "asks"][..], &chosen].concat());
    place.good(&["wait", "asks"]);
    assert_eq!(place.good(&["logs", "asks", "tell", "--no-prefix"]), "the word is yes\n");

    place.good(&["submit", &asks, "--name", "again"]);
    waits("again");
    place.good(&[&["resume", "again", "--output-parameter", "word=maybe"][..], &chosen].concat());
    place.good(&["wait", "again"]);
    assert_eq!(place.good(&["logs", "again", "tell", "--no-prefix"]), "the word is maybe\n");

    place.good(&["submit", &asks, "--name", "never"]);
    waits("never");
    place.good(&[&["stop", "never", "--message", "no"][..], &chosen].concat());
    place.ends(1, &["wait", "never"]);
    shows(&place.good(&["get", "never"]), &["ask", "no"]);
}
