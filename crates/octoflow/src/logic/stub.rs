//! Choosing what a task does: the first stub that fits, and which of its answers.

use super::{
    answer::{Answer, Given, says_ending},
    notation::like,
    test_document::Located,
};

/// The stubs of a case, its own first, with how often each was used.
#[derive(Debug)]
pub(crate) struct Stubs<'a> {
    list: Vec<(Located<'a>, usize)>,
    strict: bool,
}

/// The case is wrong about a task.
#[derive(Debug)]
pub(crate) enum Fault<'a> {
    /// No stub is for it, and the case insists on one.
    Unstubbed,
    /// A value refers to what is not there.
    Reference(Located<'a>, String),
}

impl<'a> Stubs<'a> {
    pub(crate) fn new(stubs: impl Iterator<Item = Located<'a>>, strict: bool) -> Self {
        Self { list: stubs.map(|stub| (stub, 0)).collect(), strict }
    }

    pub(crate) fn answer(&mut self, mut given: Given<'_>) -> Result<Answer, Fault<'a>> {
        let Some((stub, used)) = self.list.iter_mut().find(|(stub, _)| fits(stub, &given)) else {
            let plain = if given.daemon { Answer::plain().of_daemon(false) } else { Answer::plain() };
            return if self.strict { Err(Fault::Unstubbed) } else { Ok(plain) };
        };
        given.call = *used;
        *used += 1;
        let nth = |key: &str, index: usize| {
            let list: Vec<Located<'a>> = stub.items_of(key).collect();
            list.get(index.min(list.len().saturating_sub(1))).cloned()
        };
        let own = nth("attempts", given.attempt).or_else(|| nth("calls", given.call));
        let own = own.unwrap_or_else(|| stub.clone());
        let answer = Answer::of(&own, stub, &given).map_err(|(located, why)| Fault::Reference(located, why))?;
        let said = says_ending(&own) || says_ending(stub);
        Ok(if given.daemon { answer.of_daemon(said) } else { answer })
    }
}

fn fits(stub: &Located<'_>, given: &Given<'_>) -> bool {
    let one = |key: &str, names: &[&str]| {
        stub.text_of(key).is_none_or(|pattern| names.iter().any(|name| *name == pattern || like(&pattern, name)))
    };
    one("template", &[given.template])
        && one("node", &[given.node, given.display])
        && one("image", &[&given.task.main.image])
        && one("run", &[given.run])
}
