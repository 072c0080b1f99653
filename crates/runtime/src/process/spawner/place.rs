//! Where a task lives: a slot when it is isolated, a room (a plain directory of its own) when it is not. Both are used
//! again when the task left them as they were, because making and removing directories waits for the disk's journal.

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
    wire::{Launch, ROOM},
};

pub(crate) enum Place {
    Slot(Box<Slot>),
    Room(PathBuf),
}

impl Place {
    pub(crate) fn slot(&self) -> Option<&Slot> {
        match self {
            Self::Slot(slot) => Some(slot),
            Self::Room(_) => None,
        }
    }

    pub(crate) fn slot_mut(&mut self) -> Option<&mut Slot> {
        match self {
            Self::Slot(slot) => Some(slot),
            Self::Room(_) => None,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        match self {
            Self::Slot(slot) => slot.dir(),
            Self::Room(dir) => dir,
        }
    }

    /// Whether a task can be given it: of the right kind, with the file for last words and the hosts that it wants.
    pub(crate) fn suits(&self, launch: &Launch) -> bool {
        match self {
            Self::Slot(slot) => {
                launch.isolated
                    && slot.words() == device::wanted(launch)
                    && slot.hosts() == launch.hosts.as_ref()
                    && slot.visible() == launch.visible
            }
            Self::Room(_) => !launch.isolated,
        }
    }

    /// A descriptor of the file system as the task sees it.
    pub(crate) fn root(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Slot(slot) => slot.view().as_fd().try_clone_to_owned(),
            Self::Room(_) => File::open("/").map(OwnedFd::from),
        }
    }

    /// Whether the last task left no trace at all.
    pub(crate) fn is_clean(&mut self) -> bool {
        match self {
            Self::Slot(slot) => slot.is_clean(),
            Self::Room(dir) => fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none()),
        }
    }

    /// A task has lived here until now.
    pub(crate) fn was_used(&mut self, now: Instant) {
        if let Self::Slot(slot) = self {
            slot.was_used(now);
        }
    }

    /// Whether a task may still get it.
    pub(crate) fn is_fresh(&self, now: Instant, busy_since: Instant) -> bool {
        match self {
            Self::Slot(slot) => slot.is_fresh(now, busy_since),
            Self::Room(_) => true,
        }
    }

    /// Takes away what a task left. Answers whether the place is as new.
    pub(crate) fn wash(&mut self) -> bool {
        match self {
            Self::Slot(slot) => slot.wash(),
            Self::Room(dir) => File::open(dir).and_then(|dir| view::clear(dir.into())).is_ok(),
        }
    }

    /// Ends the place; its directory goes with it.
    pub(crate) fn discard(self) {
        match self {
            Self::Slot(slot) => slot.discard(),
            // What cannot be removed now is removed by the next spawner, which sweeps the work directory.
            Self::Room(dir) => drop(view::remove_dir(&dir)),
        }
    }

    /// Tells the launch where it is: an engine cannot know which room a task will get.
    pub(crate) fn name_in(&self, launch: &mut Launch) {
        let Self::Room(dir) = self else { return };
        name_room(launch, &dir.to_string_lossy());
    }
}

fn name_room(launch: &mut Launch, room: &str) {
    let texts = launch.args.iter_mut().chain(&mut launch.env).chain(&mut launch.programs).chain([&mut launch.dir]);
    for text in texts.chain(&mut launch.progress).chain(launch.files.iter_mut().map(|file| &mut file.path)) {
        if text.contains(ROOM) {
            *text = text.replace(ROOM, room);
        }
    }
    for member in launch.crew.iter_mut().flat_map(|crew| &mut crew.members) {
        name_room(&mut member.launch, room);
    }
}
