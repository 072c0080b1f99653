//! Outputs collected after the end, and inputs staged before the start.

use std::{fs, io::Write, path::Path};

use octoflow_model::{
    order::{Collected, Exit, Found, Order},
    task::{
        Archive, ArtifactInput, ArtifactOutput, ArtifactSource, Mount, MountSource, StoredArtifact, Task, WantedOutputs,
    },
};
use octoflow_runtime::{artifacts::Store, port::Runtime as _};

use crate::rig::{Rig, fresh_dir, sh};

const TGZ: Archive = Archive::Tar { level: None };

fn output(name: &str, path: &str, archive: Archive) -> ArtifactOutput {
    ArtifactOutput {
        name: name.to_owned(),
        path: path.to_owned(),
        archive,
        key: format!("key/{name}"),
        ..ArtifactOutput::default()
    }
}

fn input(path: &str, artifact: &StoredArtifact) -> ArtifactInput {
    ArtifactInput {
        name: "in".to_owned(),
        path: path.to_owned(),
        source: ArtifactSource::Stored { artifact: artifact.clone(), sub_path: None },
        mode: None,
        recurse_mode: false,
        archive: None,
    }
}

fn collect(rig: &mut Rig, script: &str, wanted: WantedOutputs) -> Collected {
    let (attempt, end) = rig.run(Task { wanted, ..sh(script) });
    assert_eq!(end.exit, Exit::Code(0));
    rig.runtime().send(vec![Order::Forget { attempt }]);
    end.collected
}

fn saved(rig: &mut Rig, script: &str, path: &str, archive: Archive) -> StoredArtifact {
    let wanted = WantedOutputs { artifacts: vec![output("out", path, archive)], ..WantedOutputs::default() };
    match collect(rig, script, wanted).artifacts.remove(0).1 {
        Found::Here(artifact) => artifact,
        other => panic!("{other:?}"),
    }
}

fn read(rig: &mut Rig, script: &str, input: ArtifactInput) -> (Exit, String) {
    let (attempt, end) = rig.run(Task { inputs: vec![input], ..sh(script) });
    rig.runtime().send(vec![Order::Forget { attempt }]);
    (end.exit, rig.stdout(attempt))
}

pub(crate) fn results_parameters_and_missing_files() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let parameter = |name: &str, path: &str| (name.to_owned(), path.to_owned());
    let wanted = WantedOutputs {
        message: None,
        result: true,
        log: None,
        parameters: vec![
            parameter("tmp", "/tmp/x"),
            parameter("new", "/some/new/dir/x"),
            parameter("claim", "/vol/x"),
            parameter("machine", "/etc/passwd"),
            parameter("removed", "/etc/hostname"),
            parameter("missing", "/tmp/none"),
            parameter("directory", "/tmp"),
            parameter("evil", "/tmp/../etc/shadow"),
            parameter("relative", "here"),
            parameter("through-link", "/tmp/link"),
            parameter("kernel", "/proc/version"),
        ],
        artifacts: Vec::new(),
    };
    let script = "cd /work; printf 'out\\n\\n'; echo noise >&2; printf 'a\\n' > /tmp/x; mkdir -p /some/new/dir; \
                  printf b > /some/new/dir/x; printf c > /vol/x; rm -f /etc/hostname; echo r > here; \
                  ln -s /etc/passwd /tmp/link";
    let mut task = Task { wanted, ..sh(script) };
    task.main.working_dir = Some("/work".to_owned());
    let source = MountSource::Claim { namespace: "n".to_owned(), name: "c".to_owned() };
    task.mounts = vec![Mount { path: "/vol".to_owned(), source, sub_path: None, read_only: false }];
    let (_, end) = rig.run(task);
    assert_eq!(end.exit, Exit::Code(0));
    assert_eq!(end.collected.result.as_deref(), Some("out\n"));
    let found = |name: &str| &end.collected.parameters.iter().find(|(known, _)| known == name).unwrap().1;
    let here = |text: &str| Found::Here(text.to_owned());
    assert_eq!(*found("tmp"), here("a"));
    assert_eq!(*found("new"), here("b"));
    assert_eq!(*found("claim"), here("c"));
    assert_eq!(*found("relative"), here("r"));
    assert_eq!(*found("machine"), here(fs::read_to_string("/etc/passwd").unwrap().trim_end()));
    assert_eq!(*found("through-link"), *found("machine"), "a link leads where the task would see it lead");
    assert_eq!(*found("removed"), Found::Missing);
    assert_eq!(*found("missing"), Found::Missing);
    for name in ["directory", "evil", "kernel"] {
        assert!(matches!(found(name), Found::Failed(_)), "{name}: {:?}", found(name));
    }
}

