//! Circles in a graph, found in time linear to its size and without recursion: a chain of a hundred thousand tasks is
//! an ordinary manifest.

/// An order in which everything comes after what it needs, or nothing when there is a circle.
pub(super) fn order(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let (order, _) = sort(needs);
    (order.len() == needs.len()).then_some(order)
}

/// One circle, in the direction of the needs, beginning with its lowest member; its first member is not repeated.
pub(super) fn find(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let (_, open) = sort(needs);
    let mut at = open.iter().position(|left| *left > 0)?;
    // What is left over needs something that is left over, so walking on must come round.
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

/// `A->B->A`, with the middle left out when it is long.
pub(super) fn shown(names: &[&str]) -> String {
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

/// What could be put in order, and for everything how many of its needs could not.
fn sort(needs: &[Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (vertex, needed) in needs.iter().enumerate() {
        for &needed in needed {
            dependents[needed].push(vertex);
        }
    }
    let mut order: Vec<usize> = (0..needs.len()).filter(|vertex| open[*vertex] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for &dependent in &dependents[order[next]] {
            open[dependent] -= 1;
            if open[dependent] == 0 {
                order.push(dependent);
            }
        }
        next += 1;
    }
    (order, open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_without_a_circle_has_an_order() {
        let needs = [vec![1, 2], vec![2], vec![], vec![0]];
        assert_eq!(find(&needs), None);
        assert_eq!(order(&needs), Some(vec![2, 1, 0, 3]));
    }

    #[test]
    fn a_circle_is_shown_from_its_lowest_member_and_without_what_leads_to_it() {
        let needs = [vec![1], vec![2], vec![3], vec![1]];
        assert_eq!(find(&needs), Some(vec![1, 2, 3]));
        assert_eq!(order(&needs), None);
        assert_eq!(find(&[vec![0]]), Some(vec![0]));
    }

    #[test]
    fn a_long_circle_is_shown_in_short() {
        assert_eq!(shown(&["a", "b"]), "a->b->a");
        let names: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(shown(&names), "t0->t1->t2->t3->t4->t5->t6->t7->… (89 more) …->t97->t98->t99->t0");
    }
}
