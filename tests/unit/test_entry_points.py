"""Installed plugins: named by their entry points, loaded only if a sweep names them, and part of digests."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.config import load
from sweeplib.engine.code.plugins import load_plugins, plugins_digest, registered_names
from sweeplib.engine.code.sources import modules_digest, user_files
from sweeplib.engine.code.user_code import user_file
from sweeplib.errors import InputError
from sweeplib.networks.maths.activations import ACTIVATIONS
from tests.plugged import activation, nothing_left, written

SWEEP = """
problem: {{p: 1, k: 1, d: 50, Delta: 0, activation: glassy}}
grid: {{gamma: [0.1]}}
seeds: 1
dynamics: [ode]
times: [0, 1]
plugins: [{plugin}]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder of installed packages on Python's path, with a plugin of two modules."""
    folder = tmp_path / "site-packages"
    with nothing_left():
        monkeypatch.syspath_prepend(folder)
        install(folder, "glassy-sweeps", {"glassy": "glassy_sweeps.all"})
        written(folder / "glassy_sweeps/__init__.py", "")
        written(folder / "glassy_sweeps/scale.py", "SCALE = 2.0\n")
        imports = "from glassy_sweeps.scale import SCALE"
        activation(folder / "glassy_sweeps/all.py", "glassy", imports=imports, scale="SCALE")
        yield folder


def install(folder: Path, name: str, points: dict[str, str]) -> None:
    """Write the metadata of a distribution with these entry points."""
    info = folder / f"{name.replace('-', '_')}-1.5.dist-info"
    written(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    lines = "".join(f"{point} = {value}\n" for point, value in points.items())
    written(info / "entry_points.txt", f"[sweeplib.plugins]\n{lines}")


def refusal(plugin: str) -> str:
    with pytest.raises(InputError) as caught:
        load_plugins([plugin])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def sweep_file(tmp_path: Path, plugin: str = "glassy") -> Path:
    return Path(written(tmp_path / "project" / "sweep.yaml", SWEEP.format(plugin=plugin)))


def test_a_sweep_names_an_installed_plugin(site: Path, tmp_path: Path) -> None:
    sweep = load(sweep_file(tmp_path))
    assert sweep.plugins == ("glassy",)
    assert registered_names("glassy") == [("activation", "glassy")]
    assert ACTIVATIONS["glassy"].value(3.0) == 6.0
    assert sweep.source.endswith("plugins: [glassy]\n")


def test_one_that_is_not_named_is_not_loaded(site: Path, tmp_path: Path) -> None:
    config = sweep_file(tmp_path)
    config.write_text(config.read_text().replace("[glassy]", "[]"))
    with pytest.raises(InputError, match="unknown activation; got 'glassy'"):
        load(config)
    assert "glassy_sweeps" not in sys.modules


def test_its_code_is_in_the_digests_as_that_of_a_file(site: Path, tmp_path: Path) -> None:
    load_plugins(["glassy"])
    files = [site / "glassy_sweeps" / name for name in ("__init__.py", "all.py", "scale.py")]
    assert user_files(["glassy_sweeps.all"]) == files
    assert user_file("numpy") is None

    def digests() -> tuple[str, str]:
        return modules_digest(["glassy_sweeps.all"]), plugins_digest(["glassy"], "simulate")

    before = digests()
    with nothing_left():
        written(files[2], "# a comment\nSCALE = 2.0\n")
        load_plugins(["glassy"])
        assert digests() == before
    with nothing_left():
        written(files[2], "SCALE = 3.0\n")
    assert f"{files[2].name} changed since it was imported" in refusal("glassy")
    assert not set(digests()) & set(before)


@pytest.mark.rest
def test_its_code_is_in_the_identity_of_a_case_whether_or_not_it_was_loaded_before(site: Path, tmp_path: Path) -> None:
    """Another process, which starts with other plugins, gives a case the same identity."""
    sweep = load(sweep_file(tmp_path))
    [(_, case)] = sweep.cases("ode")
    listed = f"[case.identity() for _, case in load({str(sweep_file(tmp_path))!r}).cases('ode')]"
    code = f"from sweeplib.config import load; print({listed})"
    environment = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([case.identity()])


@pytest.mark.rest
def test_workers_load_it(site: Path, tmp_path: Path) -> None:
    """The child that measures the cost imports the plugins by the same route as a worker."""
    from sweeplib.engine.execution.calibration import Calibration, Pilot

    sweep = load(sweep_file(tmp_path))
    pilot = Pilot("glassy", tuple(case for _, case in sweep.cases("ode")))
    with Calibration(sweep.plugins) as calibration:
        assert calibration.costs([pilot])["glassy"].measured


def test_a_broken_one_is_refused_in_one_line_that_says_where(site: Path) -> None:
    written(site / "glassy_sweeps/all.py", "import glassy_sweeps.scale\n1 / 0\n")
    said = refusal("glassy")
    assert said.startswith(
        "plugins: cannot be imported: ZeroDivisionError: division by zero (all.py, line 2); got 'glassy'"
    )


@pytest.mark.parametrize(
    ("points", "plugin", "said"),
    [
        (
            {"gone": "no_such_package.part"},
            "gone",
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_package'",
        ),
        ({"thing": "glassy_sweeps.all:value"}, "thing", "the entry point 'glassy_sweeps.all:value' is no module"),
        (
            {"glassy": "other_sweeps"},
            "glassy",
            "several installed plugins: .*glassy-sweeps .*other \\(other_sweeps\\)|several .*other",
        ),
        (
            {"other": "other_sweeps"},
            "glasy",
            "the path of a `.py` file, a module that Python finds, or an installed plugin: glassy, other",
        ),
    ],
)
def test_what_cannot_be_loaded_is_refused(site: Path, points: dict[str, str], plugin: str, said: str) -> None:
    install(site, "other", points)
    assert re.search(said, refusal(plugin)), refusal(plugin)


def test_installed_plugins_are_listed_without_being_imported(site: Path) -> None:
    install(site, "broken", {"broken": "no_such_package"})
    result = CliRunner().invoke(app, ["list", "plugins"])
    assert result.output.splitlines() == [
        "broken: no_such_package of broken 1.5",
        "glassy: glassy_sweeps.all of glassy-sweeps 1.5",
    ]
    assert "glassy_sweeps" not in sys.modules
    assert "did you mean 'glassy'?" in CliRunner().invoke(app, ["list", "plugins", "glasy"]).output


def test_an_installed_plugin_is_checked_by_its_name(site: Path) -> None:
    result = CliRunner().invoke(app, ["test-plugin", "glassy"])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == "6 checks: 6 ok, 0 failed, 0 left out"