pub(crate) fn artifacts_make_the_round_trip() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let all = [TGZ, Archive::Tar { level: Some(0) }, Archive::Tar { level: Some(9) }, Archive::None, Archive::Zip];
    for archive in all {
        // A zip archive is only unpacked if it is declared as one.
        let input = |path: &str, artifact: &StoredArtifact| ArtifactInput {
            archive: Some(Archive::Zip).filter(|_| archive == Archive::Zip),
            ..input(path, artifact)
        };
        let file = saved(&mut rig, "echo hello > /tmp/f; chmod 640 /tmp/f", "/tmp/f", archive);
        assert_eq!(file.key, "key/out");
        let (exit, stdout) = read(&mut rig, "cat /in/file; stat -c %F /in/file", input("/in/file", &file));
        assert_eq!((exit, stdout.as_str()), (Exit::Code(0), "hello\nregular file\n"), "{archive:?}");
        let make = "mkdir -p /o/dir/sub/empty; echo 1 > /o/dir/a; echo 2 > /o/dir/sub/b; chmod 755 /o/dir/a; \
                    ln -s sub/b /o/dir/link; printf x > /o/dir/$(printf 'n%.0s' $(seq 200))";
        let dir = saved(&mut rig, make, "/o/dir", archive);
        let script = "cd /in/tree && cat a sub/b link && test -x a && test -L link && test -d sub/empty && ls | wc -l";
        assert_eq!(read(&mut rig, script, input("/in/tree", &dir)), (Exit::Code(0), "1\n2\n2\n4\n".to_owned()));
    }
    let once = saved(&mut rig, "echo hello > /tmp/f; touch -d @5 /tmp/f", "/tmp/f", TGZ);
    let twice = saved(&mut rig, "echo hello > /tmp/f; touch -d @5 /tmp/f", "/tmp/f", TGZ);
    assert_eq!(once.digest, twice.digest, "the same files are the same bytes");
    let mut explicit = input("/in", &once);
    explicit.archive = Some(Archive::None);
    assert_eq!(read(&mut rig, "head -c 2 /in | od -An -tx1", explicit).1.trim(), "1f 8b");
    let mut executable = input("/in", &once);
    executable.mode = Some(0o755);
    assert_eq!(read(&mut rig, "stat -c %a /in", executable).1, "755\n");
    let zipped =
        |rig: &mut Rig| saved(rig, "mkdir /tmp/z; echo 1 > /tmp/z/a; ln -s a /tmp/z/l", "/tmp/z", Archive::Zip);
    assert_eq!(zipped(&mut rig).digest, zipped(&mut rig).digest, "the same files are the same zip archive");
    let wanted = WantedOutputs {
        artifacts: vec![output("a", "/none", TGZ), output("b", "/none", Archive::Zip)],
        ..WantedOutputs::default()
    };
    let collected = collect(&mut rig, "touch /tmp/f", wanted);
    assert!(collected.artifacts.iter().all(|(_, found)| *found == Found::Missing));
    // What cannot be saved is reported, in every archive format.
    for archive in [TGZ, Archive::Zip, Archive::None] {
        let wanted = WantedOutputs { artifacts: vec![output("a", "/tmp/o", archive)], ..WantedOutputs::default() };
        let collected = collect(&mut rig, "mkdir /tmp/o; mkfifo /tmp/o/pipe", wanted);
        let told = |found: &Found<StoredArtifact>| matches!(found, Found::Failed(why) if why.contains("pipe"));
        assert!(told(&collected.artifacts[0].1), "{archive:?}: {:?}", collected.artifacts[0].1);
    }
    // A link is saved as a link: its target on this machine is not included.
    let link = saved(&mut rig, "mkdir /tmp/o; echo x > /tmp/o/x; ln -s /etc/passwd /tmp/o/l", "/tmp/o", TGZ);
    let (exit, _) = read(&mut rig, "true", input("/in", &link));
    assert!(matches!(exit, Exit::Environment(why) if why.contains("leads out")));
}

pub(crate) fn a_directory_without_archive_comes_back_as_a_tree() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let tree = saved(&mut rig, "mkdir -p /o/only && echo x > /o/only/f", "/o", Archive::None);
    let mut as_it_is = input("/in", &tree);
    as_it_is.archive = Some(Archive::None);
    for input in [as_it_is, input("/in", &tree)] {
        assert_eq!(read(&mut rig, "cat /in/only/f", input), (Exit::Code(0), "x\n".to_owned()));
    }
}

