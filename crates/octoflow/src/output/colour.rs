//! Colours, icons, and the width of text on a terminal. It decides whether a stream gets colours; it never writes to
//! one.

use std::{env, io::IsTerminal};

use octoflow_engine::{
    dialect::PhaseClass,
    kinds::{self, Kind},
};

use super::sanitize::plain;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Magenta => "35",
            Self::Cyan => "36",
        }
    }
}

/// Whether a stream takes colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint(bool);

impl Paint {
    #[cfg(test)]
    pub(crate) const OFF: Self = Self(false);
    #[cfg(test)]
    pub(crate) const ON: Self = Self(true);

    pub(crate) fn for_stream(stream: &impl IsTerminal, refused: bool) -> Self {
        let unwanted = refused
            || env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self(!unwanted && stream.is_terminal())
    }

    pub(crate) fn is_on(self) -> bool {
        self.0
    }

    pub(crate) fn paint(self, text: &str, colour: Colour) -> String {
        if self.0 && colour != Colour::Plain {
            format!("\x1b[{}m{text}\x1b[0m", colour.code())
        } else {
            text.to_owned()
        }
    }
}

/// Returns the icon of a node's phase. A waiting suspend node has its own.
pub(crate) fn icon(phase: &str, waiting: bool) -> (&'static str, Colour) {
    if waiting {
        return ("ǁ", Colour::Cyan);
    }
    match phase {
        "Pending" | "Waiting" => ("◷", Colour::Yellow),
        "Running" => ("●", Colour::Cyan),
        "Succeeded" => ("✔", Colour::Green),
        "Skipped" | "Omitted" | "Stopped" => ("○", Colour::Plain),
        "Failed" => ("✖", Colour::Red),
        "Error" => ("⚠", Colour::Red),
        other => match class_of(other) {
            Some(PhaseClass::Waiting) => ("◷", Colour::Yellow),
            Some(PhaseClass::Running) => ("●", Colour::Cyan),
            Some(PhaseClass::Succeeded) => ("✔", Colour::Green),
            Some(PhaseClass::Failed) => ("✖", Colour::Red),
            None => ("·", Colour::Plain),
        },
    }
}

/// Returns the class of a phase, whatever the kind of run that has it.
pub(crate) fn class_of(phase: &str) -> Option<PhaseClass> {
    kinds::of_runs().filter_map(Kind::dialect).find_map(|dialect| dialect.phase_class(phase))
}

pub(crate) fn phase_colour(phase: &str) -> Colour {
    icon(phase, false).1
}

/// Returns the colour for a name, the same in every invocation.
pub(crate) fn stable(name: &str) -> Colour {
    const WHEEL: [Colour; 6] =
        [Colour::Cyan, Colour::Green, Colour::Yellow, Colour::Magenta, Colour::Blue, Colour::Red];
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    WHEEL[hash as usize % WHEEL.len()]
}

/// Returns the columns a text takes on a terminal. Wide East Asian letters and emoji take two, combining marks none.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(letter_width).sum()
}

pub(crate) fn letter_width(letter: char) -> usize {
    match letter as u32 {
        0..=0x1f | 0x7f..=0x9f | 0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// Sanitizes text from a workload for one line of a terminal: no line breaks, no control sequences.
pub(crate) fn one_line(text: &str) -> String {
    let harmless = plain(text);
    let joined: Vec<&str> = harmless.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    joined.join(" ").replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_appear_only_where_they_are_wanted() {
        assert_eq!(Paint::ON.paint("x", Colour::Red), "\x1b[31mx\x1b[0m");
        assert_eq!(Paint::ON.paint("x", Colour::Plain), "x");
        assert_eq!(Paint::OFF.paint("x", Colour::Red), "x");
    }

    #[test]
    fn a_name_keeps_its_colour() {
        assert_eq!(stable("step-a"), stable("step-a"));
        let colours: std::collections::HashSet<_> = ["a", "b", "c", "d", "e"].map(|name| stable(name).code()).into();
        assert!(colours.len() > 1, "different names get different colours");
    }

    #[test]
    fn width_counts_columns_not_bytes() {
        assert_eq!(width("✔ step"), 6);
        assert_eq!(width("调度"), 4);
        assert_eq!(width("e\u{301}"), 1);
    }

    #[test]
    fn a_message_cannot_break_the_line_or_the_terminal() {
        assert_eq!(one_line("first\n  second \r\n\n\x1b[31mred\x07"), "first   second red");
    }
}
