//! Machine-specific paths and hosts of package registries: neither belongs in a file that others clone. The patterns
//! are assembled from pieces so that this file does not match itself.

use super::Problem;
use super::source::File;

/// First folders of absolute paths that exist only on a particular machine.
const FOLDERS: &[&str] = &["work", "root", "farm"];

/// Paths below such folders that formats prescribe inside of tasks, in pieces.
const INSIDE_TASKS: &[(&str, &str)] = &[("root", ".ssh")];

/// Hosts that serve packages. Such addresses come from the user's configuration, never from us.
const HOSTS: &[(&str, &str)] = &[
    ("index.crates", "io"),
    ("static.crates", "io"),
    ("registry", "npmjs.org"),
    ("registry", "yarnpkg.com"),
    ("pypi", "org"),
    ("files.pythonhosted", "org"),
    ("proxy.golang", "org"),
];

/// The one registry that a lock file may name: the public index that cargo writes by default.
const PUBLIC: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().flat_map(in_file).collect()
}

fn in_file(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for folder in FOLDERS.iter().filter(|folder| has_path(line, folder)) {
            let what = format!("names a path below /{folder}");
            let why = "that path exists on one machine only; say it relative to the checkout";
            problems.push(Problem::new(&file.path, index + 1, what, why));
        }
        if let Some(host) = registry(line) {
            let what = format!("names the package registry {host}");
            let why = "where packages come from is the user's configuration, and may be private";
            problems.push(Problem::new(&file.path, index + 1, what, why));
        }
    }
    problems
}

/// Returns whether the line has an absolute path with this folder: `$dir/work/`, `./work/` and `data/work/` are
/// relative.
fn has_path(line: &str, folder: &str) -> bool {
    let pattern = ["/", folder, "/"].concat();
    line.match_indices(&pattern).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + pattern.len()..];
        if INSIDE_TASKS.iter().any(|(known, rest)| *known == folder && after.starts_with(rest)) {
            return false;
        }
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}*)]>".contains(c))
    })
}

fn registry(line: &str) -> Option<String> {
    let known = HOSTS.iter().map(|(name, top)| [name, ".", top].concat());
    if let Some(host) = known.into_iter().find(|host| line.contains(host.as_str())) {
        return Some(host);
    }
    let (_, rest) =
        line.split_once(&["registry", "+http"].concat()).or_else(|| line.split_once(&["sparse", "+http"].concat()))?;
    if line.contains(PUBLIC) {
        return None;
    }
    let host = rest.trim_start_matches(['s', ':', '/']);
    let end = host.find(['/', '"', ' ']).unwrap_or(host.len());
    Some(host[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> usize {
        check(&[File::new("docs/a.md", line)]).len()
    }

    #[test]
    fn every_machine_path_is_found() {
        for folder in FOLDERS {
            for before in ["", "see `", "cd ", "\"", "file://"] {
                let line = [before, "/", folder, "/x"].concat();
                assert_eq!(found(&line), 1, "{line}");
            }
        }
    }

    #[test]
    fn a_relative_path_with_such_a_folder_is_fine() {
        for line in ["attempt/work/x", "./work/x", "{dir}/work/x", "$DIR/root/x", "~/work/x"] {
            assert_eq!(found(line), 0, "{line}");
        }
    }

    #[test]
    fn a_path_that_a_format_prescribes_inside_of_tasks_is_fine() {
        assert_eq!(found(&["key: /", "root", "/.ssh/id"].concat()), 0);
        assert_eq!(found(&["key: /", "root", "/.cargo/id"].concat()), 1);
    }

    #[test]
    fn every_registry_host_is_found() {
        for (name, top) in HOSTS {
            assert_eq!(found(&["https://", name, ".", top, "/x"].concat()), 1);
        }
    }

    #[test]
    fn a_lock_file_may_name_the_public_index_and_no_other() {
        assert_eq!(found(&["source = \"", PUBLIC, "\""].concat()), 0);
        let private = ["source = \"registry", "+https://crates.example/index\""].concat();
        let problems = check(&[File::new("Cargo.lock", &private)]);
        assert_eq!(problems[0].what, "names the package registry crates.example");
    }

    #[test]
    fn the_line_is_given() {
        let text = ["fine\n", "/", "farm", "/x\n"].concat();
        assert_eq!(check(&[File::new("a", &text)])[0].line, 2);
    }
}
