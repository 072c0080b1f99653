"""Drives a server with Hera, the way its users do. Ends with a sentence when everything was as it should be."""

import sys
import time

from hera.exceptions import AlreadyExists, BadRequest, NotFound, Unauthorized
from hera.workflows import (
    DAG,
    ClusterWorkflowTemplate,
    Container,
    CronWorkflow,
    Parameter,
    Step,
    Steps,
    Workflow,
    WorkflowTemplate,
    models as m,
    script,
)
from hera.workflows.service import WorkflowsService

host = sys.argv[1]
service = WorkflowsService(host=host, token="admin", namespace="default")
here = {"workflows_service": service, "namespace": "default"}


def shell(command):
    return Container(name="main", image="busybox", command=["sh", "-c"], args=[command])


def fails(kind, act):
    try:
        act()
    except kind as error:
        return str(error)
    raise AssertionError(f"this should have been refused as {kind.__name__}")


def over(name):
    for _ in range(300):
        found = service.get_workflow(name)
        if found.status.finished_at:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{name} never ended")


def updated(schedule):
    """Hera reads the version and writes with it. The server may write the schedule's status in between; whoever is told
    of that conflict reads again."""
    for _ in range(50):
        try:
            return schedule.update()
        except AlreadyExists as conflict:
            assert "has been modified" in str(conflict), conflict
    raise AssertionError("somebody else writes the schedule all the time")


# What the server is.
version = service.get_version()
assert version.version.startswith("v") and version.platform
assert service.get_info().links == []
assert service.get_user_info().subject == "admin"

# Create, wait, read.
with Workflow(generate_name="hello-", entrypoint="main", **here) as workflow:
    shell("echo hello")
assert workflow.lint().spec.entrypoint == "main"
made = workflow.create(wait=True, poll_interval=1)
assert made.status.phase == "Succeeded", made.status
name = made.metadata.name
assert made.metadata.labels["workflows.argoproj.io/creator"] == "admin"
entry = service.workflow_logs(name)
assert service.get_workflow(name).metadata.uid == made.metadata.uid
assert [item.metadata.name for item in service.list_workflows().items] == [name]
assert service.list_workflows(namespace="elsewhere").items is None


# A script with parameters in a DAG of several tasks, as people write it with Hera.
@script(image="python:3.10", command=["python3"])
def add(a: int, b: int):
    print(int(a) + int(b))


with Workflow(generate_name="sums-", entrypoint="d", **here) as workflow:
    with DAG(name="d"):
        one = add(name="one", arguments={"a": 1, "b": 2})
        two = add(name="two", arguments={"a": one.result, "b": 4})
        one >> two
made = workflow.create(wait=True, poll_interval=1)
assert made.status.phase == "Succeeded", made.status
results = {node.display_name: node.outputs.result for node in made.status.nodes.values() if node.outputs}
assert results["one"] == "3", results
pods = {node.display_name: node.id for node in made.status.nodes.values()}
said = service.pod_logs(made.metadata.name, pods["two"])
assert said is not None

with Workflow(generate_name="steps-", entrypoint="s", arguments=Parameter(name="who", value="you"), **here) as workflow:
    say = Container(
        name="say",
        image="busybox",
        command=["echo"],
        args=["{{inputs.parameters.text}}"],
        inputs=[Parameter(name="text")],
    )
    with Steps(name="s"):
        Step(name="a", template=say, arguments={"text": "{{workflow.parameters.who}}"})
        Step(name="b", template=say, arguments={"text": "b"})
made = workflow.create(wait=True, poll_interval=1)
assert made.status.phase == "Succeeded", made.status

# A failure is told, and done again.
with Workflow(generate_name="bad-", entrypoint="main", **here) as workflow:
    shell("exit 3")
