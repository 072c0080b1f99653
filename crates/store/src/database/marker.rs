//! The marker file that records that a data directory has a database, so that a missing or empty one is not mistaken
//! for a new directory. It is written after the database is durable, so it never claims too much.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use crate::{
    Error,
    database::{connect, schema},
};

/// Name of the marker. It is beside the database and named alike, so that a copy of one includes the other.
pub(crate) const FILE: &str = "octoflow.id";

/// Folders that have content only if the directory has had a database.
const TRACES: [&str; 3] = ["logs", "artifacts", "spawner"];

/// Refuses a directory whose database is missing or empty although it had one. Looks at files only: SQLite would delete
/// the log of a missing database.
pub(crate) fn check(data_dir: &Path) -> Result<(), Error> {
    let what = match fs::metadata(connect::database(data_dir)) {
        Ok(about) if about.len() > 0 => return Ok(()),
        Ok(_) => "its file is empty",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "its file is missing",
        Err(error) => return Err(connect::file_error("open", &connect::database(data_dir), error)),
    };
    let log = format!("{}-wal", schema::FILE);
    let logged = || fs::metadata(data_dir.join(&log)).is_ok_and(|about| about.len() > 0);
    let proof = proof(data_dir).or_else(|| logged().then(|| format!("its log `{log}` is there")));
    proof.map_or(Ok(()), |proof| Err(Error::Lost { data_dir: data_dir.to_owned(), what, proof }))
}

/// Does the same for a database without tables. Its log proves nothing: it may belong to a creation that was never
/// completed.
pub(crate) fn check_blank(data_dir: &Path) -> Result<(), Error> {
    let lost = |proof| Error::Lost { data_dir: data_dir.to_owned(), what: "its file holds nothing", proof };
    proof(data_dir).map_or(Ok(()), |proof| Err(lost(proof)))
}

pub(crate) fn exists(data_dir: &Path) -> bool {
    data_dir.join(FILE).exists()
}

/// Records that the directory has a database, which the caller has made durable. Returns whether the marker was
/// written; the caller then syncs the directory.
pub(crate) fn write(data_dir: &Path, id: u64) -> Result<bool, Error> {
    let path = data_dir.join(FILE);
    let text = format!("{id:016x}\n");
    if fs::read_to_string(&path).is_ok_and(|found| found == text) {
        return Ok(false);
    }
    let draft = data_dir.join(format!("{FILE}.new"));
    let put = || {
        let mut file = File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, &path)
    };
    put().map_err(|error| connect::file_error("write", &path, error))?;
    Ok(true)
}

/// Returns the evidence that there was a database.
fn proof(data_dir: &Path) -> Option<String> {
    if data_dir.join(FILE).exists() {
        return Some(format!("`{FILE}` says that there was one"));
    }
    let full = |folder: &&&str| fs::read_dir(data_dir.join(folder)).is_ok_and(|mut entries| entries.next().is_some());
    TRACES.iter().find(full).map(|folder| format!("`{folder}/` holds what runs left"))
}
