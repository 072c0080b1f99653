//! How hard a seed is attacked: a few stories of its world, or one for every place where the controller can crash.

use super::{
    cluster::Seen,
    disk::Point,
    drive::{Ending, run},
    failure::{Failure, Guarantee},
    tree::difference,
    world::{Crashes, Flavour, World},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Once without a crash, once with crashes now and then.
    Light,
    /// Also one story for every commit and both sides of it.
    Everywhere,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub stories: u64,
    pub commits: u64,
    pub crashes: u64,
    pub nodes: u64,
    pub seen: Seen,
}

impl Report {
    pub fn add(&mut self, other: Self) {
        self.stories += other.stories;
        self.commits += other.commits;
        self.crashes += other.crashes;
        self.nodes += other.nodes;
        self.seen.add(other.seen);
    }

    fn count(&mut self, ending: &Ending) {
        let nodes = |tree: &serde_json::Value| tree["nodes"].as_object().map_or(0, serde_json::Map::len) as u64;
        let nodes = ending.trees.values().map(nodes).sum();
        self.add(Self { stories: 1, commits: ending.commits, crashes: ending.crashes, nodes, seen: ending.seen });
    }
}

/// Attacks the world of a seed. `beat` is called before every story, so that somebody can notice one that never ends.
pub fn explore(seed: u64, effort: Effort, beat: &dyn Fn()) -> Result<Report, Box<Failure>> {
    let mut report = Report::default();
    let world = World::new(seed)?;
    beat();
    let calm = run(&world, Crashes::Never, false)?;
    report.count(&calm);
    let mut attacks = vec![Crashes::Sometimes];
    if effort == Effort::Everywhere {
        let points = (0..calm.commits)
            .flat_map(|commit| [Point::Before, Point::After].map(|point| Crashes::At { commit, point }));
        attacks.extend(points);
    }
    for crashes in attacks {
        beat();
        let ending = run(&world, crashes, false)?;
        report.count(&ending);
        compare(&world, crashes, &calm, &ending)?;
    }
    Ok(report)
}

/// Where only the tasks' answers matter, the trees must be the same.
pub fn compare(world: &World, crashes: Crashes, calm: &Ending, crashed: &Ending) -> Result<(), Box<Failure>> {
    if world.flavour != Flavour::Calm {
        return Ok(());
    }
    let fail = |what: String| {
        Err(Box::new(Failure {
            seed: world.seed,
            crashes,
            guarantee: Guarantee::SameTree,
            what,
            story: crashed.story.clone(),
        }))
    };
    for (run, tree) in &calm.trees {
        let Some(other) = crashed.trees.get(run) else { return fail(format!("run {run} is missing after crashes")) };
        if let Some(what) = difference(tree, other) {
            return fail(format!("run {run}: {what}"));
        }
    }
    Ok(())
}
