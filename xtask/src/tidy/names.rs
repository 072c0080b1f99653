//! Names of files, folders and modules: a name must say what is inside, and some names cannot.

use super::Problem;
use super::source::File;

const FORBIDDEN: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc", "manager", "imp"];

const WHY: &str = "a drawer collects whatever has no home; name the thing it owns";

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().filter(|file| file.is_rust()).flat_map(|file| path(file).into_iter().chain(modules(file))).collect()
}

fn path(file: &File) -> Option<Problem> {
    let bare = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    if bare.ends_with("/mod") {
        let why = "ten tabs called mod.rs cannot be told apart; use name.rs beside name/";
        return Some(Problem::new(&file.path, 0, "`mod.rs` is not used here", why));
    }
    let part = bare.split('/').find(|part| FORBIDDEN.contains(part))?;
    Some(Problem::new(&file.path, 0, format!("`{part}` is not a name"), WHY))
}

/// Finds inline modules, and those that a `#[path]` attribute would give another name.
fn modules(file: &File) -> Vec<Problem> {
    let numbered = file.text.lines().enumerate();
    numbered
        .filter_map(|(index, line)| {
            let name = module(line).filter(|name| FORBIDDEN.contains(name))?;
            let what = format!("`{name}` is not a name for a module");
            Some(Problem::new(&file.path, index + 1, what, WHY))
        })
        .collect()
}

fn module(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let (before, rest) = code.split_once("mod ")?;
    let visible = before.is_empty() || (before.starts_with("pub") && before.ends_with(' '));
    let end = rest.find([' ', ';', '{']).unwrap_or(rest.len());
    visible.then_some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&[File::new(path, text)]).len()
    }

    #[test]
    fn every_forbidden_name_is_refused_as_file_folder_and_module() {
        for name in FORBIDDEN {
            assert_eq!(count(&format!("crates/a/src/{name}.rs"), ""), 1);
            assert_eq!(count(&format!("crates/a/tests/{name}/b.rs"), ""), 1);
            assert_eq!(count("crates/a/src/b.rs", &format!("pub(crate) mod {name} {{\n")), 1);
        }
    }

    #[test]
    fn mod_rs_is_refused() {
        assert_eq!(count("crates/a/src/b/mod.rs", ""), 1);
    }

    #[test]
    fn a_name_that_only_contains_a_forbidden_one_is_fine() {
        let text = "mod utility;\nmod importer;\n// a mod util in prose\n";
        assert_eq!(count("crates/a/src/commons.rs", text), 0);
    }
}
