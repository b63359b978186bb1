"""Deployments, jobs and pods of a simulated cluster as shown by kubectl, with their logs and events.

`test_kubectl_transcripts` compares the output for objects with a real server. This module tests the effects of
controllers, scheduler and kubelets.
"""

from __future__ import annotations

import json
import re

from clients.kubectl import Kubectl

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: simulation}
spec:
  completions: 4
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers: [{name: solver, image: solver, command: [sleep, "1"], resources: {requests: {cpu: 500m}}}]
"""


def rows(table: str) -> list[list[str]]:
    """Return the cells of a table below its header; columns are separated by several spaces."""
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()[1:]]


def column(table: str, name: str) -> list[str]:
    """Return one column of a table."""
    heads = re.split(r"\s{2,}", table.splitlines()[0].strip())
    return [row[heads.index(name)] for row in rows(table)]


def test_a_deployment_its_replica_set_and_its_pods_become_ready(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    assert kubectl("rollout", "status", "deployment/web").endswith('deployment "web" successfully rolled out\n')

    deployments, replica_sets, pods = (kubectl("get", kind, "-o", "wide") for kind in ("deploy", "rs", "pods"))

    assert rows(deployments)[0][:4] == ["web", "3/3", "3", "3"]
    assert rows(replica_sets)[0][1:4] == ["3", "3", "3"]
    assert column(pods, "READY") == ["1/1"] * 3
    assert column(pods, "STATUS") == ["Running"] * 3
    assert len(set(column(pods, "NODE"))) == 3, "the pods are spread over nodes"
    assert kubectl("get", "all", "-o", "name").count("\n") == 5

    described = kubectl("describe", "deployment", "web")
    assert "3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in described
    assert "NewReplicaSetAvailable" in described
    assert f"Scaled up replica set {rows(replica_sets)[0][0]} from 0 to 3" in described


def test_a_deployment_is_updated_rolled_back_and_restarted(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    kubectl("rollout", "status", "deployment/web")

    assert kubectl("set", "image", "deployment/web", "nginx=nginx:2") == "deployment.apps/web image updated\n"
    kubectl("rollout", "status", "deployment/web")
    assert images(kubectl) == ["nginx:2"] * 2
    assert re.findall(r"^(\d+)", kubectl("rollout", "history", "deployment/web"), re.MULTILINE) == ["1", "2"]

    assert kubectl("rollout", "undo", "deployment/web") == "deployment.apps/web rolled back\n"
    kubectl("rollout", "status", "deployment/web")
    assert images(kubectl) == ["nginx:1"] * 2
    assert re.findall(r"^(\d+)", kubectl("rollout", "history", "deployment/web"), re.MULTILINE) == ["2", "3"]
    assert "nginx:2" in kubectl("rollout", "history", "deployment/web", "--revision=2")

    before = kubectl("get", "pods", "-o", "name")
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web")
    assert not set(before.split()) & set(kubectl("get", "pods", "-o", "name").split())


def images(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}").split()


def test_waiting_for_a_rollout_that_cannot_finish_times_out(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("set", "resources", "deployment/web", "--requests=cpu=100")

    output = kubectl.fails("rollout", "status", "deployment/web", "--timeout=300ms")

    assert "Waiting for deployment" in output
    assert "1 old replicas are pending termination" in output
    assert sorted(column(kubectl("get", "pods"), "STATUS")) == ["Pending", "Running"]


def test_scaling_creates_and_deletes_pods(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")

    assert kubectl("scale", "deployment/web", "--replicas=4") == "deployment.apps/web scaled\n"
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=4", "deployment/web", "--timeout=10s")
    kubectl("scale", "deployment/web", "--replicas=0")
    kubectl("wait", "--for=delete", "pods", "--all", "--timeout=10s")

    assert rows(kubectl("get", "deployment", "web"))[0][1] == "0/0"


def test_deleting_a_deployment_deletes_or_orphans_its_pods(kubectl: Kubectl) -> None:
    for name in ("first", "second"):
        kubectl("create", "deployment", name, "--image=nginx")
        kubectl("rollout", "status", f"deployment/{name}")

    assert kubectl("delete", "deployment", "first").startswith('deployment.apps "first" deleted')
    kubectl("delete", "deployment", "second", "--cascade=orphan")

    assert [row[0].rpartition("-")[0].rpartition("-")[0] for row in rows(kubectl("get", "pods"))] == ["second"]
    assert kubectl("get", "rs", "-o", "jsonpath={.items[0].metadata.ownerReferences}") == ""


def test_a_job_completes(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=JOB)

    assert kubectl("wait", "--for=condition=complete", "job/simulation", "--timeout=20s") == (
        "job.batch/simulation condition met\n"
    )

    assert rows(kubectl("get", "jobs"))[0][:4] == ["simulation", "Complete", "4/4", "2s"]
    pods = kubectl("get", "pods", "--sort-by=.metadata.name", "-L", "batch.kubernetes.io/job-completion-index")
    assert column(pods, "STATUS") == ["Completed"] * 4
    assert column(pods, "JOB-COMPLETION-INDEX") == ["0", "1", "2", "3"]
    described = kubectl("describe", "job", "simulation")
    assert "0 Active (0 Ready) / 4 Succeeded / 0 Failed" in described
    assert described.count("SuccessfulCreate") == 4
    assert described.rstrip().endswith("Job completed")
    assert kubectl("logs", "job/simulation", "--all-pods", "--prefix").count("ended with exit code 0 after 1 s") == 4


def test_a_watch_prints_each_step_of_a_pod(kubectl: Kubectl) -> None:
    kubectl("run", "before", "--image=busybox")
    watching = kubectl.start("get", "pods", "--watch", "--output-watch-events")
    try:
        assert watching.stdout is not None
        heads, first = (next(watching.stdout).split() for _ in range(2))
        kubectl("run", "once", "--image=busybox", "--restart=Never", "--", "sleep", "1")
        lines_of_pod = []
        for line in watching.stdout:
            if "once" in line:
                lines_of_pod.append(line.split())
            if "Completed" in line:
                break
        kubectl("delete", "pod", "once")
        assert any(line.startswith("DELETED") for line in watching.stdout)
    finally:
        watching.kill()
        watching.communicate()

    assert heads == ["EVENT", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert first[:2] == ["ADDED", "before"]
    steps = [cells[3] for cells in lines_of_pod]
    assert list(dict.fromkeys(steps)) == ["Pending", "ContainerCreating", "Running", "Completed"]
    assert [cells[0] for cells in lines_of_pod] == ["ADDED", *["MODIFIED"] * (len(steps) - 1)]


def test_a_pod_has_logs_and_events(kubectl: Kubectl) -> None:
    kubectl("run", "once", "--image=busybox:1", "--restart=Never", "--", "sleep", "1")
    kubectl("wait", "pod/once", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=20s")

    log = kubectl("logs", "once").splitlines()
    assert re.fullmatch(r"batkube: simulated container once \(busybox:1 on node-\d\) started", log[0])
    assert log[1:] == ["batkube: simulated container once ended with exit code 0 after 1 s"]
    assert kubectl("logs", "once", "--tail=1", "--timestamps").endswith("Z " + log[1] + "\n")

    events = kubectl(
        "get", "events", "--field-selector=involvedObject.name=once", "--sort-by=.metadata.creationTimestamp"
    )
    assert sorted(column(events, "REASON")) == ["Created", "Pulled", "Scheduled", "Started"]
    assert "Successfully assigned" in kubectl("events", "--for", "pod/once")
    described = kubectl("describe", "pod", "once")
    assert re.search(r"State: +Terminated\n +Reason: +Completed\n +Exit Code: +0", described)
    assert "default-scheduler  Successfully assigned" in described


def test_a_log_is_followed_until_the_container_ends(kubectl: Kubectl) -> None:
    kubectl("run", "once", "--image=busybox", "--restart=Never", "--", "sleep", "1")

    assert kubectl("logs", "--follow", "once").splitlines()[-1].endswith("ended with exit code 0 after 1 s")


def test_the_reason_of_an_unschedulable_pod_is_reported(kubectl: Kubectl) -> None:
    overrides = {"spec": {"containers": [{"name": "big", "image": "x", "resources": {"requests": {"cpu": "100"}}}]}}
    kubectl("run", "big", "--image=x", "--overrides", json.dumps(overrides))
    kubectl("wait", "pod/big", "--for=condition=PodScheduled=false", "--timeout=10s")

    assert rows(kubectl("get", "pods"))[0][1:3] == ["0/1", "Pending"]
    message = "0/4 nodes are available: 4 Insufficient cpu. no new claims to deallocate, preemption: 0/4 nodes"
    assert message in kubectl("describe", "pod", "big")
    assert kubectl.fails("wait", "pod/big", "--for=condition=Ready", "--timeout=300ms") == (
        "error: timed out waiting for the condition on pods/big\n"
    )


def test_top_shows_the_requests_of_pods(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("set", "resources", "deployment/web", "--requests=cpu=250m,memory=64Mi")
    kubectl("rollout", "status", "deployment/web")

    pods = kubectl("top", "pods", "--containers")
    assert rows(pods)[0][1:] == ["nginx", "250m", "64Mi"]
    nodes = kubectl("top", "nodes")
    assert nodes.splitlines()[0].split() == ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]
    assert column(nodes, "NAME") == [f"node-{number}" for number in range(4)]
    assert kubectl.fails("top", "pod", "absent").startswith("Error from server (NotFound)")


def test_a_service_and_an_autoscaler_can_be_created_for_a_deployment(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")

    assert kubectl("expose", "deployment/web", "--port=80") == "service/web exposed\n"
    assert kubectl("autoscale", "deployment/web", "--min=1", "--max=3", "--cpu=50%") == (
        "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    )
    service = rows(kubectl("get", "service", "web", "-o", "wide"))[0]
    assert (service[1], service[4], service[6]) == ("ClusterIP", "80/TCP", "app=web")


def test_exec_attach_and_port_forward_are_rejected(kubectl: Kubectl) -> None:
    kubectl("run", "once", "--image=busybox")
    kubectl("wait", "pod/once", "--for=condition=Ready", "--timeout=10s")

    for command in (["exec", "once", "--", "ls"], ["attach", "once"], ["port-forward", "pod/once", "8080:80"]):
        assert "a simulated cluster cannot" in kubectl.fails(*command)


def test_deleting_a_namespace_deletes_its_contents(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("rollout", "status", "deployment/web")

    assert kubectl("delete", "namespace", kubectl.namespace) == f'namespace "{kubectl.namespace}" deleted\n'

    assert kubectl("get", "all") == f"No resources found in {kubectl.namespace} namespace.\n"
    assert "NotFound" in kubectl.fails("get", "namespace", kubectl.namespace)


def test_all_namespaces_explain_and_api_resources_are_served(kubectl: Kubectl) -> None:
    kubectl("run", "once", "--image=busybox")

    assert [kubectl.namespace, "once"] in [row[:2] for row in rows(kubectl("get", "pods", "-A"))]
    explanation = kubectl("explain", "pod.spec.containers.resources")
    assert "FIELD: resources <ResourceRequirements>" in explanation
    assert "requests\t<map[string]Quantity>" in explanation
    assert "no-such-thing" not in kubectl("api-resources", "-o", "name")
    assert "pods.metrics.k8s.io" in kubectl("api-resources", "-o", "name")
