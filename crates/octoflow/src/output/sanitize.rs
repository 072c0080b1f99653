//! Sanitizes text for terminals: removes control sequences that workloads and manifests wrote. Output of steps passes a
//! `Sanitizer`, a state machine over bytes in chunks of any size: sequences are removed, colours (SGR) may stay. Our
//! own text passes `escaped`: quoted control characters are shown, never executed. Both let no control character pass
//! except line feed, tab and the escape of a colour, and both produce valid UTF-8.

use std::{borrow::Cow, fmt::Write as _};

/// How much of a step's output may reach a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Every byte as it is: for pipes and files, and with `--raw`.
    Verbatim,
    /// Text and colours.
    Colours,
    /// Text only.
    Plain,
}

/// Maximum length of a colour sequence's parameters; the longest that tools write have about forty letters.
const MAX_SGR: usize = 64;

/// Maximum length of any other control sequence that is dropped. Real ones are shorter; what follows is shown.
const MAX_SEQUENCE: usize = 256;

/// Maximum length of a control string (window title, clipboard, image) that is dropped. The rest of a longer one is
/// shown, so that one without an end does not hide the rest of a log.
const MAX_STRING: usize = 4096;

const ESC: char = '\x1b';
const RESET: &str = "\x1b[0m";

/// Sanitizes a step's output in chunks. Its memory is bounded.
#[derive(Clone, Debug)]
pub(crate) struct Sanitizer {
    policy: Policy,
    state: State,
    /// Bytes of an incomplete letter.
    partial: Vec<u8>,
    /// True while a colour is on.
    coloured: bool,
    /// True if nothing was shown on this line yet.
    line_is_empty: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// After a carriage return: a line break, whether a line feed follows or not.
    Return,
    Escape,
    /// After ESC and a letter such as `(`: a final letter follows.
    Intermediate,
    /// After `ESC [`, with the parameters so far and the number of letters.
    Sequence {
        parameters: String,
        length: usize,
    },
    /// Inside a string that ends with ST or BEL, with the number of letters.
    String {
        length: usize,
    },
}

impl Sanitizer {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, state: State::Text, partial: Vec::new(), coloured: false, line_is_empty: true }
    }

    /// Returns what may be shown of the next bytes.
    pub(crate) fn chunk<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.policy == Policy::Verbatim {
            return Cow::Borrowed(bytes);
        }
        let mut shown = String::with_capacity(bytes.len());
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        let mut rest = whole.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    text.chars().for_each(|letter| self.letter(letter, &mut shown));
                    break;
                }
                Err(error) => {
                    let (valid, broken) = rest.split_at(error.valid_up_to());
                    String::from_utf8_lossy(valid).chars().for_each(|letter| self.letter(letter, &mut shown));
                    let Some(length) = error.error_len() else {
                        self.partial = broken.to_vec();
                        break;
                    };
                    self.letter(char::REPLACEMENT_CHARACTER, &mut shown);
                    rest = &broken[length..];
                }
            }
        }
        Cow::Owned(shown.into_bytes())
    }

    /// Returns the rest at the end: the replacement of an incomplete letter, and the end of a colour.
    pub(crate) fn finish(&mut self) -> String {
        let mut shown = String::new();
        if !std::mem::take(&mut self.partial).is_empty() {
            self.letter(char::REPLACEMENT_CHARACTER, &mut shown);
        }
        self.end_colour(&mut shown);
        self.state = State::Text;
        shown
    }

    fn letter(&mut self, letter: char, shown: &mut String) {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Text => self.text(letter, shown),
            State::Return if letter == '\r' => self.state = State::Return,
            State::Return => {
                // A progress bar that is drawn over and over becomes lines; CR LF stays one line break.
                if letter == '\n' || !self.line_is_empty {
                    self.line_break(shown);
                }
                if letter != '\n' {
                    self.text(letter, shown);
                }
            }
            State::Escape => self.escape(letter, shown),
            State::Intermediate => match letter {
                ' '..='/' => self.state = State::Intermediate,
                '0'..='~' => {}
                other => self.text(other, shown),
            },
            State::Sequence { parameters, length } => self.sequence(letter, parameters, length + 1, shown),
            State::String { length } => match letter {
                // BEL, CAN and SUB end a string.
                '\x07' | '\x18' | '\x1a' => {}
                ESC | '\n' | '\r' => self.text(letter, shown),
                _ if length >= MAX_STRING => self.text(letter, shown),
                _ => self.state = State::String { length: length + 1 },
            },
        }
    }

    fn text(&mut self, letter: char, shown: &mut String) {
        match letter {
            '\n' => self.line_break(shown),
            '\r' => self.state = State::Return,
            ESC => self.state = State::Escape,
            '\t' => {
                self.line_is_empty = false;
                shown.push('\t');
            }
            // Bells, backspaces, shifts: they would change what was shown before.
            '\0'..='\x1f' | '\x7f' => {}
            other => {
                self.line_is_empty = false;
                show(other, shown);
            }
        }
    }

    fn escape(&mut self, letter: char, shown: &mut String) {
        match letter {
            '[' => self.state = State::Sequence { parameters: String::new(), length: 0 },
            // OSC, DCS, SOS, PM, APC, and the window title of screen and tmux.
            ']' | 'P' | 'X' | '^' | '_' | 'k' => self.state = State::String { length: 0 },
            ' '..='/' => self.state = State::Intermediate,
            '0'..='~' => {}
            other => self.text(other, shown),
        }
    }

    fn sequence(&mut self, letter: char, mut parameters: String, length: usize, shown: &mut String) {
        match letter {
            'm' if self.policy == Policy::Colours && is_colour(&parameters) => {
                self.coloured = !matches!(parameters.as_str(), "" | "0" | "00");
                let _ = write!(shown, "{ESC}[{parameters}m");
            }
            '@'..='~' => {}
            ' '..='?' if length <= MAX_SEQUENCE => {
                // One letter too many is kept, so that a cut sequence is not taken for a colour.
                if parameters.len() <= MAX_SGR {
                    parameters.push(letter);
                }
                self.state = State::Sequence { parameters, length };
            }
            other => self.text(other, shown),
        }
    }

    fn line_break(&mut self, shown: &mut String) {
        self.end_colour(shown);
        self.line_is_empty = true;
        shown.push('\n');
    }

    fn end_colour(&mut self, shown: &mut String) {
        if std::mem::take(&mut self.coloured) {
            shown.push_str(RESET);
        }
    }
}

