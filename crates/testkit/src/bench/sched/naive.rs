//! The yardstick: a scheduler written naively. Everything is recounted, all waiting tasks are put in order, and each is tried on
//! every node.

use octoflow_engine::schedule::spec::Demand;

use super::world::{NODES, World};

/// Looks once for everything that could start now; returns how many tasks could.
pub(super) fn pass(world: &World) -> usize {
    let (parents, queues) = World::sizes();
    let mut used = vec![[0_u64; 2]; NODES as usize];
    let (mut of_parent, mut of_queue) = (vec![0_u64; parents], vec![0_u64; queues]);
    let amounts = |demand: &Demand| [demand.resources.cpu_milli, demand.resources.memory_bytes];
    for one in &world.running {
        let (parent, queue) = World::queue_of(&one.demand);
        let wanted = amounts(&one.demand);
        of_parent[parent] += wanted[0];
        of_queue[queue] += wanted[0];
        for (used, wanted) in used[one.node].iter_mut().zip(wanted) {
            *used += wanted;
        }
    }
    let mut order: Vec<_> = world
        .waiting
        .iter()
        .map(|one| {
            let (parent, queue) = World::queue_of(&one.demand);
            (of_parent[parent] / (parent as u64 + 1), of_queue[queue] / (queue as u64 % 3 + 1), one.since, one)
        })
        .collect();
    order.sort_by_key(|(parent, queue, since, one)| (*parent, *queue, *since, one.task));
    let has = World::node_amounts();
    let mut started = 0;
    for (_, _, _, one) in order {
        let wanted = amounts(&one.demand);
        let fits = |used: &[u64; 2]| used[0] + wanted[0] <= has[0] && used[1] + wanted[1] <= has[1];
        // The fullest node that fits.
        let node = (0..used.len()).filter(|node| fits(&used[*node])).max_by_key(|node| used[*node][0]);
        if let Some(node) = node {
            used[node][0] += wanted[0];
            used[node][1] += wanted[1];
            started += 1;
        }
    }
    started
}
