//! Malicious archives: each attack once in a tarball and once in a zip archive. None may write outside the target.

use std::{fs, io::Write, os::unix::fs::symlink};

use super::*;

const OWN_TGZ: Option<Archive> = None;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        fs::write(dir.path().join("outside"), "untouched").unwrap();
        Self { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// Places untrusted bytes at `/in`.
    fn put(&self, bytes: &[u8], archive: Option<Archive>) -> Result<(), String> {
        self.put_with(bytes, ArtifactInput { archive, ..input() }, None)
    }

    fn put_with(&self, bytes: &[u8], input: ArtifactInput, sub_path: Option<&str>) -> Result<(), String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let view = View::new(File::open(self.root()).unwrap().into());
        let artifact_file = ArtifactFile { file, size: bytes.len() as u64, own: false, maybe_tree: false };
        let placed = place(&view, &input, artifact_file, sub_path, "/");
        assert_eq!(fs::read_to_string(self.dir.path().join("outside")).unwrap(), "untouched");
        let beside: Vec<_> = fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(beside.len(), 2, "nothing was written beside the root: {beside:?}");
        placed
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

fn input() -> ArtifactInput {
    ArtifactInput {
        name: "in".to_owned(),
        path: "/in".to_owned(),
        source: octoflow_model::task::ArtifactSource::Raw { data: String::new() },
        mode: None,
        recurse_mode: false,
        archive: None,
    }
}

/// One entry of an archive to be made.
enum Entry<'a> {
    File(&'a str, &'a [u8], u32),
    Dir(&'a str),
    Link(&'a str, &'a str),
    Hard(&'a str, &'a str),
    Odd(&'a str, tar::EntryType),
}

/// Builds a tarball without the checks of a good builder.
fn tarball(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        let (name, kind, link, contents, mode): (_, _, _, &[u8], _) = match entry {
            Entry::File(name, contents, mode) => (*name, tar::EntryType::Regular, None, *contents, *mode),
            Entry::Dir(name) => (*name, tar::EntryType::Directory, None, b"", 0o755),
            Entry::Link(name, target) => (*name, tar::EntryType::Symlink, Some(*target), b"", 0o777),
            Entry::Hard(name, target) => (*name, tar::EntryType::Link, Some(*target), b"", 0o644),
            Entry::Odd(name, kind) => (*name, *kind, None, b"", 0o644),
        };
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        if let Some(link) = link {
            header.as_gnu_mut().unwrap().linkname[..link.len()].copy_from_slice(link.as_bytes());
        }
        header.set_entry_type(kind);
        header.set_size(contents.len() as u64);
        header.set_mode(mode);
        header.set_mtime(1);
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(contents);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn zipped(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for entry in entries {
        match entry {
            Entry::File(name, contents, mode) => {
                zip.start_file(*name, options.unix_permissions(*mode)).unwrap();
                zip.write_all(contents).unwrap();
            }
            Entry::Dir(name) => zip.add_directory(*name, options).unwrap(),
            Entry::Link(name, target) => zip.add_symlink(*name, *target, options).unwrap(),
            Entry::Hard(..) | Entry::Odd(..) => unreachable!("zip archives have none of these"),
        }
    }
    zip.finish().unwrap().into_inner()
}

/// Packs the same entries in both formats.
fn both(entries: &[Entry<'_>]) -> [(Vec<u8>, Option<Archive>); 2] {
    [(tarball(entries), OWN_TGZ), (zipped(entries), Some(Archive::Zip))]
}

fn refused(entries: &[Entry<'_>], why: &str) {
    for (bytes, archive) in both(entries) {
        let error = Place::new().put(&bytes, archive).unwrap_err();
        assert!(error.contains(why), "{archive:?}: {error}");
    }
}

#[test]
fn a_name_may_not_climb_and_a_link_may_not_leave() {
    assert_eq!(clean(Path::new("./a/./b")).unwrap(), Path::new("a/b"));
    assert!(clean(Path::new("a/../../b")).is_err() && clean(Path::new("/a")).is_err());
    assert!(!leads_out(Path::new("a/b/link"), Path::new("../../c")));
    assert!(leads_out(Path::new("a/link"), Path::new("../../c")));
    assert!(leads_out(Path::new("link"), Path::new("/etc")));
    assert!(leads_out(Path::new("link"), Path::new("x/../../y")));
    assert!(leads_out(Path::new("link"), Path::new("x/../y")));
}

#[test]
fn names_that_climb_or_are_absolute_are_refused() {
    refused(&[Entry::File("ok", b"1", 0o644), Entry::File("../outside", b"2", 0o644)], "leads out");
    refused(&[Entry::File("a/../../../outside", b"2", 0o644)], "leads out");
    refused(&[Entry::File("/outside", b"2", 0o644)], "leads out");
}

#[test]
fn links_that_lead_out_are_refused() {
    refused(&[Entry::File("ok", b"1", 0o644), Entry::Link("link", "../../outside")], "leads out");
    refused(&[Entry::File("ok", b"1", 0o644), Entry::Link("link", "/etc/passwd")], "leads out");
}

#[test]
fn nothing_is_written_through_a_link() {
    let entries =
        [Entry::Dir("a"), Entry::Link("link", "a"), Entry::File("link/x", b"2", 0o644), Entry::File("a/y", b"", 0o644)];
    refused(&entries, "through the link");
    let entries = [Entry::File("a", b"1", 0o644), Entry::Link("link", "a"), Entry::File("link", b"2", 0o644)];
    let bytes = tarball(&entries);
    assert!(Place::new().put(&bytes, None).unwrap_err().contains("through the link"));
}

#[test]
fn hard_links_reach_only_what_was_unpacked() {
    let good = tarball(&[Entry::File("a", b"1", 0o644), Entry::Hard("b", "a")]);
    let place = Place::new();
    place.put(&good, None).unwrap();
    assert_eq!(place.read("in/b"), "1");
    for (target, why) in [("../outside", "leads out"), ("/etc/passwd", "leads out"), ("nowhere", "not there")] {
        let bytes = tarball(&[Entry::File("a", b"1", 0o644), Entry::Hard("b", target)]);
        assert!(Place::new().put(&bytes, None).unwrap_err().contains(why), "{target}");
    }
    let bytes = tarball(&[Entry::File("a", b"1", 0o644), Entry::Link("l", "a"), Entry::Hard("b", "l")]);
    assert!(Place::new().put(&bytes, None).unwrap_err().contains("behind a link"));
}

#[test]
fn devices_and_pipes_are_refused() {
    for kind in [tar::EntryType::Char, tar::EntryType::Block, tar::EntryType::Fifo] {
        let bytes = tarball(&[Entry::File("ok", b"", 0o644), Entry::Odd("device", kind)]);
        assert!(Place::new().put(&bytes, None).unwrap_err().contains("neither file"), "{kind:?}");
    }
    // A zip archive says it in the upper bits of a mode, which our writer would not write.
    let mut bytes = zipped(&[Entry::File("pipe", b"", 0o644), Entry::File("b", b"", 0o644)]);
    let mode = |kind: u32| ((kind | 0o644) << 16).to_le_bytes();
    let at = bytes.windows(4).position(|window| window == mode(0o100_000)).unwrap();
    bytes[at..at + 4].copy_from_slice(&mode(0o010_000));
    assert!(Place::new().put(&bytes, Some(Archive::Zip)).unwrap_err().contains("neither file"));
}

#[test]
fn bits_that_lend_rights_are_dropped() {
    for (bytes, archive) in both(&[Entry::File("a/tool", b"x", 0o6755), Entry::File("a/plain", b"x", 0o640)]) {
        let place = Place::new();
        place.put(&bytes, archive).unwrap();
        let mode = |name: &str| fs::metadata(place.root().join(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("in/tool"), mode("in/plain")), (0o755, 0o640), "{archive:?}");
    }
}

#[test]
fn bombs_are_given_up_before_they_fill_the_disk() {
    // A gigabyte and a half of zeros: the same sixteen megabytes repeated, in an archive of two megabytes.
    let mut header = tar::Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(96 << 24);
    header.set_mode(0o644);
    header.set_cksum();
    let gzip = |bytes: &mut dyn Read| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        io::copy(bytes, &mut gzip).unwrap();
        gzip.finish().unwrap()
    };
    let mut bomb = gzip(&mut &header.as_bytes()[..]);
    bomb.extend(gzip(&mut io::repeat(0).take(1 << 24)).repeat(96));
    let error = Place::new().put(&bomb, None).unwrap_err();
    assert!(error.contains("archive bomb"), "{error}");
    let bytes = zipped(&[Entry::File("zeros", &[0; 1 << 20], 0o644)]);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let mut budget = Budget { bytes: 1 << 19, entries: 9 };
    let unpacked = items::each(&mut file, ArchiveFormat::Zip, &mut budget, &mut |_, bytes| {
        io::copy(bytes, &mut io::sink()).map(|_| true).map_err(said)
    });
    assert!(unpacked.unwrap_err().contains("archive bomb"));
}

#[test]
fn too_many_entries_are_refused() {
    let mut budget = Budget { bytes: u64::MAX, entries: 3 };
    let entries: Vec<Entry<'_>> = ["a", "b", "c", "d"].into_iter().map(|name| Entry::File(name, b"", 0o644)).collect();
    for (packed, bytes) in [(ArchiveFormat::Tar, tarball(&entries)), (ArchiveFormat::Zip, zipped(&entries))] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let error = items::each(&mut file, packed, &mut budget.clone(), &mut |_, _| Ok(true)).unwrap_err();
        assert!(error.contains("entries"), "{packed:?}: {error}");
    }
    budget.entries = 4;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&zipped(&entries)).unwrap();
    items::each(&mut file, ArchiveFormat::Zip, &mut budget, &mut |_, _| Ok(true)).unwrap();
}

#[test]
fn headers_that_would_fill_memory_are_refused() {
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..13].copy_from_slice(b"././@LongLink");
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(64 << 20);
    header.set_cksum();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(header.as_bytes()).unwrap();
    io::copy(&mut io::repeat(b'a').take(64 << 20), &mut gzip).unwrap();
    gzip.write_all(&tarball(&[Entry::File("x", b"", 0o644)])).unwrap();
    let error = Place::new().put(&gzip.finish().unwrap(), None).unwrap_err();
    assert!(error.contains("header"), "{error}");
}

#[test]
fn a_lone_thing_takes_the_targets_place_and_several_make_a_directory() {
    for (bytes, archive) in both(&[Entry::File("only", b"1", 0o644)]) {
        let place = Place::new();
        place.put(&bytes, archive).unwrap();
        assert_eq!(place.read("in"), "1");
    }
    for (bytes, archive) in both(&[Entry::File("dir/a", b"1", 0o644), Entry::File("dir/b/c", b"2", 0o644)]) {
        let place = Place::new();
        place.put(&bytes, archive).unwrap();
        assert_eq!((place.read("in/a"), place.read("in/b/c")), ("1".into(), "2".into()));
    }
    for (bytes, archive) in both(&[Entry::File("a", b"1", 0o644), Entry::File("b", b"2", 0o644)]) {
        let place = Place::new();
        place.put(&bytes, archive).unwrap();
        assert_eq!((place.read("in/a"), place.read("in/b")), ("1".into(), "2".into()));
    }
}

#[test]
fn a_zip_archive_is_only_unpacked_when_it_is_called_one() {
    let bytes = zipped(&[Entry::File("a", b"1", 0o644)]);
    let place = Place::new();
    place.put(&bytes, None).unwrap();
    assert_eq!(fs::read(place.root().join("in")).unwrap(), bytes);
    let error = Place::new().put(b"no archive", Some(Archive::Zip)).unwrap_err();
    assert!(error.contains("no zip archive"), "{error}");
    let error = Place::new().put(b"no archive", Some(Archive::Tar { level: None })).unwrap_err();
    assert!(error.contains("said to be a tarball"), "{error}");
}

#[test]
fn a_part_and_its_mode_are_taken_from_both_kinds() {
    let entries = [Entry::File("d/x/a", b"1", 0o600), Entry::File("d/y", b"2", 0o600), Entry::Link("d/x/up", "../y")];
    for (bytes, archive) in both(&entries[..2]) {
        let place = Place::new();
        let input = ArtifactInput { archive, mode: Some(0o711), recurse_mode: true, ..input() };
        place.put_with(&bytes, input, Some("x")).unwrap();
        assert_eq!(place.read("in/a"), "1");
        let mode = fs::metadata(place.root().join("in/a")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o711);
        assert!(!place.root().join("in/y").exists());
    }
    for (bytes, archive) in both(&entries) {
        let error = Place::new().put_with(&bytes, ArtifactInput { archive, ..input() }, Some("x")).unwrap_err();
        assert!(error.contains("leads out"), "a link out of the part that is taken: {error}");
    }
}

#[test]
fn the_tasks_own_links_are_followed_inside_its_root_only() {
    let place = Place::new();
    symlink("/../outside", place.root().join("in")).unwrap();
    // Inside the root that name means `/outside` there, which does not exist.
    let _ = place.put(b"text", Some(Archive::None));
    assert!(!place.root().join("in").is_dir());
}
