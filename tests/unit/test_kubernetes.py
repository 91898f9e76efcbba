"""What docs/how-to/clusters.md asks Kubernetes for: `make test-kubernetes`, which installs dask-kubernetes."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from sweeplib.engine.execution.clusters import CLUSTERS

pytestmark = pytest.mark.long
operator = pytest.importorskip("dask_kubernetes.operator", reason="`make test-kubernetes` installs it")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "clusters.md"
CHAPTER = PAGE.read_text().partition("## Kubernetes")[2].partition("\n## ")[0]


def block(language: str) -> str:
    """Return the block of code of the chapter in a language."""
    found = re.search(rf"```{language}\n(.*?)```", CHAPTER, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the arguments with which the page's program creates a cluster."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(operator, "KubeCluster", lambda **arguments: given.update(arguments))
    exec(compile(block("python"), str(PAGE), "exec"), {})
    return given


def test_each_pod_has_the_volume_of_the_results(asked: dict[str, Any]) -> None:
    command = re.search(r"sweeplib run .* --results (\S+)`", CHAPTER)
    assert command is not None
    for part in ("worker", "scheduler"):
        pod = asked["custom_cluster_spec"]["spec"][part]["spec"]
        [volume], [container] = pod["volumes"], pod["containers"]
        assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": command[1]}]
        assert "persistentVolumeClaim" in volume


def test_workers_have_a_thread_each_and_the_cluster_outlives_the_program(asked: dict[str, Any]) -> None:
    worker = asked["custom_cluster_spec"]["spec"]["worker"]
    [container] = worker["spec"]["containers"]
    assert worker["replicas"] > 1
    assert container["args"][:4] == ["dask", "worker", "--nthreads", "1"]
    assert container["resources"]["requests"]["cpu"] == "1"
    assert asked["shutdown_on_close"] is False


def test_the_config_names_the_service_of_the_scheduler(asked: dict[str, Any]) -> None:
    """The operator calls it NAME-scheduler."""
    settings = yaml.safe_load(block("yaml"))["cluster"]
    address = urlsplit(CLUSTERS[settings.pop("kind")](**settings).address)
    spec = asked["custom_cluster_spec"]
    assert address.hostname is not None
    assert address.hostname.split(".")[0] == f"{spec['metadata']['name']}-scheduler"
    assert address.port in [port["port"] for port in spec["spec"]["scheduler"]["service"]["ports"]]
