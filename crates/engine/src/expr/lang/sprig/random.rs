//! Random functions of `sprig.*`: identifiers, letters, numbers. They are deterministic in the evaluation context, see
//! [`crate::expr::random`]; the machine's random source is never used.

use octoflow_model::base64;

use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::Function;
use crate::expr::lang::work::{CallResult, EvalFault, EvalWork};

use super::coerce;

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LETTERS_AND_DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS: &[u8] = b"0123456789";

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("uuidv4", 0, 0, uuid),
    Function::new("randAlphaNum", 1, 1, |a, work| letters(a, work, LETTERS_AND_DIGITS)),
    Function::new("randAlpha", 1, 1, |a, work| letters(a, work, LETTERS)),
    Function::new("randNumeric", 1, 1, |a, work| letters(a, work, DIGITS)),
    Function::new("randAscii", 1, 1, |a, work| {
        let printable: Vec<u8> = (b' '..=b'~').collect();
        letters(a, work, &printable)
    }),
    Function::new("randBytes", 1, 1, |a, work| {
        let bytes = drawn(a, work, |work, a| Ok(work.draws(a.name)?.next() as u8))?;
        Ok(Value::from(base64::encode(&bytes)))
    }),
    Function::new("randInt", 2, 2, |a, work| {
        let (least, end) = (coerce::int(a.any(0)), coerce::int(a.any(1)));
        let span = u64::try_from(i128::from(end) - i128::from(least)).ok().filter(|span| *span > 0);
        let span = span.ok_or_else(|| a.fault(format!("there is no number from {least} on and below {end}")))?;
        let drawn = i128::from(least) + i128::from(work.draws(a.name)?.below(span));
        Ok(Value::Int(i64::try_from(drawn).unwrap_or(least)))
    }),
    Function::new("shuffle", 1, 1, |a, work| {
        let mut letters: Vec<char> = a.text(0)?.chars().collect();
        work.claim_list(letters.len())?;
        for at in (1..letters.len()).rev() {
            let other = work.draws(a.name)?.below(at as u64 + 1) as usize;
            letters.swap(at, other);
        }
        Ok(Value::from(letters.into_iter().collect::<String>()))
    }),
];

fn letters(a: &Arguments<'_>, work: &mut EvalWork, among: &[u8]) -> CallResult {
    let bytes = drawn(a, work, |work, a| Ok(among[work.draws(a.name)?.below(among.len() as u64) as usize]))?;
    Ok(Value::from(bytes.into_iter().map(char::from).collect::<String>()))
}

/// Draws as many bytes as the first argument says.
fn drawn(
    a: &Arguments<'_>,
    work: &mut EvalWork,
    one: impl Fn(&mut EvalWork, &Arguments<'_>) -> Result<u8, EvalFault>,
) -> Result<Vec<u8>, EvalFault> {
    let count = coerce::int(a.any(0));
    let count = usize::try_from(count).map_err(|_| a.fault(format!("{count} is negative")))?;
    work.spend(count as u64)?;
    work.claim(count)?;
    (0..count).map(|_| one(work, a)).collect()
}

fn uuid(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let draws = work.draws(a.name)?;
    let (high, low) = (draws.next(), draws.next());
    // UUID version 4, RFC variant.
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | (0b10 << 62);
    Ok(Value::from(format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )))
}
