//! One case: a text from the grammar of its target, or a seed with some damage.

use super::{grammar, seeds::Seeds, words};
use crate::sim::Draw;

/// A text and how it was made.
#[derive(Debug)]
pub struct Case {
    pub text: Vec<u8>,
    pub made: &'static str,
}

/// Longer texts only take longer.
const LONGEST: usize = 64 * 1024;

/// The case of this number.
pub fn case(target: &str, seeds: &Seeds, seed: u64, number: u64) -> Case {
    let mut draw = Draw::of(seed, target, &number.to_string());
    let grown = seeds.0.is_empty() || draw.chance(40);
    let (mut text, made) = if grown {
        (grammar::text(target, &mut draw).into_bytes(), "grammar")
    } else {
        (draw.pick(&seeds.0).1.clone(), "seed")
    };
    if grown && draw.chance(60) {
        return Case { text, made };
    }
    for _ in 0..draw.between(1, 4) {
        damage(target, &mut text, seeds, &mut draw);
    }
    text.truncate(LONGEST);
    Case { text, made: if grown { "grammar, damaged" } else { "seed, damaged" } }
}

fn damage(target: &str, text: &mut Vec<u8>, seeds: &Seeds, draw: &mut Draw) {
    let at = draw.below(text.len() as u64 + 1) as usize;
    match draw.below(12) {
        0 if !text.is_empty() => {
            text.remove(at.min(text.len() - 1));
        }
        1 if !text.is_empty() => {
            let at = at.min(text.len() - 1);
            text[at] ^= 1 << draw.below(8);
        }
        2 => text.insert(at, draw.below(256) as u8),
        3 => {
            let word = draw.pick(words::SIGNS).as_bytes();
            text.splice(at..at, word.iter().copied());
        }
        4 | 5 => {
            let word = grammar::word(target, draw);
            text.splice(at..at, word.bytes());
        }
        // A piece is taken out, or stands twice.
        6 => {
            let end = (at + draw.below(20) as usize).min(text.len());
            text.drain(at.min(end)..end);
        }
        7 => {
            let end = (at + draw.between(1, 40) as usize).min(text.len());
            let piece: Vec<u8> = text[at.min(end)..end].to_vec();
            let times = draw.pick(&[1_u64, 1, 1, 2, 100]).to_owned();
            for _ in 0..times {
                text.splice(at..at, piece.iter().copied());
            }
        }
        // The end of another seed.
        8 if !seeds.0.is_empty() => {
            let other = &draw.pick(&seeds.0).1;
            let from = draw.below(other.len() as u64 + 1) as usize;
            text.truncate(at);
            text.extend_from_slice(&other[from..]);
        }
        9 => {
            let (open, close) =
                *draw.pick(&[("(", ")"), ("[", "]"), ("{{", "}}"), ("{{=", "}}"), ("{", "}"), ("\"", "\"")]);
            // Thousands take a hundred times as long as any other case, so they are rare.
            let times = *draw.pick(&[1_usize, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 70, 70, 70, 70, 70, 70, 70, 5_000]);
            text.splice(at..at, open.repeat(times).bytes());
            text.extend(close.repeat(times).bytes());
        }
        // A number becomes another one.
        10 => {
            if let Some(start) = text[at..].iter().position(u8::is_ascii_digit).map(|found| at + found) {
                let end =
                    text[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(text.len(), |n| start + n);
                text.splice(start..end, draw.pick(words::NUMBERS).bytes());
            }
        }
        _ => {
            // Two lines change places, as in a text somebody sorted.
            let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let (one, other) = (draw.below(lines.len() as u64) as usize, draw.below(lines.len() as u64) as usize);
            lines.swap(one, other);
            *text = lines.join(&b'\n');
        }
    }
}
