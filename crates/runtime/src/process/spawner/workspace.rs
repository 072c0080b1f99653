//! The workspace of a task: a slot if it is isolated, else a plain directory. Both are reused if the task left them
//! unchanged, because creating and removing directories waits for the disk's journal.

use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    time::Instant,
};

use super::{device, slot::Slot};
use crate::process::{
    view,
    wire::{DIR_PLACEHOLDER, Launch},
};

pub(crate) enum Workspace {
    Slot(Box<Slot>),
    Dir(PathBuf),
}

impl Workspace {
    pub(crate) fn slot(&self) -> Option<&Slot> {
        match self {
            Self::Slot(slot) => Some(slot),
            Self::Dir(_) => None,
        }
    }

    pub(crate) fn slot_mut(&mut self) -> Option<&mut Slot> {
        match self {
            Self::Slot(slot) => Some(slot),
            Self::Dir(_) => None,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        match self {
            Self::Slot(slot) => slot.dir(),
            Self::Dir(dir) => dir,
        }
    }

    /// Returns whether a task can use it: the right kind, with the termination message file and the hosts that it
    /// wants.
    pub(crate) fn suits(&self, launch: &Launch) -> bool {
        match self {
            Self::Slot(slot) => {
                launch.isolated
                    && slot.termination() == device::wanted(launch)
                    && slot.hosts() == launch.hosts.as_ref()
                    && slot.visible() == launch.visible
            }
            Self::Dir(_) => !launch.isolated,
        }
    }

    /// Returns a descriptor of the root as the task sees it.
    pub(crate) fn root(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Slot(slot) => slot.view().as_fd().try_clone_to_owned(),
            Self::Dir(_) => File::open("/").map(OwnedFd::from),
        }
    }

    /// Returns whether the last task left it unchanged.
    pub(crate) fn is_clean(&mut self) -> bool {
        match self {
            Self::Slot(slot) => slot.is_clean(),
            Self::Dir(dir) => fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none()),
        }
    }

    /// Records that a task has used it.
    pub(crate) fn mark_used(&mut self, now: Instant) {
        if let Self::Slot(slot) = self {
            slot.mark_used(now);
        }
    }

    /// Returns whether a task may still get it.
    pub(crate) fn is_fresh(&self, now: Instant, busy_since: Instant) -> bool {
        match self {
            Self::Slot(slot) => slot.is_fresh(now, busy_since),
            Self::Dir(_) => true,
        }
    }

    /// Removes what a task left. Returns whether the workspace is clean.
    pub(crate) fn clean(&mut self) -> bool {
        match self {
            Self::Slot(slot) => slot.clean(),
            Self::Dir(dir) => File::open(dir).and_then(|dir| view::clear(dir.into())).is_ok(),
        }
    }

    /// Removes the workspace with its directory.
    pub(crate) fn discard(self) {
        match self {
            Self::Slot(slot) => slot.discard(),
            // What cannot be removed now is removed by the next spawner, which sweeps the work directory.
            Self::Dir(dir) => drop(view::remove_dir(&dir)),
        }
    }

    /// Replaces the placeholder in the launch by the directory: an engine cannot know which one a task will get.
    pub(crate) fn fill_placeholders(&self, launch: &mut Launch) {
        let Self::Dir(dir) = self else { return };
        replace_placeholder(launch, &dir.to_string_lossy());
    }
}

fn replace_placeholder(launch: &mut Launch, dir: &str) {
    let texts = launch.args.iter_mut().chain(&mut launch.env).chain(&mut launch.programs).chain([&mut launch.dir]);
    for text in texts.chain(&mut launch.progress).chain(launch.files.iter_mut().map(|file| &mut file.path)) {
        if text.contains(DIR_PLACEHOLDER) {
            *text = text.replace(DIR_PLACEHOLDER, dir);
        }
    }
    for member in launch.pod_plan.iter_mut().flat_map(|pod_plan| &mut pod_plan.members) {
        replace_placeholder(&mut member.launch, dir);
    }
}
