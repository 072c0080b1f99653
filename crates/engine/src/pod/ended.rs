//! How the main container of a pod ended, in Kubernetes' words.

use octoflow_model::{
    Time,
    order::{End, Exit},
    pod::Terminated,
};

/// The end of a pod's main container.
#[derive(Debug)]
pub(crate) struct ContainerEnd {
    pub(crate) started: Option<Time>,
    /// `None` if no container was seen to end.
    pub(crate) terminated: Option<Terminated>,
    /// The reason for the pod's end, if it is another than its container's.
    pub(crate) reason: String,
}

impl ContainerEnd {
    pub(crate) fn of(end: End) -> Self {
        let message = end.collected.message.unwrap_or_default();
        let started = end.started;
        let (terminated, reason) = match end.exit {
            Exit::Code(code) => {
                let reason = if code == 0 { "Completed" } else { "Error" };
                (Some(Terminated { exit_code: code, message, signal: 0, reason: reason.to_owned() }), String::new())
            }
            Exit::Signal(signal) => {
                let terminated = Terminated { exit_code: 128 + signal, message, signal, reason: "Error".to_owned() };
                (Some(terminated), String::new())
            }
            Exit::OutOfMemory => {
                let terminated = Terminated { exit_code: 137, message, signal: 0, reason: "OOMKilled".to_owned() };
                (Some(terminated), String::new())
            }
            Exit::NotStarted(why) => {
                let terminated =
                    Terminated { exit_code: 128, message: why, signal: 0, reason: "StartError".to_owned() };
                (Some(terminated), String::new())
            }
            Exit::Evicted(why) => {
                let terminated = Terminated { exit_code: 137, message: why, signal: 9, reason: "Evicted".to_owned() };
                (Some(terminated), String::new())
            }
            Exit::Environment(why) => (None, format!("CreateContainerError: {why}")),
        };
        Self { started, terminated, reason }
    }
}