bad = workflow.create(wait=True, poll_interval=1)
assert bad.status.phase == "Failed" and "exit code 3" in str(bad.status), bad.status
again = service.retry_workflow(bad.metadata.name, m.WorkflowRetryRequest())
assert again.metadata.name == bad.metadata.name and again.status.phase == "Running"
assert over(bad.metadata.name).status.phase == "Failed"
beside = service.resubmit_workflow(bad.metadata.name, m.WorkflowResubmitRequest(memoized=False))
assert beside.metadata.name != bad.metadata.name
over(beside.metadata.name)

# Steering.
def sleeping():
    with Workflow(generate_name="long-", entrypoint="main", **here) as workflow:
        shell("sleep 100")
    return workflow.create().metadata.name


long = sleeping()
assert service.suspend_workflow(long, m.WorkflowSuspendRequest()).spec.suspend
assert not service.resume_workflow(long, m.WorkflowResumeRequest()).spec.suspend
service.stop_workflow(long, m.WorkflowStopRequest())
assert over(long).status.phase == "Failed"
assert "completed workflow" in fails(BadRequest, lambda: service.stop_workflow(long, m.WorkflowStopRequest()))
long = sleeping()
service.terminate_workflow(long, m.WorkflowTerminateRequest())
assert over(long).status.phase == "Failed"
service.delete_workflow(long)
assert long in fails(NotFound, lambda: service.get_workflow(long))

# Templates of both kinds.
for kind, submitted in [(WorkflowTemplate, "WorkflowTemplate"), (ClusterWorkflowTemplate, "ClusterWorkflowTemplate")]:
    place = here if kind is WorkflowTemplate else {"workflows_service": service}
    with kind(name="tmpl", entrypoint="main", arguments=Parameter(name="x", value="1"), **place) as template:
        shell("echo {{workflow.parameters.x}}")
    template.lint()
    template.create()
    fails(AlreadyExists, template.create)
    assert template.get().metadata.name == "tmpl"
    template.update()
    request = m.WorkflowSubmitRequest(
        resource_kind=submitted,
        resource_name="tmpl",
        submit_options=m.SubmitOpts(parameters=["x=7"], labels="team=red"),
    )
    made = service.submit_workflow(request)
    assert made.metadata.labels["team"] == "red"
    assert over(made.metadata.name).status.phase == "Succeeded"
assert [item.metadata.name for item in service.list_workflow_templates().items] == ["tmpl"]
assert [item.metadata.name for item in service.list_cluster_workflow_templates().items] == ["tmpl"]
service.delete_workflow_template("tmpl")
service.delete_cluster_workflow_template("tmpl")
fails(NotFound, lambda: service.get_workflow_template("tmpl"))

# Schedules.
with CronWorkflow(name="yearly", schedules=["0 0 1 1 *"], entrypoint="main", **here) as cron:
    shell("true")
cron.lint()
cron.create()
assert service.suspend_cron_workflow("yearly", m.CronWorkflowSuspendRequest()).spec.suspend
assert not service.resume_cron_workflow("yearly", m.CronWorkflowResumeRequest()).spec.suspend
assert [item.metadata.name for item in service.list_cron_workflows().items] == ["yearly"]
updated(cron)
service.delete_cron_workflow("yearly")
fails(NotFound, lambda: service.get_cron_workflow("yearly"))

# The archive.
archived = service.list_archived_workflows(namespace="default").items
assert name in [item.metadata.name for item in archived]
assert service.get_archived_workflow(archived[0].metadata.uid).metadata.name == archived[0].metadata.name
assert "red" in service.list_archived_workflow_label_values(label_selector="team").items
service.delete_archived_workflow(archived[0].metadata.uid)
fails(NotFound, lambda: service.get_archived_workflow(archived[0].metadata.uid))

# Everything that is wrong is told.
with Workflow(generate_name="wrong-", entrypoint="nowhere", **here) as workflow:
    shell("true")
assert "nowhere" in fails(BadRequest, workflow.lint)
assert "nowhere" in fails(BadRequest, workflow.create)
stranger = WorkflowsService(host=host, token="wrong", namespace="default")
fails(Unauthorized, stranger.list_workflows)

print("everything went well")
