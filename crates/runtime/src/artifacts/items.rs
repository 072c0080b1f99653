//! Iterates over the entries of an archive, with one interface for tarballs and zip archives. Trusts nothing and writes
//! nothing; the caller decides what to do with an entry.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;

use super::budget::{Budget, BudgetReader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveFormat {
    Plain,
    Tar,
    TarGz,
    Zip,
}

#[derive(Debug)]
pub(super) struct ArchiveEntry {
    pub(super) name: PathBuf,
    pub(super) kind: EntryKind,
    /// Permission bits, if the archive has them.
    pub(super) mode: Option<u32>,
    /// Modification time in seconds since the epoch.
    pub(super) modified: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Dir,
    Symlink(PathBuf),
    HardLink(PathBuf),
    /// Devices, pipes and unknown types.
    Other,
}

/// Detects the format from the content. Never detects a zip archive, which must be asked for.
pub(super) fn detect_format(file: &mut File) -> io::Result<ArchiveFormat> {
    let is_tar = |head: &[u8]| head.len() >= 262 && &head[257..262] == b"ustar";
    let mut head = Vec::new();
    file.rewind()?;
    Read::by_ref(file).take(512).read_to_end(&mut head)?;
    if is_tar(&head) {
        return Ok(ArchiveFormat::Tar);
    }
    if head.starts_with(&[0x1f, 0x8b]) {
        file.rewind()?;
        let mut inner = Vec::new();
        // Bytes that only look like gzip are an ordinary file.
        if MultiGzDecoder::new(BufReader::new(file)).take(512).read_to_end(&mut inner).is_ok() && is_tar(&inner) {
            return Ok(ArchiveFormat::TarGz);
        }
    }
    Ok(ArchiveFormat::Plain)
}

/// Calls `take` for every entry, in the archive's order, with the entry's bytes. `Ok(false)` ends the iteration.
pub(super) fn each(
    file: &mut File,
    packed: ArchiveFormat,
    budget: &mut Budget,
    take: &mut dyn FnMut(ArchiveEntry, &mut dyn Read) -> Result<bool, String>,
) -> Result<(), String> {
    file.rewind().map_err(said)?;
    match packed {
        ArchiveFormat::Zip => each_of_zip(file, budget, take),
        ArchiveFormat::TarGz => each_of_tar(MultiGzDecoder::new(BufReader::new(file)), budget, take),
        ArchiveFormat::Tar | ArchiveFormat::Plain => each_of_tar(BufReader::new(file), budget, take),
    }
}

/// Limit of a header: headers with long names are read into memory.
const MAX_HEADER: u64 = 1 << 20;

/// Checks the headers of an untrusted tarball without trusting the lengths they claim.
pub(super) fn check_headers(file: &mut File, packed: ArchiveFormat, mut budget: Budget) -> Result<(), String> {
    file.rewind().map_err(said)?;
    let bytes: Box<dyn Read + '_> = match packed {
        ArchiveFormat::TarGz => Box::new(MultiGzDecoder::new(BufReader::new(file))),
        ArchiveFormat::Tar => Box::new(BufReader::new(file)),
        ArchiveFormat::Zip | ArchiveFormat::Plain => return Ok(()),
    };
    let mut archive = tar::Archive::new(BudgetReader::new(bytes, &mut budget));
    for entry in archive.entries().map_err(said)?.raw(true) {
        let entry = entry.map_err(said)?;
        let kind = entry.header().entry_type();
        let carries_text = kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions();
        if carries_text && entry.header().entry_size().map_err(said)? > MAX_HEADER {
            return Err("it has a header of more than a megabyte, which no ordinary archive has".to_owned());
        }
    }
    Ok(())
}

