//! The allowed dependencies between crates. The table here is the architecture; a dependency that is not in it is
//! refused, and so is a crate it does not list.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Problem;

/// Every crate of the project and the crates of ours it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "octoflow",
        &[
            "octoflow-server",
            "octoflow-control",
            "octoflow-engine",
            "octoflow-store",
            "octoflow-runtime",
            "octoflow-manifest",
            "octoflow-model",
        ],
    ),
    ("octoflow-server", &["octoflow-control", "octoflow-model"]),
    ("octoflow-control", &["octoflow-engine", "octoflow-store", "octoflow-runtime", "octoflow-model"]),
    ("octoflow-engine", &["octoflow-model", "octoflow-manifest"]),
    ("octoflow-store", &["octoflow-model"]),
    ("octoflow-runtime", &["octoflow-model"]),
    ("octoflow-manifest", &[]),
    ("octoflow-model", &[]),
    (
        TESTKIT,
        &[
            "octoflow-control",
            "octoflow-store",
            "octoflow-runtime",
            "octoflow-engine",
            "octoflow-manifest",
            "octoflow-model",
        ],
    ),
    (MENU, &[]),
];

const TESTKIT: &str = "octoflow-testkit";
const MENU: &str = "xtask";

/// A crate of the workspace as cargo describes it.
pub(super) struct Package {
    pub(super) name: String,
    /// Path of its Cargo.toml from the root.
    pub(super) manifest: String,
    pub(super) dependencies: Vec<Dependency>,
}

pub(super) struct Dependency {
    pub(super) name: String,
    /// True if only tests, examples and benchmarks need it.
    pub(super) dev: bool,
}

pub(super) fn read(root: &Path, metadata: &Value) -> Result<Vec<Package>> {
    let packages = metadata["packages"].as_array().context("cargo's metadata lists no packages")?;
    packages.iter().map(|package| one(root, package)).collect()
}

pub(super) fn check(packages: &[Package]) -> Vec<Problem> {
    packages.iter().flat_map(arrows).collect()
}

/// Returns whether the name is that of a crate of the project.
pub(super) fn is_ours(name: &str) -> bool {
    ALLOWED.iter().any(|(ours, _)| *ours == name)
}

fn one(root: &Path, package: &Value) -> Result<Package> {
    let text = |value: &Value, field: &str| {
        value[field]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("cargo's metadata has a package without `{field}`"))
    };
    let manifest = text(package, "manifest_path")?;
    let relative = Path::new(&manifest).strip_prefix(root);
    let dependencies =
        package["dependencies"].as_array().context("cargo's metadata has a package without `dependencies`")?;
    Ok(Package {
        name: text(package, "name")?,
        manifest: relative.map_or(manifest.clone(), |path| path.display().to_string()),
        dependencies: dependencies
            .iter()
            .map(|dependency| Ok(Dependency { name: text(dependency, "name")?, dev: dependency["kind"] == "dev" }))
            .collect::<Result<_>>()?,
    })
}

fn arrows(package: &Package) -> Vec<Problem> {
    let row = ALLOWED.iter().find(|(name, _)| *name == package.name);
    let Some((_, allowed)) = row else {
        return vec![Problem::new(
            &package.manifest,
            0,
            format!("crate `{}` is not in the table of arrows", package.name),
            "a new crate needs a decision record: add it here and in docs/decisions",
        )];
    };
    let ours = package.dependencies.iter().filter(|to| is_ours(&to.name));
    ours.filter_map(|to| {
        let why = refusal(&package.name, to, allowed)?;
        let what = format!("`{}` depends on `{}`", package.name, to.name);
        Some(Problem::new(&package.manifest, 0, what, why))
    })
    .collect()
}

fn refusal(from: &str, to: &Dependency, allowed: &[&str]) -> Option<&'static str> {
    if from == MENU {
        Some("the menu must run even when the crates of the project do not compile")
    } else if to.dev || allowed.contains(&to.name.as_str()) {
        None
    } else if to.name == TESTKIT {
        Some("the testkit is for tests: name it in [dev-dependencies] only")
    } else {
        Some("arrows go down only, so that every crate can be read and tested without those above")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, to: &str, dev: bool) -> Package {
        Package {
            name: name.to_owned(),
            manifest: "crates/x/Cargo.toml".to_owned(),
            dependencies: vec![Dependency { name: to.to_owned(), dev }],
        }
    }

    #[test]
    fn an_arrow_down_is_fine_and_an_arrow_up_is_not() {
        let down = package("octoflow-control", "octoflow-engine", false);
        let up = package("octoflow-engine", "octoflow-control", false);
        assert_eq!(check(&[down]), []);
        let problems = check(&[up]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].what.contains("`octoflow-control`"));
    }

    #[test]
    fn the_leaves_know_nobody() {
        for leaf in ["octoflow-model", "octoflow-manifest", "xtask"] {
            let all = ["octoflow", "octoflow-store", "octoflow-model", "octoflow-manifest"];
            for to in all.into_iter().filter(|to| *to != leaf) {
                assert_eq!(check(&[package(leaf, to, false)]).len(), 1, "{leaf} -> {to}");
            }
        }
    }

    #[test]
    fn the_testkit_is_a_dev_dependency_or_an_error() {
        assert_eq!(check(&[package("octoflow", TESTKIT, true)]), []);
        let problems = check(&[package("octoflow", TESTKIT, false)]);
        assert!(problems[0].why.contains("dev-dependencies"));
    }

    #[test]
    fn the_menu_needs_no_crate_of_ours_even_for_tests() {
        assert_eq!(check(&[package(MENU, "octoflow-model", true)]).len(), 1);
    }

    #[test]
    fn an_unknown_crate_asks_for_a_decision_record() {
        let problems = check(&[package("octoflow-surprise", "serde", false)]);
        assert!(problems[0].why.starts_with("a new crate needs a decision record"));
    }

    #[test]
    fn cargos_words_for_kinds_are_understood() {
        let metadata = json!({"packages": [{
            "name": "octoflow-store",
            "manifest_path": "/src/crates/store/Cargo.toml",
            "dependencies": [
                {"name": "octoflow-model", "kind": null},
                {"name": "octoflow-testkit", "kind": "dev"},
                {"name": "cc", "kind": "build"},
            ],
        }]});
        let packages = read(Path::new("/src"), &metadata).unwrap();
        assert_eq!(packages[0].manifest, "crates/store/Cargo.toml");
        let dev: Vec<bool> = packages[0].dependencies.iter().map(|d| d.dev).collect();
        assert_eq!(dev, [false, true, false]);
    }

    #[test]
    fn metadata_of_another_shape_is_an_error() {
        assert!(read(Path::new("/"), &json!({"packages": [{"name": "a"}]})).is_err());
        assert!(read(Path::new("/"), &json!({})).is_err());
    }
}
