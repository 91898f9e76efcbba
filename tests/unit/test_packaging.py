"""What a container, a conda environment and the metadata of the package say of each other."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from hatch_build import Addresses
from sweeplib import __version__
from sweeplib.engine.files.strict_yaml import document

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
ENVIRONMENT = document((ROOT / "environment.yaml").read_text()).data


def pins_of(file: str) -> list[str]:
    """Return the lines of a file of constraints."""
    return [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]


REPOSITORY = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]


def test_container_and_environment_have_a_python_and_extras_that_exist() -> None:
    [base] = re.findall(r"^FROM python:(\d+\.\d+)-slim$", DOCKERFILE, re.MULTILINE)
    [python, *_] = ENVIRONMENT["dependencies"]
    supported = {text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python ::" in text}
    assert {base, python.partition("=")[2]} <= supported
    assert all(version in SpecifierSet(PROJECT["requires-python"]) for version in supported)
    [extras] = re.findall(r"/source\[([\w,]+)\]", DOCKERFILE)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert "-c /source/constraints.txt" in DOCKERFILE
    assert {"pip": ["--constraint constraints.txt", "."]} in ENVIRONMENT["dependencies"]


def test_what_is_installed_has_one_version_and_no_address() -> None:
    pins = [Requirement(line) for line in pins_of("constraints.txt")]
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) and not pin.url for pin in pins)
    assert pins == sorted(pins, key=lambda pin: pin.name.replace("_", "-").lower())
    sets = [*PROJECT["optional-dependencies"].values(), *PYPROJECT["dependency-groups"].values()]
    named = [*PROJECT["dependencies"], *(name for some in sets for name in some if isinstance(name, str))]
    for requirement in map(Requirement, named):
        versions = [pin.specifier for pin in pins if pin.name == requirement.name]
        assert versions or requirement.name == "xyzpy", requirement
        assert all(requirement.specifier.contains(str(version)[2:]) for version in versions), requirement


def test_hooks_run_the_ruff_of_make_check() -> None:
    hooks = document((ROOT / ".pre-commit-config.yaml").read_text()).data["repos"]
    [revision] = [repository["rev"] for repository in hooks if repository["repo"].endswith("/ruff-pre-commit")]
    assert f"ruff=={revision[1:]}" in pins_of("constraints.txt")


def test_the_oldest_are_the_bounds() -> None:
    """Of what is not in constraints-oldest.txt nothing is said; of two bounds of a package the tests' is the higher."""
    pins = {pin.name: str(pin.specifier)[2:] for pin in map(Requirement, pins_of("constraints-oldest.txt"))}
    named = [*PROJECT["dependencies"], *PYPROJECT["dependency-groups"]["test"]]
    for requirement in map(Requirement, named):
        assert requirement.specifier.contains(pins[requirement.name]), requirement
    bounds = {name: Version(version) for name, version in pins.items()}
    window = {"numpy": "2.2", "scipy": "1.15", "pandas": "2.3", "matplotlib": "3.10", "dask": "2025.5.1"}
    assert all(bounds[name] < Version(version) for name, version in window.items())


@pytest.mark.parametrize("repository", ["", "https://example.org/me/sweeplib"])
def test_addresses_follow_from_that_of_the_repository(repository: str) -> None:
    metadata: dict[str, object] = {}
    Addresses(str(ROOT), {"repository": repository}).update(metadata)
    urls = dict(metadata["urls"])  # type: ignore[call-overload]
    assert set(urls) == ({"Repository", "Issues", "Changelog"} if repository else set())
    assert all(address.startswith(repository) for address in urls.values())


def test_the_citation_has_the_address_of_the_repository() -> None:
    cited = document((ROOT / "CITATION.cff").read_text()).data.get("repository-code", "")
    assert cited == REPOSITORY


def test_citation_and_codemeta_say_what_the_package_says() -> None:
    cited = document((ROOT / "CITATION.cff").read_text()).data
    described = json.loads((ROOT / "codemeta.json").read_text())
    assert cited["title"].startswith(f"{PROJECT['name']}: ") and described["name"] == PROJECT["name"]
    assert described["description"] == PROJECT["description"]
    assert cited["version"] == described["version"] == __version__
    assert str(cited["date-released"]) == described["dateModified"]
    assert f"\n## [{__version__}] - {described['dateModified']}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert cited["license"] == described["license"].rpartition("/")[2] == PROJECT["license"]
    names = [author["name"] for author in PROJECT["authors"]]
    assert [author["name"] for author in cited["authors"]] == names == [each["name"] for each in described["author"]]
    assert cited["keywords"] == described["keywords"] == PROJECT["keywords"]
    assert described["runtimePlatform"] == f"Python {PROJECT['requires-python']}"
    assert described.get("codeRepository", "") == REPOSITORY
    assert PROJECT["name"] in cited["abstract"]
