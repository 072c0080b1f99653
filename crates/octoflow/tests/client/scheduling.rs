//! queue and node.

use crate::place::{Place, shows};

#[test]
fn queues_are_made_changed_closed_and_deleted() {
    let place = Place::start();
    shows(&place.good(&["queue", "list"]), &["NAME", "SHARE", "root", "  default"]);
    let create = ["queue", "create", "team", "--deserved", "cpu=1", "--placement", "spread", "--longest-wait", "10m"];
    assert_eq!(place.good(&create), "queue team created\n");
    assert_eq!(place.good(&["queue", "create", "a", "--parent", "team", "--weight", "3"]), "queue a created\n");
    shows(&place.good(&["queue", "list"]), &["  team", "    a"]);
    shows(
        &place.ends(6, &["queue", "create", "b", "--parent", "team", "--deserved", "cpu=2"]).err,
        &["spec.deserved.cpu", "team"],
    );
    shows(&place.ends(2, &["queue", "create", "b", "--deserved", "cpu=many"]).err, &["--deserved", "many"]);
    shows(&place.ends(3, &["queue", "get", "tema"]).err, &["did you mean `team`?"]);
    assert_eq!(place.good(&["queue", "set", "team", "--deserved", "memory=1Gi"]), "queue team changed\n");
    let team = place.json(&["queue", "get", "team"]);
    assert_eq!(team["spec"]["deserved"], serde_json::json!({"memory": "1Gi"}));
    assert_eq!(team["metadata"]["annotations"]["octoflow.io/longest-wait"], "600s");
    shows(&place.ends(2, &["queue", "set", "team"]).err, &["nothing to set"]);
    assert_eq!(place.good(&["queue", "close", "a"]), "queue a closed\n");
    assert_eq!(place.json(&["queue", "get", "a"])["status"]["state"], "Closed");
    assert_eq!(place.good(&["queue", "open", "a"]), "queue a open\n");
    shows(&place.ends(7, &["queue", "delete", "team"]).err, &["queues below it"]);
    assert_eq!(place.good(&["queue", "delete", "a", "team"]), "queue a deleted\nqueue team deleted\n");
    place.ends(3, &["queue", "delete", "a"]);
    assert_eq!(place.good(&["queue", "list", "-o", "name"]), "default\nroot\n");
}

#[test]
fn nodes_are_shown_declared_labelled_and_cordoned() {
    let place = Place::start();
    let name = place.good(&["node", "list", "-o", "name"]).trim().to_owned();
    shows(&place.good(&["node", "list"]), &["NAME", "CPU", &name, "Ready"]);
    assert_eq!(
        place.good(&["node", "set", &name, "--capacity", "cpu=3,example.com/x=2"]),
        format!("node {name} changed\n")
    );
    shows(&place.good(&["node", "list"]), &["0/3", "example.com/x=0/2"]);
    shows(&place.ends(6, &["node", "set", &name, "--capacity", "cpu=many"]).err, &["status.capacity.cpu"]);
    assert_eq!(
        place.good(&["node", "label", &name, "disk=ssd", "kubernetes.io/os-"]),
        format!("node {name} labeled\n")
    );
    shows(&place.good(&["node", "get", &name]), &["disk=ssd"]);
    shows(&place.ends(2, &["node", "label", &name, "disk"]).err, &["NAME=VALUE"]);
    assert_eq!(place.good(&["node", "cordon", &name]), format!("node {name} cordoned\n"));
    assert_eq!(place.json(&["node", "get", &name])["spec"]["unschedulable"], true);
    assert_eq!(place.good(&["node", "uncordon", &name]), format!("node {name} uncordoned\n"));
    shows(&place.good(&["node", "drain", &name]), &["cordoned", "drained"]);
    place.ends(3, &["node", "cordon", "nobody"]);
    place.ends(2, &["node", "cordon"]);
}