/// Sanitizes one line of a step's output, without its end. Of a line that was overwritten with carriage returns, the
/// last non-empty state is shown, as on a terminal.
pub(crate) fn line(bytes: &[u8], policy: Policy) -> Cow<'_, [u8]> {
    if policy == Policy::Verbatim {
        return Cow::Borrowed(bytes);
    }
    let states = bytes.rsplit(|byte| *byte == b'\r').map(|state| (state, whole(state, Policy::Plain)));
    let Some((last, text)) = states.into_iter().find(|(_, text)| !text.trim().is_empty()) else {
        return Cow::Borrowed(b"");
    };
    Cow::Owned(if policy == Policy::Plain { text } else { whole(last, policy) }.into_bytes())
}

/// Sanitizes bytes that are complete.
fn whole(bytes: &[u8], policy: Policy) -> String {
    let mut sanitizer = Sanitizer::new(policy);
    let mut shown = sanitizer.chunk(bytes).into_owned();
    shown.extend(sanitizer.finish().into_bytes());
    String::from_utf8(shown).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Removes all control sequences, colours included.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(whole(text.as_bytes(), Policy::Plain))
}

/// Escapes our own text, which may quote others: nothing is left out, and control characters other than line feed and
/// tab are written as in JSON and YAML, `\u001b`. Colours stay where the stream takes them.
pub(crate) fn escaped(text: &str, colours: bool) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if colours && let Some(length) = colour_at(rest) {
            shown.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\n' | '\t' => shown.push(letter),
            '\r' if rest.starts_with('\n') => {}
            '\0'..='\x1f' | '\x7f' => escape(letter, &mut shown),
            other => show(other, &mut shown),
        }
    }
    Cow::Owned(shown)
}

/// Returns whether a text has no possible control character. Most texts are ASCII, so this is the fast path.
fn is_clean(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~'))
}

/// Returns the length of the colour sequence a text begins with.
fn colour_at(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\x1b[")?;
    let end = rest.bytes().take(MAX_SGR + 1).position(|byte| byte == b'm')?;
    is_colour(rest.get(..end)?).then_some(end + 3)
}

/// Returns whether parameters are a colour: numbers only, because `>4;1` and `?4` in front of an `m` are keyboard
/// modes.
fn is_colour(parameters: &str) -> bool {
    parameters.len() <= MAX_SGR && parameters.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'))
}

/// Shows a letter; C1 controls and those that change the direction of text are escaped.
fn show(letter: char, shown: &mut String) {
    match letter {
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escape(letter, shown),
        other => shown.push(other),
    }
}

fn escape(letter: char, shown: &mut String) {
    let _ = write!(shown, "\\u{:04x}", u32::from(letter));
}

#[cfg(test)]
mod tests;
