//! Which nodes come before, beside and apart from each other. Order is the order of decisions, so that it is clear
//! even where the virtual clock stands still.

use super::{find, unknown};
use crate::logic::{
    drive::{Life, ScenarioResult},
    test_document::Located,
    verdict::Verdict,
};

/// A node with its name and life.
struct Member {
    name: String,
    life: Life,
}

pub(super) fn check(expected: &Located<'_>, outcome: &ScenarioResult<'_>, run: Option<usize>, verdict: &mut Verdict) {
    for order in expected.items_of("order") {
        for (how, names) in order.entries() {
            let mut groups = Vec::new();
            for name in names.items() {
                match members(&name.text(), outcome, run) {
                    Ok(members) => groups.push((name, members)),
                    Err(why) => verdict.miss(&name, format!("order.{how}"), "a node of this name", why),
                }
            }
            match how {
                "before" => chain(&groups, how, verdict, |one, next| one.ends.is_some_and(|end| end < next.begins)),
                "starts" => chain(&groups, how, verdict, |one, next| one.begins < next.begins),
                _ => pairs(&groups, how, verdict),
            }
        }
    }
}

fn members(name: &str, outcome: &ScenarioResult<'_>, run: Option<usize>) -> Result<Vec<Member>, String> {
    let runs: Vec<usize> = run.map_or_else(|| (0..outcome.last.len()).collect(), |run| vec![run]);
    let mut found = Vec::new();
    for run in &runs {
        let seen = &outcome.last[*run];
        for at in find(seen, name) {
            if let Some(life) = outcome.lives.get(&(*run, at)) {
                found.push(Member { name: seen.nodes[at].name.clone(), life: *life });
            }
        }
    }
    if found.is_empty() { Err(unknown(&outcome.last[runs[0]], name)) } else { Ok(found) }
}

type Group<'a> = (Located<'a>, Vec<Member>);

/// Each of a group stands in a relation to each of the next.
fn chain(groups: &[Group<'_>], how: &str, verdict: &mut Verdict, holds: impl Fn(&Life, &Life) -> bool) {
    for pair in groups.windows(2) {
        let [(_, first), (located, next)] = pair else { continue };
        let broken = first.iter().flat_map(|one| next.iter().map(move |two| (one, two)));
        if let Some((one, two)) = broken.into_iter().find(|(one, two)| !holds(&one.life, &two.life)) {
            let (expected, actual) = match how {
                "before" => (format!("{} is over before {} starts", one.name, two.name), told(one, two)),
                _ => (format!("{} starts before {}", one.name, two.name), format!("{} starts first", two.name)),
            };
            verdict.miss(located, format!("order.{how}"), expected, actual);
        }
    }
}

fn pairs(groups: &[Group<'_>], how: &str, verdict: &mut Verdict) {
    let all: Vec<(&Located<'_>, &Member)> =
        groups.iter().flat_map(|(located, members)| members.iter().map(move |member| (located, member))).collect();
    for (at, (_, one)) in all.iter().enumerate() {
        for (located, two) in &all[at + 1..] {
            let overlap = overlap(&one.life, &two.life);
            if overlap != (how == "together") {
                let expected = match how {
                    "together" => format!("{} and {} run at the same time", one.name, two.name),
                    _ => format!("{} and {} never run at the same time", one.name, two.name),
                };
                verdict.miss(located, format!("order.{how}"), expected, told(one, two));
                return;
            }
        }
    }
}

fn overlap(one: &Life, two: &Life) -> bool {
    let ends = |life: &Life| life.ends.unwrap_or(u64::MAX);
    one.begins < ends(two) && two.begins < ends(one)
}

fn told(one: &Member, two: &Member) -> String {
    if overlap(&one.life, &two.life) {
        return "they run at the same time".to_owned();
    }
    let first = if one.life.begins < two.life.begins { one } else { two };
    format!("{} is over before the other starts", first.name)
}
