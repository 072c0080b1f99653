//! The controller dies and another goes on: what is on the disk is all that is left of it.

use octoflow_control::{Error, VirtualLoop};

use super::{Stage, limits};

impl Stage<'_> {
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        self.settle()?;
        let (event_loop, notices) = VirtualLoop::open(self.disk.clone(), limits(&self.scene), self.now)?;
        self.event_loop = event_loop;
        let unread = notices.into_iter().map(|notice| (None, format!("after a restart: {notice}")));
        self.played.faults.extend(unread);
        self.settle()
    }
}
