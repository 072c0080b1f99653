//! Every manifest of the shared corpus is read.

use std::fs;
use std::path::{Path, PathBuf};

use octoflow_manifest::{Limits, read, to_yaml};

/// Broken on purpose.
const BROKEN: &str = "basic-invalid.yaml";

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn every_manifest_of_the_corpus_is_read_and_written_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/argo");
    if !folder.is_dir() {
        assert!(std::env::var_os("CI").is_none(), "the corpus must be there in CI");
        eprintln!("SKIPPED: no corpus at {}", folder.display());
        return;
    }
    let mut files = Vec::new();
    yaml_files(&folder, &mut files);
    assert!(files.len() > 200, "only {} files in the corpus", files.len());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy();
        if name == BROKEN {
            assert!(read(&name, &bytes, &Limits::default()).is_err());
            continue;
        }
        let documents = match read(&name, &bytes, &Limits::default()) {
            Ok(documents) => documents,
            Err(problems) => panic!("{problems}"),
        };
        assert!(!documents.is_empty(), "{name} has no document");
        for document in documents {
            assert!(document.value["kind"].is_string(), "{name}: {:?}", document.value);
            let again = read("again", to_yaml(&document.value).as_bytes(), &Limits::default());
            assert_eq!(again.unwrap()[0].value, document.value, "{name}");
        }
    }
}
