//! The merge table of patches.

use serde_json::json;

use crate::dialects::jobflow::patch::patched;

#[test]
fn parts_are_merged_by_what_names_them_and_the_rest_is_added() {
    let spec = json!({
        "minAvailable": 1, "queue": "a", "plugins": {"ssh": ["--x"], "env": []},
        "policies": [{"event": "PodFailed", "action": "AbortJob"}],
        "volumes": [{"mountPath": "/in", "volumeClaimName": "one"}],
        "tasks": [
            {"name": "w", "replicas": 2, "template": {"spec": {
                "nodeSelector": {"zone": "a", "disk": "ssd"},
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
                "affinity": {"nodeAffinity": {"x": 1}},
                "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [{
                    "name": "main", "image": "one", "command": ["a", "b"], "args": ["c"],
                    "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}, {"name": "B", "value": "1"}],
                    "ports": [{"containerPort": 80, "name": "web"}],
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                    "livenessProbe": {"exec": {}, "periodSeconds": 1},
                }],
            }}},
            {"name": "other", "replicas": 1},
        ],
    });
    let patch = json!({
        "minAvailable": 2, "queue": null, "plugins": {"ssh": ["--y"], "svc": []},
        "policies": [{"event": "*", "action": "RestartJob"}],
        "volumes": [{"mountPath": "/in", "volumeClaimName": "two"}, {"mountPath": "/out"}],
        "tasks": [
            {"name": "w", "replicas": 3, "template": {"spec": {
                "nodeSelector": {"zone": "b"},
                "tolerations": [{"key": "gpu", "operator": "Equal"}, {"key": "new"}],
                "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b"]}],
                "affinity": {"podAffinity": {"y": 2}},
                "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
                "containers": [
                    {"name": "main", "image": "two", "command": ["z"], "env": [{"name": "A", "value": "x"}, {"name": "C"}],
                     "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}],
                     "resources": {"requests": {"cpu": "2"}}, "livenessProbe": {"tcpSocket": {}}},
                    {"name": "side"},
                ],
            }}},
            {"name": "more"},
        ],
    });
    let wanted = json!({
        "minAvailable": 2, "queue": "a", "plugins": {"ssh": ["--y"], "env": [], "svc": []},
        "policies": [{"event": "*", "action": "RestartJob"}],
        "volumes": [{"mountPath": "/in", "volumeClaimName": "two"}, {"mountPath": "/out"}],
        "tasks": [
            {"name": "w", "replicas": 3, "template": {"spec": {
                "nodeSelector": {"zone": "b", "disk": "ssd"},
                "tolerations": [{"key": "gpu", "operator": "Equal"}, {"key": "new"}],
                "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b"]}],
                "affinity": {"podAffinity": {"y": 2}},
                "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
                "containers": [
                    {"name": "main", "image": "two", "command": ["z"], "args": ["c"],
                     "env": [{"name": "A", "value": "x"}, {"name": "B", "value": "1"}, {"name": "C"}],
                     "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}],
                     "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}, "livenessProbe": {"tcpSocket": {}}},
                    {"name": "side"},
                ],
            }}},
            {"name": "other", "replicas": 1},
            {"name": "more"},
        ],
    });
    assert_eq!(patched(&spec, &patch), wanted);
    assert_eq!(patched(&wanted, &patch), wanted, "patching twice changes nothing more");
}

#[test]
fn a_patch_of_nothing_changes_nothing_and_one_of_another_type_replaces() {
    let spec = json!({"tasks": [{"name": "w"}], "queue": "a"});
    assert_eq!(patched(&spec, &json!({})), spec);
    assert_eq!(patched(&spec, &json!(null)), spec);
    assert_eq!(patched(&spec, &json!({"tasks": 3}))["tasks"], 3, "admission of the job refuses it");
    assert_eq!(patched(&json!({}), &json!({"tasks": [{"name": "w"}]})), json!({"tasks": [{"name": "w"}]}));
}
