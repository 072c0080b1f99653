//! Handles tasks that send a request instead of running a process: builds the request from the template, and ends the
//! node with the answer. What is specific to one kind of request is in that kind's file.

use octoflow_model::{
    NodeIx,
    argo::{NodeList, OutputValues, Phase, Template, template::Parameter},
    request::{Answer, Request},
    task::WantedOutputs,
};

use super::{data, http, instance::Instance, node::Leaf, resource, scope::Scope, turn::Turn, view::View};
use crate::expr::lang::Env;

/// Whether the template's work is a request, which takes no capacity of the machine.
pub(crate) fn is_request(template: &Template) -> bool {
    template.http.is_some() || template.resource.is_some() || template.data.is_some()
}

/// End of a node: its phase, its message and its outputs.
pub(super) type NodeEnd = (Phase, String, OutputValues);

impl Turn<'_> {
    /// Ends a node whose request was answered, or failed.
    pub(super) fn answered(&mut self, at: NodeIx, leaf: Leaf, answer: &Answer) {
        if leaf == Leaf::Stopping {
            let message = self.run.state.node(at).message.as_deref().unwrap_or_default().to_owned();
            return self.finish(at, Phase::Failed, message);
        }
        let (phase, message, outputs) = match self.instance(at) {
            Ok(instance) => self.view().judged(at, &instance, answer),
            Err(why) => (Phase::Error, why, OutputValues::default()),
        };
        if phase == Phase::Succeeded {
            self.export(at, &outputs);
        }
        self.finish_with(at, phase, message, outputs, NodeList::default());
    }
}

impl View<'_> {
    /// Builds the request of a node; `None` if it runs a process.
    pub(super) fn request(&self, at: NodeIx, instance: &Instance) -> Result<Option<Request>, String> {
        let template = &instance.template;
        Ok(if let Some(wanted) = &template.http {
            Some(Request::Http(self.http_request(wanted)?))
        } else if let Some(wanted) = &template.resource {
            Some(Request::Object(self.object_request(at, template, wanted)?))
        } else if let Some(wanted) = &template.data {
            Some(Request::Listing(self.listing_request(template, wanted)?))
        } else {
            None
        })
    }

    /// Lists what is taken from the answer. Runtimes that simulate requests return it as a process would.
    pub(super) fn wanted_of_request(&self, at: NodeIx, template: &Template) -> WantedOutputs {
        let source = |parameter: &Parameter| {
            let from = parameter.value_from.as_ref()?;
            let source = from.json_path.as_ref().or(from.jq_filter.as_ref())?;
            Some((parameter.name.clone(), source.clone()))
        };
        WantedOutputs {
            result: template.resource.is_none() && (template.data.is_some() || self.body_is_wanted(at, template)),
            parameters: template.outputs.parameters.iter().filter_map(source).collect(),
            ..WantedOutputs::default()
        }
    }

    /// Whether something refers to the body, or may because the node is memoized.
    fn body_is_wanted(&self, at: NodeIx, template: &Template) -> bool {
        self.result_is_wanted(at, template) || template.memoize.is_some()
    }

    fn judged(&self, at: NodeIx, instance: &Instance, answer: &Answer) -> NodeEnd {
        let template = &instance.template;
        let none = OutputValues::default;
        let scope = Scope::new(self.run, self.now).about(&self.run.state.node(at).name);
        match (answer, &template.http, &template.resource, &template.data) {
            (Answer::Http(response), Some(asked), _, _) => {
                let (phase, message) = http::judge(asked, response, scope.eval_context(), scope.meter);
                let result = self.body_is_wanted(at, template).then(|| response.body.clone());
                (phase, message, OutputValues { result, ..none() })
            }
            (Answer::Object(object), _, Some(_), _) => resource::outputs(template, object, scope.meter),
            (Answer::Listing(keys), _, _, Some(asked)) => {
                data::judge(asked, keys, &|step| scope.nth(step).eval_context(), scope.meter)
            }
            (Answer::Failed(why), ..) => (Phase::Failed, why.clone(), none()),
            (Answer::Refused(why), ..) => (Phase::Error, why.clone(), none()),
            (Answer::Stopped, ..) => {
                (Phase::Error, "the request was stopped before it was answered".to_owned(), none())
            }
            (Answer::Http(_) | Answer::Object(_) | Answer::Listing(_) | Answer::Probed, ..) => {
                (Phase::Error, "the answer does not match the request".to_owned(), none())
            }
        }
    }
}
