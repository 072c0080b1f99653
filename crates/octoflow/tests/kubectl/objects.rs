//! Objects that are kept: made, applied, changed in every way kubectl knows, listed in every form, and deleted.

use crate::rig::{Rig, shows};

const FIRST: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: tests}}
data: {colour: red, size: large}
";

#[test]
fn kubectl_makes_applies_shows_and_deletes_objects() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let first = rig.file("first.yaml", FIRST);
    let second = rig.file("second.yaml", &FIRST.replace("red", "blue").replace(", size: large", ""));

    shows(&rig.good(&["apply", "-f", &first]), &["configmap/settings created"]);
    shows(&rig.good(&["apply", "-f", &first]), &["configmap/settings unchanged"]);
    let difference = rig.kubectl(&["diff", "-f", &second]);
    assert_eq!(difference.code, 1, "{difference}");
    shows(&difference.out, &["-  colour: red", "-  size: large", "+  colour: blue"]);
    shows(&rig.good(&["apply", "-f", &second, "--dry-run=server"]), &["configured (server dry run)"]);
    assert_eq!(rig.good(&["get", "cm", "settings", "-o", "jsonpath={.data.colour}"]), "red");
    shows(&rig.good(&["apply", "-f", &second]), &["configmap/settings configured"]);
    assert_eq!(rig.good(&["get", "cm", "settings", "-o", "jsonpath={.data}"]), r#"{"colour":"blue"}"#);
    shows(&rig.bad(&["create", "-f", &first]), &["AlreadyExists", "configmaps \"settings\" already exists"]);

    rig.good(&["create", "configmap", "other", "--from-literal=a=1", "--from-literal=b=2"]);
    rig.good(&["create", "secret", "generic", "key", "--from-literal=word=open"]);
    rig.good(&["-n", "elsewhere", "create", "configmap", "far"]);

    let table = rig.good(&["get", "configmaps"]);
    shows(&table, &["NAME", "DATA", "AGE", "other", "2", "settings", "1"]);
    assert!(!table.contains("far"), "{table}");
    shows(&rig.good(&["get", "cm", "-A", "--chunk-size=1"]), &["NAMESPACE", "default", "other", "elsewhere", "far"]);
    assert_eq!(rig.good(&["get", "cm", "-l", "app=tests,!gone", "-o", "name"]), "configmap/settings\n");
    assert_eq!(rig.good(&["get", "cm", "--field-selector=metadata.name=other", "-o", "name"]), "configmap/other\n");
    assert_eq!(
        rig.good(&["get", "cm", "--no-headers", "--sort-by=.data.a", "-o", "custom-columns=N:.metadata.name"])
            .lines()
            .count(),
        2
    );
    shows(&rig.good(&["get", "secrets", "-o", "wide"]), &["NAME", "TYPE", "DATA", "key", "Opaque", "1"]);
    assert_eq!(rig.good(&["get", "secret", "key", "-o", "jsonpath={.data.word}"]), "b3Blbg==");
    shows(&rig.good(&["describe", "cm", "settings"]), &["Name:", "settings", "app=tests", "colour:", "blue"]);
    shows(
        &rig.good(&["get", "cm", "settings", "-o", "yaml"]),
        &["apiVersion: v1", "kind: ConfigMap", "resourceVersion:"],
    );

    let kept = rig.json(&["get", "cm", "other"]);
    shows(&rig.good(&["delete", "cm", "other", "--dry-run=server"]), &["deleted (server dry run)"]);
    shows(&rig.good(&["delete", "cm", "other", "settings"]), &["\"other\" deleted", "\"settings\" deleted"]);
    shows(&rig.bad(&["get", "cm", "other"]), &["NotFound", "configmaps \"other\" not found"]);
    rig.good(&["delete", "cm", "--all", "-n", "elsewhere"]);
    assert_eq!(rig.good(&["get", "cm", "-A", "-o", "name"]), "");
    let again = rig.file("again.json", &kept.to_string());
    rig.good(&["create", "-f", &again]);
    assert_ne!(rig.json(&["get", "cm", "other"])["metadata"]["uid"], kept["metadata"]["uid"]);
}

