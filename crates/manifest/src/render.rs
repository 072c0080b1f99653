//! Renders a problem for users: the message, the position, the line with a mark under it. Text from a manifest is
//! sanitised so that it cannot control the terminal.

use std::fmt::Write as _;

use crate::{Problem, Severity, Source, Span};

/// Maximum width of a line; longer ones are cut around the marked part.
const LINE_WIDTH: usize = 110;

/// Width shown before the marked part of a cut line.
const LEAD_WIDTH: usize = 40;

/// Maximum length of a message or path; a longer one quotes something it should not.
const MESSAGE_LENGTH: usize = 2000;

const TAB_WIDTH: usize = 4;

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const BLUE: &str = "\x1b[1;34m";
const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// Renders the problem in lines, each ended by a line break.
pub(crate) fn render(problem: &Problem, colour: bool) -> String {
    let paint = |code: &str, text: &str| if colour { format!("{code}{text}{RESET}") } else { text.to_owned() };
    let tone = match problem.severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
    };
    let mut out = String::new();
    out.push_str(&paint(tone, &format!("{}[{}]", problem.severity.name(), problem.code)));
    let _ = writeln!(out, "{}", paint(BOLD, &format!(": {}", one_line(&problem.message))));

    let excerpt = problem.source.as_deref().zip(problem.span).map(|(source, span)| (span.line, excerpt(source, span)));
    let gutter = excerpt.as_ref().map_or(1, |(line, _)| line.to_string().len());
    let margin = " ".repeat(gutter);
    if let Some(place) = place(problem) {
        let _ = writeln!(out, "{margin}{} {place}", paint(BLUE, "-->"));
    }
    if let Some((line, Excerpt { text, before, width })) = excerpt {
        let _ = writeln!(out, "{margin} {}", paint(BLUE, "|"));
        let numbered = format!("{line:>gutter$} |");
        let _ = writeln!(out, "{}{}{text}", paint(BLUE, &numbered), if text.is_empty() { "" } else { " " });
        let _ =
            writeln!(out, "{margin} {} {}{}", paint(BLUE, "|"), " ".repeat(before), paint(tone, &"^".repeat(width)));
    }
    if let Some(help) = &problem.help {
        let _ = writeln!(out, "{margin} {} help: {}", paint(BLUE, "="), one_line(help));
    }
    out
}

fn place(problem: &Problem) -> Option<String> {
    let path = problem.path.as_ref().filter(|path| !path.is_root()).map(|path| one_line(&path.to_string()));
    let file = problem.source.as_ref().map(|source| {
        let name = one_line(source.name());
        match problem.span {
            Some(span) => format!("{name}:{}:{}", span.line, span.column),
            None => name,
        }
    });
    match (file, path) {
        (Some(file), Some(path)) => Some(format!("{file} ({path})")),
        (file, path) => file.or(path),
    }
}

struct Excerpt {
    text: String,
    before: usize,
    width: usize,
}

fn excerpt(source: &Source, span: Span) -> Excerpt {
    let line = source.line(span.line);
    let marked = source.slice(span).split(['\n', '\r']).next().unwrap_or_default().chars().count().max(1);
    let start = span.column - 1;
    let end = start + marked;

    // Only what can be shown is processed, so that a line of megabytes costs nothing.
    let skip = start.saturating_sub(LINE_WIDTH);
    let cells: Vec<(String, usize)> = line.chars().skip(skip).take(LINE_WIDTH * 3).map(cell).collect();
    let start = start - skip;
    let end = end - skip;
    let more = line.chars().nth(skip + cells.len()).is_some();

    let lead: usize = cells.iter().take(start).map(|(_, width)| width).sum();
    let total: usize = cells.iter().map(|(_, width)| width).sum();
    let cut_left = skip > 0 || (lead + marked > LINE_WIDTH && lead > LEAD_WIDTH);
    let first = if cut_left { back_off(&cells, start) } else { 0 };

    let mut text = String::new();
    let mut before = 0;
    let mut shown = 0;
    let mut width = 0;
    if first > 0 || skip > 0 {
        text.push('…');
        shown = 1;
        before = 1;
    }
    let mut cut_right = more;
    for (position, (letter, cells_wide)) in cells.iter().enumerate().skip(first) {
        if shown + cells_wide > LINE_WIDTH && total > LINE_WIDTH {
            cut_right = true;
            break;
        }
        text.push_str(letter);
        shown += cells_wide;
        if position < start {
            before += cells_wide;
        } else if position < end {
            width += cells_wide;
        }
    }
    if cut_right {
        text.push('…');
    }
    Excerpt { text: text.trim_end().to_owned(), before, width: width.max(1) }
}