pub(crate) fn a_link_never_shows_the_machines_own_files() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let own = tempfile::tempdir().unwrap();
    fs::write(own.path().join("secret"), "secret").unwrap();
    // Below /tmp, which is private to the task: only a reader that leaves the task's view could find it.
    let script = format!("ln -s {} /tmp/door; ln -s {}/secret /tmp/key", own.path().display(), own.path().display());
    let wanted = WantedOutputs {
        parameters: vec![("door".to_owned(), "/tmp/door/secret".to_owned()), ("key".to_owned(), "/tmp/key".to_owned())],
        artifacts: vec![output("all", "/tmp", TGZ)],
        ..WantedOutputs::default()
    };
    let collected = collect(&mut rig, &script, wanted);
    assert_eq!(collected.parameters[0].1, Found::Missing);
    assert_eq!(collected.parameters[1].1, Found::Missing);
    assert!(matches!(collected.artifacts[0].1, Found::Here(_)), "links are kept as links");
}

pub(crate) fn a_missing_input_is_the_surroundings_fault() {
    let mut rig = Rig::new();
    let digest = format!("sha256:{}", "0".repeat(64));
    let absent = StoredArtifact { digest, archive: TGZ, ..StoredArtifact::default() };
    let (exit, _) = read(&mut rig, "true", input("/tmp/in", &absent));
    assert!(matches!(exit, Exit::Environment(why) if why.contains("not in the store") && why.contains("`in`")));
    assert_eq!(rig.sh("true").0, Exit::Code(0));
}

fn tarball(write: impl FnOnce(&mut tar::Builder<&mut Vec<u8>>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = tar::Builder::new(&mut bytes);
    write(&mut builder);
    builder.finish().unwrap();
    drop(builder);
    bytes
}

/// Appends an entry with a name that the library itself would refuse to write.
fn entry(builder: &mut tar::Builder<&mut Vec<u8>>, name: &str, kind: tar::EntryType, link: &str) {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(0);
    header.set_cksum();
    builder.append(&header, std::io::empty()).unwrap();
}

pub(crate) fn evil_archives_are_refused() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let store = Store::new(&rig.data());
    let outside = fresh_dir();
    let out = outside.path().to_str().unwrap().to_owned();
    let out = out.as_str();
    let evil: [(&str, tar::EntryType, &str); 7] = [
        ("../up", tar::EntryType::Regular, ""),
        ("/absolute", tar::EntryType::Regular, ""),
        ("a/../../up", tar::EntryType::Directory, ""),
        ("door", tar::EntryType::Symlink, "/etc"),
        ("sub/door", tar::EntryType::Symlink, "../../up"),
        ("device", tar::EntryType::Block, ""),
        ("pipe", tar::EntryType::Fifo, ""),
    ];
    for (name, kind, link) in evil {
        let bytes = tarball(|builder| {
            entry(builder, "good", tar::EntryType::Regular, "");
            entry(builder, name, kind, link);
        });
        let (digest, size) = store.keep(&mut &bytes[..]).unwrap();
        let artifact = StoredArtifact { digest, size, archive: TGZ, ..StoredArtifact::default() };
        let (exit, _) = read(&mut rig, "true", input("/in", &artifact));
        assert!(matches!(&exit, Exit::Environment(why) if why.contains("archive")), "{name}: {exit:?}");
    }
    let broken = tarball(|builder| entry(builder, "x", tar::EntryType::Regular, ""))[..600].to_vec();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&broken).unwrap();
    let cut = gzip.finish().unwrap();
    let (digest, size) = store.keep(&mut &cut[..cut.len() - 9]).unwrap();
    let artifact = StoredArtifact { digest, size, archive: TGZ, ..StoredArtifact::default() };
    let (exit, _) = read(&mut rig, "test -f /in", input("/in", &artifact));
    assert!(matches!(exit, Exit::Environment(_) | Exit::Code(0)), "{exit:?}");
    assert_eq!(fs::read_dir(out).unwrap().count(), 0);
    assert!(!Path::new("/up").exists() && !Path::new("/absolute").exists());
}

pub(crate) fn part_of_an_artifact_can_be_wanted() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let tree = saved(&mut rig, "mkdir -p /o/a/b && echo x > /o/a/b/f && echo y > /o/g", "/o", Archive::None);
    let part = |sub: &str| ArtifactInput {
        source: ArtifactSource::Stored { artifact: tree.clone(), sub_path: Some(sub.to_owned()) },
        mode: Some(0o700),
        recurse_mode: true,
        ..input("/in", &tree)
    };
    assert_eq!(read(&mut rig, "cat /in/b/f; stat -c %a /in/b/f", part("a")), (Exit::Code(0), "x\n700\n".to_owned()));
    assert_eq!(read(&mut rig, "cat /in", part("g")).1, "y\n");
    assert!(matches!(read(&mut rig, "true", part("none")).0, Exit::Environment(why) if why.contains("`none`")));
}
