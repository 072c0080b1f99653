//! Templates with several containers and their problems.

use serde_json::{Value, json};

use super::{Objects, pairs, parsed, with_templates};
use crate::dialects::argo::admit::admit;

/// Returns the problems of a workflow whose one template has these fields.
fn wrong(template: &Value) -> Vec<(String, String)> {
    let mut object = parsed(&with_templates("\n  - {name: main, suspend: {}}\n"));
    object["spec"]["volumes"] = json!([{"name": "work", "emptyDir": {}}]);
    let fields = template.as_object().expect("a template is an object");
    let main = object["spec"]["templates"][0].as_object_mut().expect("a template is an object");
    main.remove("suspend");
    main.extend(fields.clone());
    match admit(&object, &Objects::default()) {
        Ok(_) => Vec::new(),
        Err(problems) => pairs(&problems),
    }
}

fn check(template: Value, expected: &[(&str, &str)]) {
    let found = wrong(&template);
    let found: Vec<(&str, &str)> = found.iter().map(|(code, path)| (code.as_str(), path.as_str())).collect();
    let expected: Vec<(&str, String)> =
        expected.iter().map(|(code, path)| (*code, format!("spec.templates[0]{path}"))).collect();
    let expected: Vec<(&str, &str)> = expected.iter().map(|(code, path)| (*code, path.as_str())).collect();
    assert_eq!(found, expected, "{template}");
}

fn set(containers: Value) -> Value {
    json!({"containerSet": {"containers": containers}})
}