fn back_off(cells: &[(String, usize)], start: usize) -> usize {
    let mut first = start.min(cells.len());
    let mut room = LEAD_WIDTH;
    while first > 0 && cells[first - 1].1 <= room {
        first -= 1;
        room -= cells[first].1;
    }
    first
}

fn cell(letter: char) -> (String, usize) {
    match letter {
        '\t' => (" ".repeat(TAB_WIDTH), TAB_WIDTH),
        _ if is_unsafe(letter) => ("\u{FFFD}".to_owned(), 1),
        _ => (letter.to_string(), width(letter)),
    }
}

/// Sanitises a text to one line: messages may quote a manifest, and a manifest may contain anything.
fn one_line(text: &str) -> String {
    let mut letters = text.chars().map(|letter| match letter {
        '\n' | '\t' => ' ',
        _ if is_unsafe(letter) => '\u{FFFD}',
        _ => letter,
    });
    let mut line: String = letters.by_ref().take(MESSAGE_LENGTH).collect();
    if letters.next().is_some() {
        line.push('…');
    }
    line
}

/// Reports whether this is a control character, or one that reorders text and could disguise a line.
fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// Returns the terminal cells a character takes: none for combining marks, two for East Asian wide characters and
/// emoji.
fn width(letter: char) -> usize {
    match u32::from(letter) {
        0x0300..=0x036F
        | 0x0483..=0x0489
        | 0x0591..=0x05BD
        | 0x0610..=0x061A
        | 0x064B..=0x065F
        | 0x0E34..=0x0E3A
        | 0x0E47..=0x0E4E => 0,
        0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x200B..=0x200D | 0x20D0..=0x20FF | 0x302A..=0x302D | 0x3099..=0x309A => 0,
        0xFE00..=0xFE0F | 0xFE20..=0xFE2F | 0x1F3FB..=0x1F3FF | 0xE0100..=0xE01EF => 0,
        0x1100..=0x115F
        | 0x231A..=0x231B
        | 0x23E9..=0x23EC
        | 0x2614..=0x2615
        | 0x2648..=0x2653
        | 0x26CE
        | 0x26D4
        | 0x2705 => 2,
        0x270A..=0x270B
        | 0x2728
        | 0x274C
        | 0x274E
        | 0x2753..=0x2755
        | 0x2757
        | 0x2795..=0x2797
        | 0x27B0
        | 0x2B50
        | 0x2B55 => 2,
        0x2E80..=0x303E | 0x3041..=0xA4CF | 0xA960..=0xA97F | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F => 2,
        0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F7E0..=0x1F7EB
        | 0x1F900..=0x1FAFF => 2,
        0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Path;

    fn problem(text: &str, offset: usize, length: usize) -> Problem {
        let source = Arc::new(Source::new("wf.yaml", text));
        let span = source.span(offset, length);
        Problem::error("OF1003", "unknown field").at(&source, span)
    }

    fn pointed(text: &str, mark: &str) -> (String, String) {
        let shown = problem(text, text.find(mark).unwrap(), mark.len()).render(false);
        let lines: Vec<&str> = shown.lines().collect();
        (lines[3].to_owned(), lines[4].to_owned())
    }

    #[test]
    fn a_problem_shows_message_place_line_and_help() {
        let text = format!("{}    contaner:\n      image: x\n", "# line\n".repeat(11));
        let path: Path = "spec.templates[0].contaner".parse().unwrap();
        let mut problem = problem(&text, 11 * 7 + 4, 8).path(path).help("write `container`");
        problem.message = "unknown field `contaner`; did you mean `container`?".to_owned();
        let expected = "\
error[OF1003]: unknown field `contaner`; did you mean `container`?
  --> wf.yaml:12:5 (spec.templates[0].contaner)
   |
12 |     contaner:
   |     ^^^^^^^^
   = help: write `container`
";
        assert_eq!(problem.render(false), expected);
    }

    #[test]
    fn colours_are_written_only_when_asked() {
        let problem = problem("a: b\n", 0, 1);
        assert!(!problem.render(false).contains('\x1b'));
        let expected = "\x1b[1;31merror[OF1003]\x1b[0m\x1b[1m: unknown field\x1b[0m\n \x1b[1;34m-->\x1b[0m wf.yaml:1:1\n  \x1b[1;34m|\x1b[0m\n\x1b[1;34m1 |\x1b[0m a: b\n  \x1b[1;34m|\x1b[0m \x1b[1;31m^\x1b[0m\n";
        assert_eq!(problem.render(true), expected);
    }

    #[test]
    fn a_problem_without_a_place_is_still_whole() {
        assert_eq!(Problem::warning("OF9", "odd").render(false), "warning[OF9]: odd\n");
        let at_path = Problem::error("OF9", "odd").path("spec.x".parse().unwrap()).help("drop it");
        assert_eq!(at_path.render(false), "error[OF9]: odd\n --> spec.x\n  = help: drop it\n");
    }

    #[test]
    fn the_mark_stands_right_after_tabs_and_wide_characters() {
        assert_eq!(pointed("\tx: y", "y"), ("1 |     x: y".to_owned(), "  |        ^".to_owned()));
        assert_eq!(pointed("鍵: 値 z", "値"), ("1 | 鍵: 値 z".to_owned(), "  |     ^^".to_owned()));
        assert_eq!(pointed("e\u{301}: z", "z"), ("1 | e\u{301}: z".to_owned(), "  |    ^".to_owned()));
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let text = format!("{}MARK{}", "a".repeat(5_000_000), "b".repeat(5_000));
        let (line, mark) = pointed(&text, "MARK");
        assert_eq!(line, format!("1 | …{}MARK{}…", "a".repeat(40), "b".repeat(65)));
        assert_eq!(mark, format!("  |  {}^^^^", " ".repeat(40)));

        let text = format!("key: {}", "b".repeat(500));
        let (line, mark) = pointed(&text, &"b".repeat(500));
        assert_eq!(line, format!("1 | key: {}…", "b".repeat(105)));
        assert_eq!(mark, format!("  |      {}", "^".repeat(105)));
    }

    #[test]
    fn a_mark_over_several_lines_ends_with_the_first() {
        assert_eq!(
            pointed("a: {b: 1,\n c: 2}\n", "{b: 1,\n c: 2}"),
            ("1 | a: {b: 1,".to_owned(), "  |    ^^^^^^".to_owned())
        );
    }

    #[test]
    fn the_end_of_the_text_can_be_marked() {
        let shown = problem("a: b\n", 5, 0).render(false);
        assert_eq!(shown, "error[OF1003]: unknown field\n --> wf.yaml:2:1\n  |\n2 |\n  | ^\n");
    }

    #[test]
    fn a_manifest_cannot_steer_the_terminal() {
        let text = "a: \u{1b}[2J\u{202e}x";
        let mut problem = problem(text, 0, 1);
        problem.message = "bad\u{1b}[31m\nerror[OF1]: fake".to_owned();
        let shown = problem.render(false);
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
        assert_eq!(shown.lines().next(), Some("error[OF1003]: bad\u{FFFD}[31m error[OF1]: fake"));
    }
}