#[test]
fn kubectl_changes_objects_in_every_way_it_knows() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let first = rig.file("first.yaml", FIRST);
    rig.good(&["create", "-f", &first]);
    let data = || rig.good(&["get", "cm", "settings", "-o", "jsonpath={.data}"]);

    rig.good(&["patch", "cm", "settings", "-p", r#"{"data": {"size": null, "shape": "round"}}"#]);
    assert_eq!(data(), r#"{"colour":"red","shape":"round"}"#);
    rig.good(&["patch", "cm", "settings", "--type=merge", "-p", r#"{"data": {"shape": "flat"}}"#]);
    let operations =
        r#"[{"op": "test", "path": "/data/shape", "value": "flat"}, {"op": "remove", "path": "/data/shape"}]"#;
    rig.good(&["patch", "cm", "settings", "--type=json", "-p", operations]);
    assert_eq!(data(), r#"{"colour":"red"}"#);
    shows(&rig.bad(&["patch", "cm", "settings", "--type=json", "-p", operations]), &["invalid", "/data/shape"]);
    shows(&rig.bad(&["patch", "cm", "nobody", "-p", "{}"]), &["NotFound"]);

    rig.good(&["label", "cm", "settings", "tier=web"]);
    shows(&rig.bad(&["label", "cm", "settings", "tier=db"]), &["already has a value"]);
    rig.good(&["label", "cm", "settings", "tier=db", "app-", "--overwrite"]);
    rig.good(&["annotate", "cm", "settings", "note=a long story, with commas"]);
    let metadata = rig.json(&["get", "cm", "settings"])["metadata"].clone();
    assert_eq!(metadata["labels"], serde_json::json!({"tier": "db"}));
    assert_eq!(metadata["annotations"]["note"], "a long story, with commas");

    let stale = rig.json(&["get", "cm", "settings"]).to_string();
    rig.good(&["patch", "cm", "settings", "-p", r#"{"data": {"size": "tiny"}}"#]);
    let stale = rig.file("stale.json", &stale);
    shows(&rig.bad(&["replace", "-f", &stale]), &["Conflict", "the object has been modified"]);
    shows(&rig.good(&["replace", "-f", &first]), &["configmap/settings replaced"]);
    assert_eq!(data(), r#"{"colour":"red","size":"large"}"#);

    let editor = rig.file("editor.sh", "sed -i s/large/small/ \"$1\"\n");
    let mut edit = rig.command(&["edit", "cm", "settings"]);
    let edited = edit.env("EDITOR", format!("sh {editor}")).output().unwrap();
    assert!(edited.status.success(), "{edited:?}");
    assert_eq!(data(), r#"{"colour":"red","size":"small"}"#);
}

#[test]
fn kubectl_applies_on_the_server_and_hears_of_conflicts() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let first = rig.file("first.yaml", FIRST);
    let blue = rig.file(
        "blue.yaml",
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"colour": "blue"}}"#,
    );
    let data = || rig.good(&["get", "cm", "settings", "-o", "jsonpath={.data}"]);
    shows(&rig.good(&["apply", "--server-side", "-f", &first]), &["configmap/settings serverside-applied"]);
    rig.good(&["apply", "--server-side", "-f", &first]);
    let conflict = rig.bad(&["apply", "--server-side", "--field-manager=painter", "-f", &blue]);
    shows(&conflict, &["conflict", ".data.colour"]);
    assert_eq!(data(), r#"{"colour":"red","size":"large"}"#);
    rig.good(&["apply", "--server-side", "--field-manager=painter", "--force-conflicts", "-f", &blue]);
    assert_eq!(data(), r#"{"colour":"blue","size":"large"}"#);
    // What its owner no longer applies goes; what somebody else took over stays.
    let bare = rig.file("bare.yaml", r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}"#);
    rig.good(&["apply", "--server-side", "-f", &bare]);
    assert_eq!(data(), r#"{"colour":"blue"}"#);
}