#[test]
fn a_set_has_containers_with_names_of_their_own() {
    check(set(json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i", "dependencies": ["a"]}])), &[]);
    check(set(json!([])), &[("OF1016", ".containerSet.containers")]);
    check(set(json!([{"image": "i"}])), &[("OF1016", ".containerSet.containers[0].name")]);
    check(set(json!([{"name": "a b", "image": "i"}])), &[("OF1014", ".containerSet.containers[0].name")]);
    check(
        set(json!([{"name": "a", "image": "i"}, {"name": "a", "image": "i"}])),
        &[("OF1015", ".containerSet.containers[1].name")],
    );
    check(set(json!([{"name": "a"}])), &[("OF1016", ".containerSet.containers[0]")]);
    check(
        set(json!([{"name": "a", "image": "i", "dependecies": []}])),
        &[("OF1003", ".containerSet.containers[0].dependecies")],
    );
}

#[test]
fn a_set_depends_on_containers_it_has_and_never_in_a_circle() {
    check(
        set(json!([{"name": "a", "image": "i", "dependencies": ["b"]}])),
        &[("OF1025", ".containerSet.containers[0].dependencies[0]")],
    );
    check(
        set(
            json!([{"name": "a", "image": "i", "dependencies": ["b"]}, {"name": "b", "image": "i", "dependencies": ["a"]}]),
        ),
        &[("OF1027", ".containerSet.containers[0].dependencies")],
    );
    check(
        set(json!([{"name": "a", "image": "i", "dependencies": ["a"]}])),
        &[("OF1027", ".containerSet.containers[0].dependencies")],
    );
}

#[test]
fn only_main_may_have_inputs_and_outputs() {
    let with = |name: &str, field: &str, value: Value| {
        let mut template = set(json!([{"name": name, "image": "i"}]));
        template[field] = value;
        template
    };
    let outputs = json!({"parameters": [{"name": "p", "valueFrom": {"path": "/tmp/p"}}]});
    check(with("main", "outputs", outputs.clone()), &[]);
    check(with("other", "outputs", outputs), &[("OF1036", ".containerSet.containers")]);
    let outputs = json!({"artifacts": [{"name": "p", "path": "/tmp/p"}]});
    check(with("other", "outputs", outputs), &[("OF1036", ".containerSet.containers")]);
    let outputs = json!({"parameters": [{"name": "p", "valueFrom": {"expression": "1"}}]});
    check(with("main", "outputs", outputs), &[("OF1035", ".outputs.parameters[0].valueFrom")]);
    check(with("main", "parallelism", json!(2)), &[("OF1034", ".parallelism")]);
}

#[test]
fn retries_of_a_set_are_a_number_and_a_duration() {
    let retry = |retry: Value| {
        let mut template = set(json!([{"name": "a", "image": "i"}]));
        template["containerSet"]["retryStrategy"] = retry;
        template
    };
    check(retry(json!({"retries": 2, "duration": "30s"})), &[]);
    check(retry(json!({"retries": "many"})), &[("OF1032", ".containerSet.retryStrategy.retries")]);
    check(retry(json!({"retries": -1})), &[("OF1032", ".containerSet.retryStrategy.retries")]);
    check(retry(json!({"duration": "soon"})), &[("OF1033", ".containerSet.retryStrategy.duration")]);
    check(retry(json!({"limit": 3})), &[("OF1003", ".containerSet.retryStrategy.limit")]);
}

#[test]
fn helpers_have_names_images_and_volumes_that_are_there() {
    for field in ["initContainers", "sidecars"] {
        let with = |list: Value| json!({"container": {"image": "i"}, field: list});
        check(with(json!([{"name": "one", "image": "i", "mirrorVolumeMounts": true}])), &[]);
        check(with(json!([{"image": "i"}])), &[("OF1016", &format!(".{field}[0].name"))]);
        check(with(json!([{"name": "main", "image": "i"}])), &[("OF1015", &format!(".{field}[0].name"))]);
        check(
            with(json!([{"name": "one", "image": "i"}, {"name": "one", "image": "i"}])),
            &[("OF1015", &format!(".{field}[1].name"))],
        );
        check(with(json!([{"name": "one"}])), &[("OF1016", &format!(".{field}[0]"))]);
        let mounts = json!([{"name": "wrok", "mountPath": "/work"}]);
        check(
            with(json!([{"name": "one", "image": "i", "volumeMounts": mounts}])),
            &[("OF1037", &format!(".{field}[0].volumeMounts[0].name"))],
        );
        check(
            with(json!([{"name": "one", "image": "i", "args": ["{{inputs.parameters.nobody}}"]}])),
            &[("OF1029", &format!(".{field}[0].args[0]"))],
        );
        check(
            with(json!([{"name": "one", "image": "i", "comand": []}])),
            &[("OF1003", &format!(".{field}[0].comand"))],
        );
    }
    let both = json!({"container": {"image": "i"}, "initContainers": [{"name": "one", "image": "i"}],
                      "sidecars": [{"name": "one", "image": "i"}]});
    check(both, &[("OF1015", ".sidecars[0].name")]);
}

#[test]
fn volumes_of_a_set_are_known_and_mounted_once() {
    let mounts = |set: Value, own: Value| json!({"containerSet": {"volumeMounts": set, "containers": [{"name": "a", "image": "i", "volumeMounts": own}]}});
    let work = json!([{"name": "work", "mountPath": "/work"}]);
    check(mounts(work, json!([])), &[]);
    check(
        mounts(json!([{"name": "play", "mountPath": "/play"}]), json!([])),
        &[("OF1037", ".containerSet.volumeMounts[0].name")],
    );
    check(
        mounts(json!([]), json!([{"name": "play", "mountPath": "/play"}])),
        &[("OF1037", ".containerSet.containers[0].volumeMounts[0].name")],
    );
}

#[test]
fn a_patch_without_variables_must_be_readable() {
    let with = |patch: Value| json!({"container": {"image": "i"}, "podSpecPatch": patch});
    check(with(json!("{\"containers\": []}")), &[]);
    check(with(json!("containers: []")), &[]);
    check(with(json!("{\"containers\": [{{workflow.name}}")), &[]);
    check(with(json!("{\"containers\": [}")), &[("OF1010", ".podSpecPatch")]);
    check(with(json!("words")), &[("OF1010", ".podSpecPatch")]);
}

#[test]
fn helpers_beside_no_container_are_warned_of() {
    let text = "\n  - {name: main, suspend: {}, sidecars: [{name: one, image: i}]}\n";
    let admitted = admit(&parsed(&with_templates(text)), &Objects::default()).unwrap();
    assert_eq!(admitted.warnings().len(), 1, "{:?}", admitted.warnings());
    assert!(admitted.warnings()[0].message.contains("sidecars has no effect"));
}
