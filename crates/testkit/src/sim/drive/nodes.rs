//! Nodes and queues change while the story goes on: machines come and go whether the controller is up or not, people need
//! one that is.

use octoflow_model::AttemptId;

use super::Sim;
use crate::sim::{
    calendar::{Event, ticks},
    cluster::ClusterAct,
    failure::Broken,
    life::attempt_of,
};

impl Sim<'_> {
    pub(super) fn change_cluster(&mut self, at: usize) -> Result<(), Broken> {
        let world = self.world;
        let (Some(plan), Some(cluster)) = (&world.cluster, &mut self.cluster) else { return Ok(()) };
        let act = &plan.acts[at].1;
        let physical = cluster.happens(act);
        if let ClusterAct::Vanish(name) = act {
            let lost: Vec<AttemptId> =
                self.runtime.alive().into_iter().filter(|id| self.node_of(*id).as_deref() == Some(name)).collect();
            self.runtime.lose(&lost, self.life.is_some(), self.now, &mut self.calendar);
        }
        let for_people = !physical || matches!(act, ClusterAct::Repair);
        let Some(life) = self.life.as_mut().filter(|life| !(for_people && life.event_loop.is_out())) else {
            if for_people {
                self.calendar.put(self.up_at.max(self.now).saturating_add(ticks(20)), Event::Cluster(at));
            } else {
                self.tell(|| format!("cluster  {act:?}, and nobody is told"));
            }
            return Ok(());
        };
        let done = match &mut self.cluster {
            Some(cluster) => cluster.tell(act, &mut life.event_loop)?,
            None => false,
        };
        self.tell(|| format!("cluster  {}{act:?}", if done { "" } else { "not possible: " }));
        Ok(())
    }

    /// The node that an attempt was started on, by what is durable.
    fn node_of(&self, id: AttemptId) -> Option<String> {
        let run = self.disk.seen(id.run).filter(|run| attempt_of(run, id.task) == Some(id))?;
        run.assignment(id.task).map(|assignment| assignment.node)
    }

    /// Its machine is gone.
    pub(super) fn is_nowhere(&self, id: AttemptId) -> bool {
        let Some(cluster) = &self.cluster else { return false };
        self.node_of(id).is_some_and(|node| !cluster.has_node(&node))
    }
}
