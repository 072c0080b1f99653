//! One name, one meaning: a type that the rest of its crate can see has a name that no other such type of the crate has.
//! The same file of several dialects may repeat it, because it means the same there. Each exception has a reason, and
//! the list may only become shorter.

use std::collections::BTreeMap;

use super::Problem;
use super::source::File;

const WHY: &str =
    "a reader who has met the name once must not have to learn it again; `docs/glossary.md` has the words";

/// Folders whose subfolders are dialects.
const DIALECTS: &[&str] = &["crates/engine/src/dialects/", "crates/model/src/"];

/// Crates that are not shipped: their names are the tests' own.
const NOT_SHIPPED: &[&str] = &["crates/testkit/", "xtask/"];

/// Names that a crate may give more than one type.
struct Exception {
    name: &'static str,
    root: &'static str,
    why: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception { name: "Run", root: "crates/engine", why: "the run of any dialect is a box around that of one" },
    Exception { name: "Program", root: "crates/engine", why: "the program of any dialect is a box around that of one" },
    Exception {
        name: "State",
        root: "crates/engine",
        why: "the state of a run is one concept, in whichever file a dialect has it",
    },
    Exception {
        name: "Preemptions",
        root: "crates/engine",
        why: "what is known of a task's preemptions is one concept in all dialects",
    },
    Exception {
        name: "Error",
        root: "crates/runtime",
        why: "each module has its error, which others write with its module",
    },
];

/// Where a type of some name is declared: file, line, and what the file is about.
type Places<'a> = Vec<(&'a str, usize, &'a str)>;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut seen: BTreeMap<(&str, &str), Places<'_>> = BTreeMap::new();
    let shipped = |file: &&File| file.is_rust() && !NOT_SHIPPED.iter().any(|root| file.is_under(root));
    for file in files.iter().filter(shipped) {
        let Some((root, _)) = file.path.split_once("/src/") else { continue };
        for (number, line) in file.production() {
            let Some(name) = declared(line) else { continue };
            let places = seen.entry((root, name)).or_default();
            // The same type for another target, or the same file of another dialect.
            if !places.iter().any(|(_, _, place)| *place == concept(&file.path)) {
                places.push((&file.path, number, concept(&file.path)));
            }
        }
    }
    let excepted = |root: &str, name: &str| EXCEPTIONS.iter().any(|one| one.root == root && one.name == name);
    let mut problems = Vec::new();
    for ((root, name), places) in &seen {
        if places.len() > 1 && !excepted(root, name) {
            let others: Vec<&str> = places[1..].iter().map(|(path, ..)| *path).collect();
            let what = format!("`{name}` is the name of another type too: {}", others.join(", "));
            problems.push(Problem::new(places[0].0, places[0].1, what, WHY));
        }
    }
    for one in EXCEPTIONS {
        let there = files.iter().any(|file| file.is_under(one.root));
        if there && seen.get(&(one.root, one.name)).is_none_or(|places| places.len() < 2) {
            let what =
                format!("`{}` of {} has one meaning now; it was excepted because {}", one.name, one.root, one.why);
            problems.push(Problem::new("xtask/src/tidy/homonyms.rs", 0, what, "take it off the list"));
        }
    }
    problems
}

/// Returns the file without its dialect.
fn concept(path: &str) -> &str {
    let inside = DIALECTS.iter().find_map(|folder| path.strip_prefix(folder));
    inside.and_then(|inside| inside.split_once('/')).map_or(path, |(_, file)| file)
}

/// Returns the name of the type that the line declares for others than its own module.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(") ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(files: &[(&str, &str)]) -> usize {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        check(&files).iter().filter(|problem| problem.path != "xtask/src/tidy/homonyms.rs").count()
    }

    #[test]
    fn two_visible_types_of_a_crate_have_two_names() {
        let (one, two) =
            (("crates/a/src/b.rs", "pub struct Plan;\n"), ("crates/a/src/c.rs", "pub(super) enum Plan {\n"));
        assert_eq!(count(&[one, two]), 1);
        assert_eq!(count(&[one, ("crates/a/src/c.rs", "struct Plan;\n")]), 0, "private to its module");
        assert_eq!(count(&[one, ("crates/x/src/c.rs", "pub struct Plan;\n")]), 0, "another crate");
        assert_eq!(count(&[one, ("crates/a/tests/it/c.rs", "pub struct Plan;\n")]), 0, "a test");
        assert_eq!(count(&[one, ("crates/a/src/c.rs", "pub struct Planned;\n")]), 0, "another name");
    }

    #[test]
    fn the_same_file_of_several_dialects_repeats_its_names() {
        let file = |dialect: &str, name: &str| format!("crates/engine/src/dialects/{dialect}/{name}.rs");
        let (argo, volcano) = (file("argo", "turn"), file("volcano", "turn"));
        assert_eq!(count(&[(&argo, "pub struct Turn;\n"), (&volcano, "pub struct Turn;\n")]), 0);
        let elsewhere = file("volcano", "phase");
        assert_eq!(count(&[(&argo, "pub struct Turn;\n"), (&elsewhere, "pub struct Turn;\n")]), 1);
    }

    #[test]
    fn a_name_that_has_one_meaning_is_taken_off_the_list() {
        let file = File::new("crates/engine/src/run.rs", "pub struct Run;\n");
        let told = check(&[file]);
        assert!(told.iter().any(|problem| problem.what.contains("`Run`")), "{told:?}");
    }
}
