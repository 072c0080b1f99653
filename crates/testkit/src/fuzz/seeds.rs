//! The texts the fuzzer begins with: files in the project, one folder a target. Texts that once broke something lie
//! among them for ever.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The seeds of one target, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Seeds(pub Vec<(String, Vec<u8>)>);

/// What the names of files begin with that hold a text which once broke something.
pub const BROKE: &str = "broke-";

/// Where the seeds of a target lie.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

impl Seeds {
    /// Everything a target begins with. The project's own manifests, right and wrong, are seeds too.
    pub fn of(target: &str) -> io::Result<Self> {
        let mut seeds = Self::load(&folder(target))?;
        seeds.0.retain(|(name, _)| !name.starts_with(BROKE));
        if target == "manifest" {
            for more in ["../../examples/argo", "../octoflow/tests/lint"] {
                seeds.0.extend(Self::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(more))?.0);
            }
        }
        Ok(seeds)
    }

    /// The texts that once broke something. They are tried again, and nothing grows from them: a case must stay the same
    /// when one is added.
    pub fn broken(target: &str) -> io::Result<Self> {
        let mut seeds = Self::load(&folder(target))?;
        seeds.0.retain(|(name, _)| name.starts_with(BROKE));
        Ok(seeds)
    }

    /// In a file named `*.list` every line is a seed of its own.
    fn load(folder: &Path) -> io::Result<Self> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
        files.sort();
        let mut seeds = Vec::new();
        for file in files {
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let bytes = fs::read(&file)?;
            if name.ends_with(".list") {
                let lines = bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
                seeds.extend(lines.map(|(number, line)| (format!("{name}:{}", number + 1), line.to_vec())));
            } else {
                seeds.push((name, bytes));
            }
        }
        Ok(Self(seeds))
    }
}
