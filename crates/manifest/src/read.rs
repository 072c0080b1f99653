//! Reads bytes into documents. Cheap checks first, then the scanner of the right notation, then the composer. All
//! errors of the text are found here; its meaning is checked elsewhere.

mod compose;
mod event;
mod expand;
mod input;
mod json;
mod margin;
mod syntax;
mod tree;
mod yaml;

use std::sync::Arc;

use self::compose::Composer;
use crate::problem::code;
use crate::{Document, Limits, Problem, Problems, Source};

/// Values are built and dropped by recursion, so no caller may ask for more levels than any
/// thread's stack has room for.
const DEPTH_CEILING: usize = 500;

/// Offsets are kept in 32 bits.
const BYTES_CEILING: usize = 1 << 30;

/// Reads all documents of a text, YAML or JSON. Empty documents are left out.
///
/// Plain scalars mean what they mean to Kubernetes (YAML 1.1: `yes`, `on` and `y` are true, `010`
/// is eight, dates are text). Keys that are numbers or booleans become text. Merge keys and
/// aliases are resolved; keys of the mapping itself win over merged ones wherever they stand.
/// Numbers are held as JSON holds them: `1.10` is 1.1 and `1e3` is 1000; `Document::text` has what
/// was written, `number_text` what JSON shows.
///
/// On failure all problems that could be found are returned; the first syntax error ends the
/// search, as does a limit.
pub fn read(name: &str, text: &[u8], limits: &Limits) -> Result<Vec<Document>, Problems> {
    let (documents, problems) = read_each(name, text, limits);
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

/// Reads like [`read`]; problems of one document do not hide the others. Returns the documents that are whole, and all
/// problems that could be found.
pub fn read_each(name: &str, text: &[u8], limits: &Limits) -> (Vec<Document>, Problems) {
    let none = |problem: Problem| (Vec::new(), problem.into());
    let limits = Limits {
        bytes: limits.bytes.min(BYTES_CEILING),
        depth: limits.depth.min(DEPTH_CEILING),
        nodes: limits.nodes.min(BYTES_CEILING),
        ..*limits
    };
    if text.len() > limits.bytes {
        let message = format!("{} bytes are more than a manifest may have ({})", text.len(), limits.bytes);
        let source = Arc::new(Source::new(name, ""));
        let problem = Problem { source: Some(source), ..Problem::error(code::LIMIT, message) };
        return none(problem.help("split it into several files"));
    }
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let source = match std::str::from_utf8(text) {
        Ok(text) => Arc::new(Source::new(name, text)),
        Err(error) => return none(not_utf8(name, text, error.valid_up_to())),
    };
    if json::looks_like(source.text()) {
        let mut composer = Composer::new(&source, &limits);
        match json::scan(source.text(), &mut composer) {
            // A problem that stops it is among those of the composer.
            Ok(()) | Err(json::Failure::Stopped(_)) => return (composer.documents, composer.problems),
            // YAML has brackets too.
            Err(json::Failure::NotJson) => {}
        }
    }
    if let Some(problem) = control_character(&source) {
        return none(problem);
    }
    let mut composer = Composer::new(&source, &limits);
    // A problem that stops it is among those of the composer.
    let _ = yaml::scan(&mut composer);
    (composer.documents, composer.problems)
}

fn not_utf8(name: &str, text: &[u8], offset: usize) -> Problem {
    let source = Arc::new(Source::new(name, String::from_utf8_lossy(text)));
    let span = source.span(offset, 1);
    let message =
        format!("not UTF-8: byte 0x{:02x} at offset {offset}, line {}, cannot be read", text[offset], span.line);
    let help = if text.starts_with(b"\xFF\xFE") || text.starts_with(b"\xFE\xFF") {
        "it looks like UTF-16; save it as UTF-8"
    } else {
        "save it as UTF-8"
    };
    Problem::error(code::NOT_UTF8, message).help(help).at(&source, span)
}

/// Finds a control character. YAML allows none but tab and line breaks, and none of the others is ever intended.
fn control_character(source: &Arc<Source>) -> Option<Problem> {
    let offset = control_offset(source.text().as_bytes())?;
    let letter = source.text()[offset..].chars().next().map_or(0, u32::from);
    let message = format!("control character U+{letter:04X} is not allowed");
    let help = format!("inside double quotes it can be written as \"\\x{letter:02x}\"");
    Some(Problem::error(code::SYNTAX, message).help(help).at(source, source.span(offset, 1)))
}

fn control_offset(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 4096;
    bytes.chunks(BLOCK).enumerate().find_map(|(block, chunk)| {
        // Without a branch for each byte this is one of the cheapest passes there is.
        let suspect = chunk.iter().fold(false, |found, byte| {
            found
                | ((*byte < 0x20) & (*byte != b'\t') & (*byte != b'\n') & (*byte != b'\r'))
                | (*byte == 0x7F)
                | (*byte == 0xC2)
        });
        if !suspect {
            return None;
        }
        let start = block * BLOCK;
        let end = start + chunk.len();
        (start..end).find(|&at| match bytes[at] {
            b'\t' | b'\n' | b'\r' => false,
            0..=0x1F | 0x7F => true,
            // The second half of the control characters; some readers treat 0x85 as a line break.
            0xC2 => matches!(bytes.get(at + 1), Some(0x80..=0x84 | 0x86..=0x9F)),
            _ => false,
        })
    })
}
