//! Dependency graphs: one topological sort and what follows from it. It owns Kahn's algorithm for every graph a
//! manifest can draw: tasks, roles, gangs, containers, templates. It takes time linear to the graph's size (with a
//! logarithm where ties are broken by index) and never recurses: a chain of a hundred thousand tasks is an ordinary
//! manifest.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

/// Tie-breaking order of vertices that are ready at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TieBreak {
    /// The one that became ready first.
    Arrival,
    /// The one with the lowest index, so that the order written is kept where no edge requires otherwise.
    Index,
}

/// The result of a topological sort.
pub(crate) struct Sorted {
    /// The vertices that could be sorted, each after all it needs.
    pub order: Vec<usize>,
    /// For every vertex the number of its needs that could not be sorted: non-zero in a cycle and behind one.
    pub open: Vec<usize>,
}

/// Sorts the vertices `0..count` so that each comes after those it needs. `needs` is called twice for each vertex.
pub(crate) fn sort<N: IntoIterator<Item = usize>>(count: usize, ties: TieBreak, needs: impl Fn(usize) -> N) -> Sorted {
    let mut open = vec![0; count];
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (vertex, open) in open.iter_mut().enumerate() {
        for needed in needs(vertex) {
            *open += 1;
            dependents[needed].push(vertex);
        }
    }
    let mut arrived = 0..;
    let mut rank = |vertex: usize| match ties {
        TieBreak::Arrival => arrived.next().unwrap_or(usize::MAX),
        TieBreak::Index => vertex,
    };
    let free = (0..count).filter(|vertex| open[*vertex] == 0);
    let mut ready: BinaryHeap<Reverse<(usize, usize)>> = free.map(|vertex| Reverse((rank(vertex), vertex))).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse((_, vertex))) = ready.pop() {
        order.push(vertex);
        for &dependent in &dependents[vertex] {
            open[dependent] -= 1;
            if open[dependent] == 0 {
                ready.push(Reverse((rank(dependent), dependent)));
            }
        }
    }
    Sorted { order, open }
}

impl Sorted {
    /// Returns the order of all vertices, or `None` if there is a cycle.
    pub(crate) fn complete(self) -> Option<Vec<usize>> {
        (self.order.len() == self.open.len()).then_some(self.order)
    }
}

/// Orders vertices so that each comes after its needs; `None` if there is a cycle.
pub(crate) fn order(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    sort_lists(needs).complete()
}

/// Finds one cycle, in the direction of the needs, beginning with its lowest member; its first member is not repeated.
pub(crate) fn find_cycle(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let Sorted { open, .. } = sort_lists(needs);
    let mut at = open.iter().position(|left| *left > 0)?;
    // Every unsorted vertex needs an unsorted one, so the walk must reach a cycle.
    let mut visited = vec![usize::MAX; needs.len()];
    let mut walk = Vec::new();
    while visited[at] == usize::MAX {
        visited[at] = walk.len();
        walk.push(at);
        at = *needs[at]
            .iter()
            .find(|needed| open[**needed] > 0)
            .expect("a vertex in or before a circle needs another such");
    }
    let mut circle = walk.split_off(visited[at]);
    let lowest = circle.iter().enumerate().min_by_key(|(_, vertex)| **vertex).map_or(0, |(position, _)| position);
    circle.rotate_left(lowest);
    Some(circle)
}

/// Finds a cycle in every part of the graph whose vertices all need each other, each as [`find_cycle`] does. What merely
/// leads to a cycle is in none.
pub(crate) fn find_cycles(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let part = parts(needs);
    let mut seen = vec![false; needs.len()];
    let mut cycles = Vec::new();
    for first in 0..needs.len() {
        if std::mem::replace(&mut seen[part[first]], true) {
            continue;
        }
        // Every vertex of such a part needs another one of it, or itself.
        let inside = |at: usize| needs[at].iter().copied().find(|needed| part[*needed] == part[first]);
        let (mut at, mut walk) = (first, Vec::new());
        let mut place = HashMap::new();
        while !place.contains_key(&at) {
            place.insert(at, walk.len());
            walk.push(at);
            let Some(next) = inside(at) else { break };
            at = next;
        }
        if inside(first).is_some() {
            let mut circle = walk.split_off(place.get(&at).copied().unwrap_or_default());
            let lowest = circle.iter().enumerate().min_by_key(|(_, vertex)| **vertex).map_or(0, |(at, _)| at);
            circle.rotate_left(lowest);
            cycles.push(circle);
        }
    }
    cycles
}

