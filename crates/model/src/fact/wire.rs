//! Serialization of facts: `{"Name": content}` for facts of the run and of workflows, `{"Dialect": {"Name": content}}`
//! for facts of every later dialect. The oldest journals hold workflows only, so workflow facts share the top level
//! with the run's.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, EnumAccess, IntoDeserializer, VariantAccess, Visitor, value::EnumAccessDeserializer},
};

use super::{Fact, RunFact};
use crate::{
    argo::WorkflowFact, jobflow::FlowFact, kubejob::KubeJobFact, submitted::WalkFact, taskset::SetFact,
    volcano::JobFact,
};

const TASK_SET: &str = "TaskSet";
const VOLCANO_JOB: &str = "VolcanoJob";
const KUBE_JOB: &str = "KubeJob";
const JOB_FLOW: &str = "JobFlow";
const SUBMITTED_JOB: &str = "SubmittedJob";

impl RunFact {
    /// Serialized names of the variants.
    const NAMES: [&str; 8] =
        ["Submitted", "Suspended", "Resumed", "ShuttingDown", "DeadlinePassed", "Deadlock", "Marked", "Ended"];
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Run(fact) => fact.serialize(serializer),
            Self::Workflow(fact) => fact.serialize(serializer),
            Self::TaskSet(fact) => serializer.serialize_newtype_variant("Fact", 0, TASK_SET, fact),
            Self::VolcanoJob(fact) => serializer.serialize_newtype_variant("Fact", 0, VOLCANO_JOB, fact),
            Self::KubeJob(fact) => serializer.serialize_newtype_variant("Fact", 0, KUBE_JOB, fact),
            Self::JobFlow(fact) => serializer.serialize_newtype_variant("Fact", 0, JOB_FLOW, fact),
            Self::SubmittedJob(fact) => serializer.serialize_newtype_variant("Fact", 0, SUBMITTED_JOB, fact),
        }
    }
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("Fact", &[], ByName)
    }
}

/// Reads the name, then deserializes the content as the enum that has that variant. Buffers nothing in between.
struct ByName;

impl<'de> Visitor<'de> for ByName {
    type Value = Fact;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a fact")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Fact, A::Error> {
        let (name, content) = data.variant::<String>()?;
        if name == TASK_SET {
            return Ok(Fact::TaskSet(content.newtype_variant::<SetFact>()?));
        }
        if name == VOLCANO_JOB {
            return Ok(Fact::VolcanoJob(content.newtype_variant::<JobFact>()?));
        }
        if name == KUBE_JOB {
            return Ok(Fact::KubeJob(content.newtype_variant::<KubeJobFact>()?));
        }
        if name == JOB_FLOW {
            return Ok(Fact::JobFlow(content.newtype_variant::<FlowFact>()?));
        }
        if name == SUBMITTED_JOB {
            return Ok(Fact::SubmittedJob(content.newtype_variant::<WalkFact>()?));
        }
        let run = RunFact::NAMES.contains(&name.as_str());
        let named = EnumAccessDeserializer::new(Named { name, content });
        if run {
            Ok(Fact::Run(RunFact::deserialize(named)?))
        } else {
            Ok(Fact::Workflow(WorkflowFact::deserialize(named)?))
        }
    }
}

/// An enum whose variant name has already been read.
struct Named<A> {
    name: String,
    content: A,
}

impl<'de, A: VariantAccess<'de>> EnumAccess<'de> for Named<A> {
    type Error = A::Error;
    type Variant = A;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, A), A::Error> {
        Ok((seed.deserialize(self.name.into_deserializer())?, self.content))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn facts_are_written_as_the_first_journals_were() {
        let written = [
            json!({"Suspended": {"at": 1}}),
            json!({"Settled": {"node": 3}}),
            json!({"TaskSet": {"Again": {"replica": 2, "at": 5}}}),
        ];
        for fact in written {
            assert_eq!(to_value(from_value::<Fact>(fact.clone()).unwrap()).unwrap(), fact);
        }
        assert!(matches!(from_value(json!({"Resumed": {"at": 1}})).unwrap(), Fact::Run(RunFact::Resumed { .. })));
        let unknown = from_value::<Fact>(json!({"Renamed": {}})).unwrap_err().to_string();
        assert!(unknown.contains("Renamed"), "{unknown}");
    }
}
