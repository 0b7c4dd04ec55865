"""What is given to run ctxproxy elsewhere fits this version: the container's image and the manifests for Kubernetes (003-45, 003-47)."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from ctxproxy import __version__, wiring
from ctxproxy.cli.main import VERBS, _parser, _verb
from ctxproxy.config.load import read
from ctxproxy.config.schema import Settings
from ctxproxy.proxy.app import make_app
from ctxproxy.proxy.state import State

PROJECT = Path(__file__).resolve().parent.parent
DOCKERFILE = (PROJECT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(wiring.KEEP_BYTES), "MALLOC_TRIM_THRESHOLD_": str(wiring.KEEP_BYTES)}


@pytest.fixture
def manifests() -> dict[str, Any]:
    """Each by its kind."""
    with (PROJECT / "deploy" / "kubernetes.yaml").open(encoding="utf-8") as file:
        return {one["kind"]: one for one in yaml.safe_load_all(file)}


@pytest.fixture
def pod(manifests: dict[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", manifests["StatefulSet"]["spec"]["template"]["spec"])


@pytest.fixture
def container(pod: dict[str, Any]) -> dict[str, Any]:
    [only] = pod["containers"]
    return cast("dict[str, Any]", only)


def environment(container: dict[str, Any]) -> dict[str, str]:
    """Variables and values; of what a secret holds, an example."""
    return {one["name"]: one.get("value", "from-a-secret") for one in container["env"]}


def mounts(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["mountPath"] for one in container["volumeMounts"]}


@pytest.fixture
def settings(manifests: dict[str, Any], container: dict[str, Any], tmp_path: Path) -> Settings:
    """What the program makes of the image's and the container's environment and the mounted file."""
    for name, text in manifests["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return read(tmp_path / "config.yaml", {**variables_of_the_image(), **environment(container)}, {}).settings


def variables_of_the_image() -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(re.findall(r"^ENV (.*)$", DOCKERFILE, re.MULTILINE))))


def test_003_47_the_data_lies_on_a_persistent_volume(manifests: dict[str, Any], container: dict[str, Any], settings: Settings) -> None:
    [claim] = manifests["StatefulSet"]["spec"]["volumeClaimTemplates"]
    assert settings.data_dir == mounts(container)[claim["metadata"]["name"]]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert claim["spec"]["resources"]["requests"]["storage"]
    assert wiring.store_url(settings) == "sqlite:////data/ctxproxy.db"
    assert manifests["StatefulSet"]["spec"]["replicas"] == 1


def test_003_45_the_container_has_resources_with_a_fifth_of_memory_to_spare(container: dict[str, Any]) -> None:
    requested, limited = (int(container["resources"][kind]["memory"].removesuffix("Mi")) for kind in ("requests", "limits"))
    assert limited == requested * 1.2
    assert container["resources"]["requests"]["cpu"]


def test_the_program_takes_what_the_container_gives_it(pod: dict[str, Any], container: dict[str, Any], settings: Settings) -> None:
    arguments = _parser("serve", _verb("serve")).parse_args(["serve", *container["args"]])
    assert str(arguments.config.parent) == mounts(container)["config"]
    assert {volume["name"] for volume in pod["volumes"]} | {"data"} == set(mounts(container))
    assert settings.admin.token == "from-a-secret"
    assert settings.notes == ()
    assert pod["enableServiceLinks"] is False  # CTXPROXY_PORT and the like would name no setting
    assert container["image"] == f"ctxproxy:{__version__}"


def test_the_ports_and_the_probes_lead_to_the_program(manifests: dict[str, Any], container: dict[str, Any], settings: Settings) -> None:
    [port] = container["ports"]
    [of_service] = manifests["Service"]["spec"]["ports"]
    app = make_app(cast("State", SimpleNamespace(settings=Settings)))
    paths = {route.resource.canonical for route in app.router.routes() if route.resource}
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")]
    assert port["containerPort"] == settings.listen.port
    assert {one["port"] for one in probes} | {of_service["targetPort"]} == {port["name"]}
    assert {one["path"] for one in probes} <= paths
    assert settings.listen.host == "0.0.0.0"
    annotations = manifests["StatefulSet"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/path"] in paths
    assert annotations["prometheus.io/port"] == str(settings.listen.port)


def test_what_selects_the_pod_is_what_it_is_labelled_with(manifests: dict[str, Any]) -> None:
    spec = manifests["StatefulSet"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert manifests["Service"]["spec"]["selector"] == spec["selector"]["matchLabels"] == labels
    assert spec["serviceName"] == manifests["Service"]["metadata"]["name"]
    assert {volume["configMap"]["name"] for volume in spec["template"]["spec"]["volumes"] if "configMap" in volume} == {"ctxproxy"}


def test_the_image_runs_the_program_as_nobody_special_with_mallocs_thresholds_raised(pod: dict[str, Any], container: dict[str, Any]) -> None:
    variables = variables_of_the_image()
    assert MALLOC.items() <= variables.items()
    assert MALLOC.items() <= environment(container).items()
    assert (PROJECT / "scripts" / "serve").read_text(encoding="utf-8").count(MALLOC["MALLOC_TRIM_THRESHOLD_"]) == 2
    found = read(None, {name: value for name, value in variables.items() if name.startswith("CTXPROXY_")}, {}).settings
    [volume] = re.findall(r"^VOLUME (\S+)$", DOCKERFILE, re.MULTILINE)
    assert found.data_dir == volume
    assert re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE) == [str(found.listen.port)]
    [user] = re.findall(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)
    assert pod["securityContext"]["runAsUser"] == int(user)
    assert f"--uid {user}" in DOCKERFILE
    scripts = re.findall(r"/app/(scripts/\w+)", DOCKERFILE)
    assert sorted(scripts) == ["scripts/bootstrap", "scripts/serve"]
    assert [name for name in scripts if not (PROJECT / name).exists()] == []
    assert "serve" in VERBS


def test_what_the_image_needs_is_not_left_out_of_it() -> None:
    left_out = (PROJECT / ".dockerignore").read_text(encoding="utf-8").split()
    needed = {"ctxproxy", "scripts", "pyproject.toml", "requirements.lock", "requirements-dev.lock", "README.md"}
    assert needed & set(left_out) == set()
    assert {".venv", ".git", "data"} <= set(left_out)
