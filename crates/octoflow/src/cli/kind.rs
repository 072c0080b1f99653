//! Kinds as arguments: found by group and name in any of their spellings, listed by the word that means each alone.
//! Parsing only.

use std::ffi::OsStr;

use clap::{
    Arg, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use octoflow_engine::kinds::{self, Kind, of_word};
use serde_json::Value;

/// Selects objects of one kind, or of every kind of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KindFilter {
    /// In any group, also a kind that is refused by name.
    Named(&'static str),
    Exactly(&'static Kind),
}

impl KindFilter {
    /// Reports whether it selects an object by its `apiVersion` and `kind`.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        match self {
            Self::Named(name) => object["kind"] == **name,
            Self::Exactly(kind) => {
                kinds::of_manifest(object).is_ok_and(|found| found.alternate_of.unwrap_or(found) == *kind)
            }
        }
    }
}

/// What `schema` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SchemaOf {
    Kind(&'static Kind),
    /// The files of `octoflow test`, which are no objects.
    Tests,
}

/// Parses a filter. A plain name means the kinds of every group that have it, since a filter may select several.
pub(super) fn filter(text: &str) -> Result<KindFilter, String> {
    let known = || kinds::loadable().map(|kind| kind.name).chain(kinds::refused());
    let is_meant = |name: &&'static str| {
        text.eq_ignore_ascii_case(name)
            || text.strip_suffix(['s', 'S']).is_some_and(|one| one.eq_ignore_ascii_case(name))
    };
    let named = known().find(is_meant).map(KindFilter::Named);
    let exactly = || of_word(text).map(main).filter(|kind| kind.shape.is_some()).map(KindFilter::Exactly);
    let words = || kinds::loadable().map(|kind| kind.word).chain(kinds::refused()).collect::<Vec<_>>().join(", ");
    named.or_else(exactly).ok_or_else(|| format!("expected some of {}", words()))
}

/// Parses a kind of run to its key.
pub(super) fn of_runs() -> impl TypedValueParser<Value = &'static str> {
    KindParser { listed: || kinds::of_runs().collect(), to: |kind| kind.key, extra: None }
}

/// Parses a kind that has a schema.
pub(super) fn with_schema() -> impl TypedValueParser<Value = SchemaOf> {
    let extra = Some((crate::logic::KIND, SchemaOf::Tests));
    KindParser { listed: || kinds::loadable().collect(), to: SchemaOf::Kind, extra }
}

/// Returns the kind whose objects those of a kind are.
fn main(kind: &'static Kind) -> &'static Kind {
    kind.alternate_of.unwrap_or(kind)
}

/// Parses any spelling of some kinds. Help and completion list one word for each.
#[derive(Clone)]
struct KindParser<T> {
    listed: fn() -> Vec<&'static Kind>,
    to: fn(&'static Kind) -> T,
    /// A word that is taken besides, and its meaning.
    extra: Option<(&'static str, T)>,
}

impl<T> KindParser<T> {
    fn words(&self) -> impl Iterator<Item = &'static str> + use<T> {
        let extra = self.extra.as_ref().map(|(word, _)| *word);
        (self.listed)().into_iter().map(|kind| kind.word).chain(extra)
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for KindParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let word = value.to_str().unwrap_or_default();
        if let Some((_, meaning)) = self.extra.as_ref().filter(|(extra, _)| extra.eq_ignore_ascii_case(word)) {
            return Ok(meaning.clone());
        }
        match of_word(word).map(main).filter(|kind| (self.listed)().contains(kind)) {
            Some(kind) => Ok((self.to)(kind)),
            // It words the error, with the nearest of the words there are.
            None => Err(PossibleValuesParser::new(self.words())
                .parse_ref(command, arg, value)
                .expect_err("every listed word means a listed kind")),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use octoflow_engine::volcano;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_takes_every_spelling_and_a_plain_name_means_every_group() {
        assert_eq!(filter("workflows"), Ok(KindFilter::Named("Workflow")));
        assert_eq!(filter("CronWorkflow"), Ok(KindFilter::Named("CronWorkflow")));
        assert_eq!(filter("vcjob"), Ok(KindFilter::Exactly(&volcano::JOB)));
        assert!(filter("pods").unwrap_err().contains("Job, CronJob, Job.batch.volcano.sh, "));
        let kubernetes = json!({"apiVersion": "batch/v1", "kind": "Job"});
        let volcano = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"});
        let selected = |word: &str| {
            let wanted = filter(word).unwrap();
            (wanted.selects(&kubernetes), wanted.selects(&volcano))
        };
        assert_eq!(selected("Job"), (true, true));
        assert_eq!(selected("Job.batch"), (true, false));
        assert_eq!(selected("batch.volcano.sh/v1alpha1/Job"), (false, true));
    }
}
