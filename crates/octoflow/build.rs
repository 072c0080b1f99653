//! Embeds the pages of `docs/errors` so that `octoflow explain OF1003` works without files or network.
//! It only lists what is there; a code without a page is an answer of the command, not of the build.

use std::{env, fmt::Write, fs, path::Path};

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let target = env::var("OUT_DIR").expect("cargo sets it");
    let pages = Path::new(&here).join("../../docs/errors");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", pages.display());

    let mut found: Vec<_> = fs::read_dir(&pages)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .filter(|path| path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.starts_with("OF")))
        .collect();
    found.sort();

    let mut code =
        String::from("/// Every error page, by code, in order.\npub(crate) static PAGES: &[(&str, &str)] = &[\n");
    for path in &found {
        let stem = path.file_stem().expect("filtered above").to_string_lossy();
        writeln!(code, "    ({stem:?}, include_str!({:?})),", path.display().to_string())
            .expect("writing to memory does not fail");
    }
    code.push_str("];\n");
    fs::write(Path::new(&target).join("pages.rs"), code).expect("the build directory can be written");
}
