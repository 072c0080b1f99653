//! Admission scenarios of the reference, by their numbers.

use super::{judged, message_of, pairs, with_templates, wrongs};

fn pair(code: &str, path: &str) -> (String, String) {
    (code.to_owned(), path.to_owned())
}

#[test]
fn aw_02_a_template_with_two_types_or_none_is_rejected() {
    let two = with_templates(
        "  - name: main\n    container: {image: busybox, command: [true]}\n    script: {image: busybox, source: echo}\n",
    )
    .replace("[true]", "['true']");
    assert_eq!(wrongs(&two), [pair("OF1017", "spec.templates[0]")]);
    assert!(
        message_of(&two, "OF1017")
            .starts_with("templates.main multiple template types specified. choose one of: container")
    );
    let none = with_templates("  - name: main\n    inputs: {}\n");
    assert_eq!(wrongs(&none), [pair("OF1017", "spec.templates[0]")]);
    assert!(message_of(&none, "OF1017").starts_with("templates.main template type unspecified."));
    let inline = with_templates(
        "  - name: main\n    dag:\n      tasks:\n      - {name: a, inline: {suspend: {}, container: {image: busybox}}}\n      - {name: b, inline: {}}\n",
    );
    assert_eq!(
        wrongs(&inline),
        [
            pair("OF1017", "spec.templates[0].dag.tasks[0].inline"),
            pair("OF1017", "spec.templates[0].dag.tasks[1].inline")
        ]
    );
}

#[test]
fn aw_03_an_input_without_value_is_rejected_by_name() {
    let undeclared =
        with_templates("  - name: main\n    container: {image: busybox, args: ['{{inputs.parameters.seconds}}']}\n");
    assert_eq!(wrongs(&undeclared), [pair("OF1029", "spec.templates[0].container.args[0]")]);
    assert_eq!(message_of(&undeclared, "OF1029"), "failed to resolve {{inputs.parameters.seconds}}");
    let declared = with_templates(
        "  - name: main\n    inputs: {parameters: [{name: seconds}]}\n    container: {image: busybox, args: ['{{inputs.parameters.seconds}}']}\n",
    );
    assert_eq!(wrongs(&declared), [pair("OF1019", "spec.entrypoint")]);
    assert_eq!(message_of(&declared, "OF1019"), "templates.main inputs.parameters.seconds was not supplied");
    for given in ["{name: seconds, value: 1}", "{name: seconds, default: 1}"] {
        assert!(judged(&declared.replace("{name: seconds}", given)).is_ok(), "{given}");
    }
}

#[test]
fn aw_11_dependencies_mixed_with_depends_are_rejected() {
    let mixed = with_templates(
        "  - name: main\n    dag:\n      tasks:\n      - {name: a, template: leaf}\n      - {name: b, template: leaf, dependencies: [a]}\n      - {name: c, template: leaf, depends: a}\n  - {name: leaf, container: {image: busybox}}\n",
    );
    assert_eq!(wrongs(&mixed), [pair("OF1026", "spec.templates[0].dag.tasks[1].dependencies")]);
    assert_eq!(
        message_of(&mixed, "OF1026"),
        "templates.main cannot use both 'depends' and 'dependencies' in the same DAG template"
    );
    let forgiving = mixed.replace("dependencies: [a]", "continueOn: {failed: true}");
    assert_eq!(wrongs(&forgiving), [pair("OF1026", "spec.templates[0].dag.tasks[1].continueOn")]);
}

#[test]
fn aw_23_cycles_and_unknown_tasks_and_templates_are_rejected_by_name() {
    let manifest = with_templates(
        "  - name: main\n    dag:\n      tasks:\n      - {name: a, template: leaf, depends: c}\n      - {name: b, template: leaf, depends: a}\n      - {name: c, template: leaf, depends: b && d.Succeeded}\n      - {name: e, template: laef}\n  - {name: leaf, container: {image: busybox}}\n",
    );
    assert_eq!(
        wrongs(&manifest),
        [
            pair("OF1025", "spec.templates[0].dag.tasks[2].depends"),
            pair("OF1027", "spec.templates[0].dag.tasks[0]"),
            pair("OF1018", "spec.templates[0].dag.tasks[3].template"),
        ]
    );
    assert_eq!(message_of(&manifest, "OF1025"), "templates.main.tasks.c dependency 'd' not defined");
    assert_eq!(message_of(&manifest, "OF1027"), "templates.main.tasks dependency cycle detected: a->c->b->a");
    assert_eq!(message_of(&manifest, "OF1018"), "templates.main.tasks.e template name 'laef' undefined");
    let problems = judged(&manifest).unwrap_err();
    let help = problems.iter().find(|problem| problem.code == "OF1018").and_then(|problem| problem.help.as_deref());
    assert_eq!(help, Some("did you mean `leaf`?"));
}

#[test]
fn every_code_of_admission_has_a_page() {
    let pages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let sources = [include_str!("../../../../admit/code.rs"), include_str!("../../../../admit/shape.rs")];
    let codes: Vec<&str> =
        sources.iter().flat_map(|source| source.split('"')).filter(|text| text.starts_with("OF")).collect();
    assert!(codes.len() > 30, "only {codes:?} were found");
    for code in codes {
        let page =
            std::fs::read_to_string(pages.join(format!("{code}.md"))).unwrap_or_else(|error| panic!("{code}: {error}"));
        assert!(page.starts_with(&format!("# {code}: ")), "{code}");
    }
}

#[test]
fn a_misspelt_version_is_read_as_what_it_says_and_only_then() {
    let fine = with_templates("  - {name: main, container: {image: busybox}}\n");
    let misspelt = judged(&fine.replace("apiVersion", "dbapiVersion")).unwrap();
    assert_eq!(pairs(misspelt.warnings()), [pair("OF1003", "dbapiVersion")]);
    assert_eq!(misspelt.manifest()["apiVersion"], "argoproj.io/v1alpha1");
    let other = fine.replace("apiVersion: argoproj.io/v1alpha1", "dbapiVersion: v1");
    assert_eq!(wrongs(&other), [pair("OF1003", "dbapiVersion"), pair("OF1012", "apiVersion")]);
}

#[test]
fn locks_whose_limit_is_not_loaded_are_warned_of() {
    let locks = "{semaphores: [{configMapKeyRef: {name: c, key: k}}, {database: {key: d}}], mutexes: [{name: m}]}";
    let text = with_templates("  - {name: main, container: {image: busybox}, synchronization: LOCKS}\n");
    let admitted = judged(&text.replace("LOCKS", locks)).unwrap();
    let place = "spec.templates[0].synchronization.semaphores";
    let expected = [("OF1040", format!("{place}[0].configMapKeyRef.name")), ("OF1040", format!("{place}[1]"))];
    assert_eq!(pairs(admitted.warnings()), expected.map(|(code, path)| pair(code, &path)));
}
