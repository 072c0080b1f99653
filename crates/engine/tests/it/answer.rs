//! Scripted behaviour of tasks: how each ends, after which time, and its outputs.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Exit(i32),
    Signal(i32),
    NotStarted(String),
    Catalog(String),
    Lost(String),
    /// The answer to its request.
    Answered(octoflow_model::request::Answer),
    /// Only when ordered to stop.
    Never,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) ending: Ending,
    pub(crate) after: Duration,
    pub(crate) result: Option<String>,
    /// Output parameters; `None` for a file that is not there.
    pub(crate) parameters: Vec<(String, Option<String>)>,
    pub(crate) no_artifacts: Vec<String>,
    /// How its containers end, when it has several; `None` for one that was never started. The others end well.
    pub(crate) containers: Vec<(String, Option<i32>)>,
}

impl Answer {
    pub(crate) fn ends(ending: Ending) -> Self {
        Self {
            ending,
            after: Duration::from_secs(1),
            result: None,
            parameters: Vec::new(),
            no_artifacts: Vec::new(),
            containers: Vec::new(),
        }
    }

    /// Its process runs for a while.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self.ending, Ending::NotStarted(_) | Ending::Catalog(_))
    }

    pub(crate) fn after(mut self, seconds: u64) -> Self {
        self.after = Duration::from_secs(seconds);
        self
    }
}

pub(crate) fn exit(code: i32) -> Answer {
    Answer::ends(Ending::Exit(code))
}

pub(crate) fn prints(text: &str) -> Answer {
    Answer { result: Some(text.to_owned()), ..exit(0) }
}

pub(crate) fn answers(answer: octoflow_model::request::Answer) -> Answer {
    Answer::ends(Ending::Answered(answer))
}

/// An HTTP response.
pub(crate) fn responds(status: u16, body: &str) -> Answer {
    let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
    let response = octoflow_model::request::HttpResponse { status, headers, body: body.to_owned() };
    answers(octoflow_model::request::Answer::Http(response))
}

pub(crate) fn never() -> Answer {
    Answer::ends(Ending::Never)
}

/// Answers by display name, full name or template name; the first that fits. What nothing fits ends well after a
/// second, unless its template is called `fail`.
#[derive(Clone, Default)]
pub(crate) struct Script {
    told: Vec<(String, Answer)>,
    rule: Option<Rule>,
}

type Rule = std::rc::Rc<dyn Fn(&str) -> Answer>;

impl Script {
    pub(crate) fn on(mut self, name: &str, answer: Answer) -> Self {
        self.told.push((name.to_owned(), answer));
        self
    }

    /// Every task answers by its full name.
    pub(crate) fn by(rule: impl Fn(&str) -> Answer + 'static) -> Self {
        Self { told: Vec::new(), rule: Some(std::rc::Rc::new(rule)) }
    }

    pub(crate) fn answer(&self, names: [&str; 3]) -> Answer {
        let fitting = self.told.iter().find(|(name, _)| names.contains(&name.as_str()));
        match (fitting, &self.rule) {
            (Some((_, answer)), _) => answer.clone(),
            (None, Some(rule)) => rule(names[1]),
            (None, None) => exit(i32::from(names[2] == "fail")),
        }
    }
}
