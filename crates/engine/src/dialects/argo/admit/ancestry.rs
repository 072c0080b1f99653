//! Finds references between tasks of a DAG that no dependency orders.
//! Answers many pairs in one walk over the graph, so that a large graph full of references stays cheap.

use crate::graph;

/// A task and one it refers to.
type Pair = (usize, usize);

/// Number of referred tasks that one walk follows.
const BATCH: usize = 256;
type Marks = [u64; BATCH / 64];

/// Limit of edges followed before the rest is accepted: half a second of work. A reference accepted wrongly becomes an
/// error of its task when it runs.
const MAX_WORK: usize = 100_000_000;

/// Returns the pairs (task, task it refers to) whose second task is not needed by the first, directly or indirectly.
/// Returns nothing for a graph with a cycle, where the question has no answer.
pub(super) fn unordered(needs: &[Vec<usize>], mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_unstable_by_key(|(task, referred)| (*referred, *task));
    pairs.dedup();
    pairs.retain(|(task, referred)| needs[*task].binary_search(referred).is_err());
    let Some(order) = (!pairs.is_empty()).then(|| graph::order(needs)).flatten() else {
        return Vec::new();
    };
    let forest = SpanningForest::of(needs);
    pairs.retain(|(task, referred)| !forest.is_ancestor(*referred, *task));
    let walk = needs.len() + needs.iter().map(Vec::len).sum::<usize>();
    let mut work = 0;
    let mut unordered = Vec::new();
    let mut marks: Vec<Marks> = Vec::new();
    let mut bits = vec![NONE; needs.len()];
    let mut rest = pairs.as_slice();
    while !rest.is_empty() && work < MAX_WORK {
        let (batch, later) = split(rest);
        distinct(batch).enumerate().for_each(|(bit, referred)| bits[referred] = bit);
        marks.clear();
        marks.resize(needs.len(), Marks::default());
        for &task in &order {
            let mut own = Marks::default();
            for &needed in &needs[task] {
                own.iter_mut().zip(marks[needed]).for_each(|(own, theirs)| *own |= theirs);
                let bit = bits[needed];
                if bit != NONE {
                    own[bit / 64] |= 1 << (bit % 64);
                }
            }
            marks[task] = own;
        }
        unordered.extend(batch.iter().filter(|(task, referred)| {
            let bit = bits[*referred];
            marks[*task][bit / 64] & (1 << (bit % 64)) == 0
        }));
        distinct(batch).for_each(|referred| bits[referred] = NONE);
        work += walk;
        rest = later;
    }
    unordered
}

const NONE: usize = usize::MAX;

/// A spanning forest: each task below the first of its needs. Most ancestor queries are answered by comparing two
/// intervals.
struct SpanningForest {
    /// Preorder number of each task, and the last number below it.
    spans: Vec<(usize, usize)>,
}

impl SpanningForest {
    fn of(needs: &[Vec<usize>]) -> Self {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
        let mut open = Vec::new();
        for (task, needed) in needs.iter().enumerate() {
            match needed.first() {
                Some(parent) => children[*parent].push(task),
                None => open.push((task, false)),
            }
        }
        let mut spans = vec![(0, 0); needs.len()];
        let mut time = 0;
        while let Some((task, left)) = open.pop() {
            if left {
                spans[task].1 = time;
                continue;
            }
            time += 1;
            spans[task].0 = time;
            open.push((task, true));
            open.extend(children[task].iter().map(|child| (*child, false)));
        }
        Self { spans }
    }

    fn is_ancestor(&self, upper: usize, lower: usize) -> bool {
        let (entered, last) = self.spans[upper];
        let (below, _) = self.spans[lower];
        entered < below && below <= last
    }
}

/// Splits off the pairs with at most [`BATCH`] different referred tasks. Pairs are sorted by referred task.
fn split(pairs: &[Pair]) -> (&[Pair], &[Pair]) {
    let beyond = distinct(pairs).nth(BATCH);
    let end = beyond.map_or(pairs.len(), |referred| pairs.partition_point(|pair| pair.1 < referred));
    pairs.split_at(end)
}

fn distinct(pairs: &[Pair]) -> impl Iterator<Item = usize> + '_ {
    let mut last = None;
    pairs.iter().map(|pair| pair.1).filter(move |referred| last.replace(*referred) != Some(*referred))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_and_indirect_needs_are_no_strangers() {
        // 0 <- 1 <- 2, 3 alone.
        let needs = [vec![], vec![0], vec![1], vec![]];
        assert_eq!(unordered(&needs, vec![(2, 0), (2, 1), (2, 3), (0, 2), (3, 3)]), [(0, 2), (2, 3), (3, 3)]);
    }

    #[test]
    fn more_references_than_one_walk_holds_are_all_answered() {
        let size = 2 * BATCH + 10;
        let needs: Vec<Vec<usize>> = (0..size).map(|task| if task == 0 { vec![] } else { vec![task - 1] }).collect();
        let last = size - 1;
        let pairs: Vec<_> = (0..size).map(|referred| (last, referred)).chain((1..size).map(|task| (0, task))).collect();
        let unordered = unordered(&needs, pairs);
        assert_eq!(unordered.len(), size);
        assert!(unordered.iter().all(|(task, referred)| *task == 0 || (*task, *referred) == (last, last)));
    }

    #[test]
    fn a_graph_with_a_circle_gets_no_answer() {
        assert_eq!(unordered(&[vec![1], vec![0], vec![]], vec![(2, 0)]), []);
    }
}
