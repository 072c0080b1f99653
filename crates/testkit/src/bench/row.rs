//! One line of the table, and how several measurements become one number.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub row: String,
    pub what: &'static str,
    pub ours: String,
    pub yardstick: String,
    /// The number the goal is about.
    pub value: f64,
    pub unit: &'static str,
    pub goal: Option<Goal>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Reached,
    Missed,
    /// Nobody set a goal; it is there to be looked at.
    Told,
}

impl Line {
    pub fn verdict(&self) -> Verdict {
        let reached = match self.goal {
            None => return Verdict::Told,
            Some(Goal::AtLeast(least)) => self.value >= least,
            Some(Goal::AtMost(most)) => self.value <= most,
        };
        if reached { Verdict::Reached } else { Verdict::Missed }
    }
}

/// The middle one, which a single disturbed measurement cannot move far.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count.is_multiple_of(2) => f64::midpoint(values[count / 2 - 1], values[count / 2]),
        count => values[count / 2],
    }
}

pub(super) fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_one_wild_value() {
        assert!((median(vec![3.0, 1.0, 900.0]) - 3.0).abs() < 1e-9);
        assert!((median(vec![1.0, 2.0, 3.0, 900.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_goal_is_reached_on_its_own_side() {
        let line = |value, goal| Line {
            row: String::new(),
            what: "",
            ours: String::new(),
            yardstick: String::new(),
            value,
            unit: "",
            goal,
        };
        assert_eq!(line(0.61, Some(Goal::AtLeast(0.6))).verdict(), Verdict::Reached);
        assert_eq!(line(0.59, Some(Goal::AtLeast(0.6))).verdict(), Verdict::Missed);
        assert_eq!(line(1.6, Some(Goal::AtMost(1.5))).verdict(), Verdict::Missed);
        assert_eq!(line(1.6, None).verdict(), Verdict::Told);
    }
}
