//! Determines which mounts of the machine a task must see besides the root, and in which form. Only reads a mount
//! table; the slot mounts.

use std::path::{Path, PathBuf};

/// A mount of the machine that an overlay over the root alone would hide.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExtraMount {
    pub(crate) point: PathBuf,
    pub(crate) form: MountForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountForm {
    /// Writable for the task; nobody else sees its writes.
    Overlay,
    /// Shown as it is, read only, with everything mounted below it.
    ReadOnly,
}

/// Limit of mounts shown: each costs a little for every new slot.
pub(crate) const MAX_MOUNTS: usize = 48;

/// Mount points set up specially in every slot, or private to the task.
pub(crate) const SPECIAL: [&str; 4] = ["/proc", "/sys", "/dev", "/tmp"];

/// Mount points of other container tools and sessions. Their mounts come and go and must not be shown.
const FOREIGN: [&str; 8] = [
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/run/docker",
    "/run/containerd",
    "/run/netns",
    "/run/user",
];

/// File systems that an overlay can be mounted over.
const LAYERABLE: [&str; 10] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "ramfs", "bcachefs"];

const NEVER: [&str; 4] = ["nsfs", "autofs", "rpc_pipefs", "binfmt_misc"];

/// Parses the text of `/proc/self/mountinfo`. `is_dir` tells whether a mount point is a directory.
pub(crate) fn extra_mounts(table: &str, data: &Path, is_dir: impl Fn(&Path) -> bool) -> Vec<ExtraMount> {
    let mut found: Vec<ExtraMount> = Vec::new();
    let mut mounts: Vec<(PathBuf, &str, bool)> = table.lines().filter_map(parse).collect();
    mounts.sort_by(|a, b| a.0.cmp(&b.0));
    // Of several mounts at one point the last one is visible; the sort is stable, so it comes last.
    mounts.reverse();
    mounts.dedup_by(|later, earlier| later.0 == earlier.0);
    mounts.reverse();
    for (point, kind, writable) in mounts {
        let hidden = point == Path::new("/")
            || point.starts_with(data)
            || SPECIAL.iter().chain(&FOREIGN).any(|prefix| point.starts_with(prefix))
            || NEVER.contains(&kind)
            || found.iter().any(|above| above.form == MountForm::ReadOnly && point.starts_with(&above.point));
        if !hidden && found.len() < MAX_MOUNTS {
            let layered = writable && LAYERABLE.contains(&kind) && is_dir(&point);
            found.push(ExtraMount { point, form: if layered { MountForm::Overlay } else { MountForm::ReadOnly } });
        }
    }
    found
}

/// Returns every mount point but the root.
pub(crate) fn points(table: &str) -> Vec<PathBuf> {
    table.lines().filter_map(parse).map(|(point, ..)| point).filter(|point| point != Path::new("/")).collect()
}

/// Parses one line: `id parent dev root point options [tags] - kind source super-options`.
fn parse(line: &str) -> Option<(PathBuf, &str, bool)> {
    let (head, tail) = line.split_once(" - ")?;
    let mut head = head.split(' ').skip(4);
    let point = unescape(head.next()?);
    let writable = head.next()?.split(',').any(|option| option == "rw");
    Some((point, tail.split(' ').next()?, writable))
}

/// Decodes a mount point: spaces, tabs, newlines and backslashes are written as three octal digits.
fn unescape(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let code = (bytes[at] == b'\\')
            .then(|| bytes.get(at + 1..at + 4))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(code) => {
                out.push(code);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_file_systems_are_layered_and_the_rest_is_shown_read_only() {
        let table = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
24 27 0:6 / /dev rw - devtmpfs devtmpfs rw
25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 254:1 / /home rw,relatime shared:5 - ext4 /dev/vdb rw
31 27 254:2 / /my\\040disk rw - ext4 /dev/vdc rw
32 27 0:40 / /snap/core ro,nodev - squashfs /dev/loop1 ro
33 32 0:41 / /snap/core/sub rw - tmpfs x rw
34 27 254:0 /x /etc/hosts rw - ext4 /dev/vda rw
35 27 0:42 / /var/lib/docker/overlay2/abc/merged rw - overlay overlay rw
36 27 0:43 / /data/jobs/7/root rw - overlay overlay rw
37 27 0:44 / /tmp rw - tmpfs tmpfs rw
38 27 0:45 / /home rw - tmpfs over rw
";
        let found = extra_mounts(table, Path::new("/data"), |path| path != Path::new("/etc/hosts"));
        let expected = [
            ("/etc/hosts", MountForm::ReadOnly),
            ("/home", MountForm::Overlay),
            ("/my disk", MountForm::Overlay),
            ("/snap/core", MountForm::ReadOnly),
        ];
        let expected: Vec<ExtraMount> =
            expected.into_iter().map(|(point, form)| ExtraMount { point: point.into(), form }).collect();
        assert_eq!(found, expected);
    }
}
