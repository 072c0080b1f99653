//! The table people read, in a form that can be pasted into the documentation.

use super::row::{Goal, Line, Verdict};

pub fn render(lines: &[Line]) -> String {
    let head = ["row", "what", "ours", "yardstick", "value", "goal", "reached"].map(str::to_owned);
    let mut cells = vec![head];
    cells.extend(lines.iter().map(row));
    let widths: Vec<usize> =
        (0..COLUMNS).map(|at| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, row) in cells.iter().enumerate() {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(&format!("| {} |\n", padded.collect::<Vec<_>>().join(" | ")));
        if number == 0 {
            let rule = widths.iter().map(|width| "-".repeat(*width));
            text.push_str(&format!("| {} |\n", rule.collect::<Vec<_>>().join(" | ")));
        }
    }
    text
}

const COLUMNS: usize = 7;

fn row(line: &Line) -> [String; COLUMNS] {
    let goal = match line.goal {
        None => String::new(),
        Some(Goal::AtLeast(least)) => format!("≥ {least} {}", line.unit),
        Some(Goal::AtMost(most)) => format!("≤ {most} {}", line.unit),
    };
    let verdict = match line.verdict() {
        Verdict::Reached => "ok",
        Verdict::Missed => "missed",
        Verdict::Told => "",
    };
    let value = format!("{:.2} {}", line.value, line.unit);
    [
        line.row.clone(),
        line.what.to_owned(),
        line.ours.clone(),
        line.yardstick.clone(),
        value.trim_end().to_owned(),
        goal.trim_end().to_owned(),
        verdict.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_goal_is_told() {
        let line = Line {
            row: "hello".to_owned(),
            what: "wall",
            ours: "80 ms".to_owned(),
            yardstick: "1 ms".to_owned(),
            value: 79.0,
            unit: "ms",
            goal: Some(Goal::AtMost(60.0)),
        };
        let text = render(&[line]);
        assert!(text.contains("| hello | wall | 80 ms | 1 ms      | 79.00 ms | ≤ 60 ms | missed  |"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }
}