/// Returns for every vertex the part of the graph that it belongs to (Tarjan's algorithm): two vertices are in one part if
/// each needs the other, however indirectly.
fn parts(needs: &[Vec<usize>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let count = needs.len();
    let (mut number, mut lowest, mut part) = (vec![NEW; count], vec![NEW; count], vec![NEW; count]);
    let (mut next, mut parts) = (0, 0);
    let (mut open, mut path): (Vec<usize>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    for root in 0..count {
        if number[root] != NEW {
            continue;
        }
        path.push((root, 0));
        while let Some((vertex, edge)) = path.pop() {
            if edge == 0 {
                (number[vertex], lowest[vertex]) = (next, next);
                next += 1;
                open.push(vertex);
            }
            if let Some(needed) = needs[vertex].get(edge).copied() {
                path.push((vertex, edge + 1));
                if number[needed] == NEW {
                    path.push((needed, 0));
                } else if part[needed] == NEW {
                    lowest[vertex] = lowest[vertex].min(number[needed]);
                }
                continue;
            }
            if lowest[vertex] == number[vertex] {
                while let Some(member) = open.pop() {
                    part[member] = parts;
                    if member == vertex {
                        break;
                    }
                }
                parts += 1;
            }
            if let Some((above, _)) = path.last() {
                lowest[*above] = lowest[*above].min(lowest[vertex]);
            }
        }
    }
    part
}

/// Shows a cycle as `A->B->A`, with the middle left out when it is long.
pub(crate) fn show_cycle(names: &[&str]) -> String {
    const HEAD: usize = 8;
    const TAIL: usize = 3;
    let first = names.first().copied().unwrap_or_default();
    if names.len() <= HEAD + TAIL + 1 {
        return format!("{}->{first}", names.join("->"));
    }
    let (head, rest) = names.split_at(HEAD);
    let (left_out, tail) = rest.split_at(rest.len() - TAIL);
    format!("{}->… ({} more) …->{}->{first}", head.join("->"), left_out.len(), tail.join("->"))
}

fn sort_lists(needs: &[Vec<usize>]) -> Sorted {
    sort(needs.len(), TieBreak::Arrival, |vertex| needs[vertex].iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_without_a_circle_has_an_order() {
        let needs = [vec![1, 2], vec![2], vec![], vec![0]];
        assert_eq!(find_cycle(&needs), None);
        assert_eq!(order(&needs), Some(vec![2, 1, 0, 3]));
    }

    #[test]
    fn a_circle_is_shown_from_its_lowest_member_and_without_what_leads_to_it() {
        let needs = [vec![1], vec![2], vec![3], vec![1]];
        assert_eq!(find_cycle(&needs), Some(vec![1, 2, 3]));
        assert_eq!(order(&needs), None);
        assert_eq!(find_cycle(&[vec![0]]), Some(vec![0]));
    }

    #[test]
    fn every_circle_is_found_once_and_nobody_else() {
        // 0 and 1, 2 and 3, where 2 needs 0 first; 4 needs both; 5 needs itself; 6 needs nobody.
        let needs = [vec![1], vec![0], vec![0, 3], vec![2], vec![0, 2], vec![5], vec![]];
        assert_eq!(find_cycles(&needs), [vec![0, 1], vec![2, 3], vec![5]]);
        assert_eq!(find_cycles(&[vec![1], vec![2], vec![3], vec![1]]), [vec![1, 2, 3]]);
        assert_eq!(find_cycles(&[vec![1, 2], vec![2], vec![]]), Vec::<Vec<usize>>::new());
        let long: Vec<Vec<usize>> = (0..100_000).map(|at| vec![(at + 1) % 100_000]).collect();
        assert_eq!(find_cycles(&long)[0].len(), 100_000);
    }

    #[test]
    fn ties_are_broken_by_arrival_or_by_index() {
        let needs = [vec![], vec![], vec![0], vec![]];
        let sorted = |ties| sort(needs.len(), ties, |vertex| needs[vertex].iter().copied()).complete();
        assert_eq!(sorted(TieBreak::Arrival), Some(vec![0, 1, 3, 2]));
        assert_eq!(sorted(TieBreak::Index), Some(vec![0, 1, 2, 3]));
    }

    #[test]
    fn what_stands_behind_a_cycle_is_open_too() {
        let needs = [vec![1], vec![0], vec![1, 1], vec![]];
        let sorted = sort_lists(&needs);
        assert_eq!((sorted.order, sorted.open), (vec![3], vec![1, 1, 2, 0]));
    }

    #[test]
    fn a_long_circle_is_shown_in_short() {
        assert_eq!(show_cycle(&["a", "b"]), "a->b->a");
        let names: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(show_cycle(&names), "t0->t1->t2->t3->t4->t5->t6->t7->… (89 more) …->t97->t98->t99->t0");
    }
}
