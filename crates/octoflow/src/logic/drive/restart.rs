//! The controller dies and another goes on: what is on the disk is all that is left of it.

use octoflow_control::{Error, VirtualLoop};

use super::{Simulation, limits};

impl Simulation<'_> {
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        self.settle()?;
        let (event_loop, notices) = VirtualLoop::open(self.disk.clone(), limits(&self.scenario), self.now)?;
        self.event_loop = event_loop;
        let unread = notices.into_iter().map(|notice| (None, format!("after a restart: {notice}")));
        self.outcome.faults.extend(unread);
        self.settle()
    }
}
