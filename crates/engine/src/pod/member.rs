//! Containers of a pod as its task holds them: environment, files and mounts, and where their last words are.

use octoflow_model::{
    pod::{Member, Part},
    podspec::{PodContainer, Volume},
    task::{EnvValue, Labels, TerminationMessage},
};

use super::{PodContext, mount_volume};

/// Default path of a container's termination message.
const MESSAGE_PATH: &str = "/dev/termination-log";

/// Builds a container of a pod; its environment starts with the `first` variables.
pub(crate) fn member(
    context: &PodContext<'_>,
    part: Part,
    container: &PodContainer,
    volumes: &[Volume],
    first: Vec<(String, EnvValue)>,
) -> Result<Member, String> {
    let (mut files, mut mounts) = (Vec::new(), Vec::new());
    for mount in &container.container.volume_mounts {
        let volume = volumes.iter().find(|volume| volume.name == mount.name);
        let volume = volume.ok_or_else(|| format!("volumeMount '{}' names no volume", mount.name))?;
        mount_volume(context, volume, mount, &mut files, &mut mounts)?;
    }
    Ok(Member {
        part,
        container: context.container(&container.container, first)?,
        files,
        mounts,
        after: Vec::new(),
        probe: None,
    })
}

/// Returns where a container's termination message is found: in a file, and unless the manifest asks otherwise in the
/// end of its log if it failed, so that users see at once what went wrong.
pub(crate) fn termination_message(container: &PodContainer) -> TerminationMessage {
    let path = container.termination_message_path.clone().filter(|path| !path.is_empty());
    TerminationMessage {
        path: Some(path.unwrap_or_else(|| MESSAGE_PATH.to_owned())),
        tail: container.termination_message_policy.as_deref() != Some("File"),
    }
}

/// Looks up a field such as `metadata.labels['key']`.
pub(crate) fn keyed_field(path: &str, of: &str, texts: &Labels) -> Option<String> {
    let key = path.strip_prefix(of)?.strip_prefix("['")?.strip_suffix("']")?;
    Some(texts.get(key).cloned().unwrap_or_default())
}