fn each_of_tar(
    bytes: impl Read,
    budget: &mut Budget,
    take: &mut dyn FnMut(ArchiveEntry, &mut dyn Read) -> Result<bool, String>,
) -> Result<(), String> {
    let mut counted = *budget;
    let mut archive = tar::Archive::new(BudgetReader::new(bytes, budget));
    for entry in archive.entries().map_err(said)? {
        let mut entry = entry.map_err(said)?;
        counted.count_entry()?;
        let header = entry.header();
        let kind = header.entry_type();
        let target = |entry: &tar::Entry<'_, _>| -> Result<PathBuf, String> {
            Ok(entry.link_name().map_err(said)?.ok_or("a link without a target")?.into_owned())
        };
        let item = ArchiveEntry {
            name: entry.path().map_err(said)?.into_owned(),
            mode: header.mode().ok(),
            modified: header.mtime().ok(),
            kind: if kind.is_dir() {
                EntryKind::Dir
            } else if kind.is_file() || kind.is_contiguous() {
                EntryKind::File
            } else if kind.is_symlink() {
                EntryKind::Symlink(target(&entry)?)
            } else if kind.is_hard_link() {
                EntryKind::HardLink(target(&entry)?)
            } else if kind.is_pax_global_extensions() {
                continue;
            } else {
                EntryKind::Other
            },
        };
        if !take(item, &mut entry)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Limit of a link target: a zip archive stores it as content, and no path is longer.
const MAX_LINK: u64 = 4096;

fn each_of_zip(
    file: &mut File,
    budget: &mut Budget,
    take: &mut dyn FnMut(ArchiveEntry, &mut dyn Read) -> Result<bool, String>,
) -> Result<(), String> {
    // The directory at the end is read into memory, so its length is checked first.
    if claimed_entries(file).map_err(said)?.is_some_and(|count| count > budget.entries) {
        return Err(format!("it has more than {} entries", budget.entries));
    }
    let mut archive =
        zip::ZipArchive::new(BufReader::new(file)).map_err(|error| format!("it is no zip archive: {error}"))?;
    for index in 0..archive.len() {
        budget.count_entry()?;
        let mut entry = archive.by_index(index).map_err(|error| match error {
            zip::result::ZipError::UnsupportedArchive(why) => format!("its entry {index} cannot be read here: {why}"),
            other => format!("its entry {index} cannot be read: {other}"),
        })?;
        let name = Path::new(OsStr::from_bytes(entry.name_raw())).to_owned();
        let mode = entry.unix_mode();
        let format = mode.map_or(0, |mode| mode & 0o170_000);
        let is_dir = entry.name_raw().ends_with(b"/");
        let kind = match format {
            0o120_000 => {
                let mut target = Vec::new();
                BudgetReader::new(&mut entry, budget).take(MAX_LINK).read_to_end(&mut target).map_err(said)?;
                EntryKind::Symlink(PathBuf::from(OsStr::from_bytes(&target)))
            }
            _ if is_dir => EntryKind::Dir,
            0 | 0o100_000 => EntryKind::File,
            0o040_000 => EntryKind::Dir,
            _ => EntryKind::Other,
        };
        let item =
            ArchiveEntry { name, kind, mode: mode.map(|mode| mode & 0o7777).filter(|mode| *mode != 0), modified: None };
        if !take(item, &mut BudgetReader::new(&mut entry, budget))? {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the number of entries that a zip archive claims in the record at its end; `None` if there is no such record.
fn claimed_entries(file: &mut File) -> io::Result<Option<u64>> {
    const END: [u8; 4] = *b"PK\x05\x06";
    const END_64: [u8; 4] = *b"PK\x06\x06";
    let length = file.seek(SeekFrom::End(0))?;
    let tail = length.min(66 * 1024 + 200);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = Vec::new();
    Read::by_ref(file).take(tail).read_to_end(&mut bytes)?;
    file.rewind()?;
    let last = |mark: [u8; 4]| bytes.windows(4).rposition(|window| window == mark);
    let number = |at: usize, size: usize| -> Option<u64> {
        let mut value = [0; 8];
        value[..size].copy_from_slice(bytes.get(at..at + size)?);
        Some(u64::from_le_bytes(value))
    };
    let large = last(END_64).and_then(|at| number(at + 32, 8));
    let small = last(END).and_then(|at| number(at + 10, 2));
    Ok(large.max(small))
}

pub(super) fn said(error: io::Error) -> String {
    error.to_string()
}
