//! Writes the fixture of a database format: a data directory with runs in flight, written by the binary of its day.
//! Never overwrites an existing fixture: today's code cannot reproduce what an earlier version wrote.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{root, step::Step};

const FIXTURES: &str = "crates/control/tests/fixtures";
/// Position of SQLite's `user_version`, which is our format, as four bytes in big-endian order.
const USER_VERSION: std::ops::Range<usize> = 60..64;
/// The longest pause or deadline in the manifests.
const LONGEST: Duration = Duration::from_secs(200);
/// Environment variable that makes the fixture tests write their expectations instead of comparing them.
const WRITE: &str = "OCTOFLOW_WRITE_EXPECTATIONS";

/// Writes the fixture of the format that `binary` writes, or a further one of that format with a name of its own.
/// `scratch` is a folder for intermediate files.
pub fn write(binary: &Path, name: Option<&str>, scratch: &Path) -> Result<PathBuf> {
    let archive = scratch.join("fixture.tar.gz");
    let script = root().join(FIXTURES).join("write.sh");
    // The script names the host, mounts, and kills every process it sees: it gets namespaces of its own, which takes
    // root.
    let mut words =
        ["--mount", "--uts", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "sh"].map(Into::into).to_vec();
    words.extend([script.into_os_string(), binary.as_os_str().to_owned(), archive.as_os_str().to_owned()]);
    Step::new("unshare", words).run()?;
    let format = format_of(&archive)?;
    let suffix = name.map(|name| format!("-{name}")).unwrap_or_default();
    let folder = root().join(FIXTURES).join(format!("format-{format}{suffix}"));
    let fixture = folder.join("written.tar.gz");
    if fixture.exists() {
        bail!("{} is there and kept as it is: give a further fixture of this format a name", folder.display());
    }
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    fs::copy(&archive, &fixture).with_context(|| format!("write {}", fixture.display()))?;
    fs::remove_file(&archive).with_context(|| format!("remove {}", archive.display()))?;
    println!("wrote {}", fixture.display());
    Ok(fixture)
}

/// Records what today's version finds in every fixture, and how its runs end. Review the diff before committing.
pub fn write_expectations() -> Result<()> {
    // A run whose deadline is yet to come ends in another way than the same run tomorrow.
    println!("waiting {} s, until every pause and deadline of the new fixture is over", LONGEST.as_secs());
    thread::sleep(LONGEST);
    for package in ["octoflow-control", "octoflow"] {
        let words = ["nextest", "run", "-p", package, "--test", "it", "journals::what_earlier_versions_left"];
        Step::cargo(words).env(WRITE, "1").run()?;
    }
    println!("read what `git diff {FIXTURES}` shows before it is committed");
    Ok(())
}

fn format_of(archive: &Path) -> Result<u32> {
    let words = ["-xzOf".into(), archive.as_os_str().to_owned(), "data/octoflow.db".into()];
    let database = Step::new("tar", words).read()?;
    let bytes = database.get(USER_VERSION).and_then(|bytes| bytes.try_into().ok());
    let format = u32::from_be_bytes(bytes.context("the database in the fixture is too short to be one")?);
    ensure!(format > 0, "the database in the fixture has no format");
    Ok(format)
}
