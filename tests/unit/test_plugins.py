"""Plugins: found, imported with the files beside them, refused in one line, and part of digests where used."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.engine.code import plugins, sources
from sweeplib.engine.code.plugins import STAGES, import_plugins, load_plugins, plugins_digest
from sweeplib.engine.code.sources import modules_digest, user_files
from sweeplib.engine.code.user_code import located
from sweeplib.engine.execution.calibration import Calibration, Pilot
from sweeplib.errors import InputError
from sweeplib.networks.maths.activations import ACTIVATIONS
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import Case, Recording
from sweeplib.pictures.figures import FIGURES
from tests.plugged import ACTIVATION, activation, nothing_left, written

ANALYSIS = """
from sweeplib.analysis import ANALYSES, Analysis

ANALYSES.register("{name}", Analysis("{name}", lambda ds: ds, "The dataset"))
"""
FIGURE = """
from sweeplib.pictures.figures import FIGURES, Figure

FIGURES.register("{name}", Figure("{name}", lambda ds, analyses: None, "A figure."))
"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    with nothing_left():
        yield


def refusal(plugin: str) -> str:
    with pytest.raises(InputError) as caught:
        load_plugins([plugin])
    return str(caught.value)


def test_a_plugin_imports_the_files_beside_it(tmp_path: Path) -> None:
    written(tmp_path / "beside_it.py", "SCALE = 3.0\n")
    written(tmp_path / "a_package/inner.py", "SCALE = 4.0\n")
    written(tmp_path / "a_package/__init__.py", "from .inner import SCALE\n")
    imports = "import beside_it, a_package\n\ndef later():\n    from imported_later import SCALE\n    return SCALE\n"
    written(tmp_path / "imported_later.py", "SCALE = 5.0\n")
    plugin = activation(tmp_path / "tripled.py", "tripled", imports=imports, scale="beside_it.SCALE * a_package.SCALE")
    load_plugins([plugin, plugin])
    assert ACTIVATIONS["tripled"].value(2.0) == 24.0
    assert ACTIVATIONS["tripled"].value.__globals__["later"]() == 5.0
    expected = ["a_package/__init__.py", "a_package/inner.py", "beside_it.py", "imported_later.py", "tripled.py"]
    assert user_files(["tripled"]) == [tmp_path / name for name in expected]


def test_two_plugins_with_one_file_name_are_both_imported(tmp_path: Path) -> None:
    paths = [activation(tmp_path / part / "same_name.py", f"from_{part}") for part in ("one", "two")]
    load_plugins(paths)
    assert {"from_one", "from_two"} <= set(ACTIVATIONS)


def test_a_plugin_may_import_another(tmp_path: Path) -> None:
    first = activation(tmp_path / "imported_too.py", "imported_too")
    second = activation(tmp_path / "importing.py", "importing", imports="import imported_too")
    load_plugins([second, first])
    assert {"importing", "imported_too"} <= set(ACTIVATIONS)


def test_two_files_of_one_name_beside_two_plugins_are_refused(tmp_path: Path) -> None:
    """Python has one module per name: the second plugin would get the file of the first."""
    found = []
    for part in ("one", "two"):
        written(tmp_path / part / "constants_of_both.py", "SCALE = 1.0\n")
        imports = "import constants_of_both"
        found.append(activation(tmp_path / part / f"plugin_{part}.py", f"plugin_{part}", imports=imports))
    load_plugins(found[:1])
    said = refusal(found[1])
    assert said.startswith("plugins: plugin_two.py imports 'constants_of_both', which is ")
    assert all(str(tmp_path / part / "constants_of_both.py") in said for part in ("one", "two"))
    assert "plugin_two" not in ACTIVATIONS


def test_a_file_with_the_name_of_a_module_of_python_is_refused_where_it_is_imported(tmp_path: Path) -> None:
    written(tmp_path / "statistics.py", "")
    load_plugins([activation(tmp_path / "unconcerned.py", "unconcerned")])
    said = refusal(activation(tmp_path / "concerned.py", "concerned", imports="from statistics import mean"))
    assert "concerned.py imports 'statistics', which is" in said
    assert str(tmp_path / "statistics.py") in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module' (broken.py, line 1)"),
        ("\n1 / 0\n", "ZeroDivisionError: division by zero (broken.py, line 2)"),
        ("def (:\n", "SyntaxError: invalid syntax (broken.py, line 1)"),
        (FIGURE.format(name="risk_curves"), "'risk_curves' is registered twice (broken.py, line 4)"),
        (
            "from sweeplib.pictures.figures import FIGURES\nFIGURES.register('none', None)\n",
            "figure 'none': nothing to register, got None (broken.py, line 2)",
        ),
        (
            "from sweeplib.plugins import ACTIVATIONS\ndef own(): pass\nACTIVATIONS.add(own())\n",
            "activation 'NoneType': nothing to register, got None (broken.py, line 3)",
        ),
        (
            "from sweeplib.plugins import TARGETS\nTARGETS.register('own', 3)\n",
            "target 'own': 3 is no Target (broken.py, line 2)",
        ),
        (
            "from sweeplib.plugins import DYNAMICS\nDYNAMICS.register('own', print)\n",
            "dynamics 'own': <built-in function print> is no class (broken.py, line 2)",
        ),
        (
            "from sweeplib.plugins import FORMS\nFORMS.register('own', 'x**2')\n",
            "form of activations 'own': 'x**2' is no function (broken.py, line 2)",
        ),
        (
            "from sweeplib.plugins import ANALYSES, Analysis\nANALYSES.register(3, Analysis('3', print, 'Three'))\n",
            "analysis 3: the name is no text (broken.py, line 2)",
        ),
        (
            "from sweeplib.plugins import DYNAMICS, ONE_PASS, OverlapDynamics\nclass Own(OverlapDynamics):\n"
            "    name, label, reads, replicas_at_once = 'own', 'Own', ONE_PASS, 8\n    exit_steps = end_steps = 0\n"
            "    def advance(self, to, deadline=0): pass\nDYNAMICS.register('own', Own)\n",
            "dynamics 'own': the class Own lacks `work` (broken.py, line 6)",
        ),
        (
            "from sweeplib.plugins import CLUSTERS, ClusterSettings\nclass Own(ClusterSettings):\n"
            "    kind: str = 'own'\nCLUSTERS.register('own', Own)\n",
            "cluster 'own': the class Own lacks `client`, `expected_workers` (broken.py, line 4)",
        ),
        (
            "from sweeplib.plugins import PROPOSERS\nclass Own:\n    def takes(self, question): pass\n"
            "    def check(self, outline, options): pass\nPROPOSERS.register('own', Own)\n",
            "proposer 'own': the class Own lacks `example`, `tell` (broken.py, line 5)",
        ),
        (
            "import builtins\nbuiltins.open = None\n",
            "it replaces Python's 'open', which all code needs (broken.py, line 2)",
        ),
        (
            "import builtins\nfrom sweeplib.plugins import FIGURES\nsetattr(builtins, 'print', 3)\n1 / 0\n",
            "it replaces Python's 'print', which all code needs (broken.py, line 3)",
        ),
        ("import builtins\ndel builtins.len\n", "it replaces Python's 'len', which all code needs (broken.py, line 2)"),
    ],
)
def test_a_plugin_that_fails_is_refused_in_one_line_that_says_where(tmp_path: Path, text: str, said: str) -> None:
    line = refusal(written(tmp_path / "broken.py", text))
    assert "\n" not in line
    assert line.startswith("plugins: cannot be imported: ")
    assert said in line


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1"])
def test_a_plugin_in_any_encoding_that_python_reads(tmp_path: Path, encoding: str) -> None:
    text = "" if encoding == "utf-8-sig" else "# coding: latin-1\n"
    path = tmp_path / "encoded.py"
    path.write_text(f"{text}NAME = 'Poincaré'\n", encoding=encoding)
    with nothing_left():
        load_plugins([str(path)])
        assert plugins_digest([str(path)], "simulate")


def test_a_missing_file_is_refused_with_the_nearest_beside_it(tmp_path: Path) -> None:
    written(tmp_path / "my_plugin.py", "")
    said = refusal(str(tmp_path / "my_plugins.py"))
    assert f"no such file: {tmp_path / 'my_plugins.py'}" in said
    assert "did you mean 'my_plugin.py'?" in said


def test_a_file_named_without_its_ending_is_refused_with_what_is_missing() -> None:
    assert refusal("my_plugin").endswith(
        "No module named 'my_plugin'; got 'my_plugin'; expected the path of a `.py` file, a module that Python finds, "
        "or an installed plugin"
    )


def test_paths_are_relative_to_the_folder_given(tmp_path: Path) -> None:
    absolute = str(tmp_path / "b.py")
    expected = (str(tmp_path / "a.py"), absolute, "a.module")
    assert located(["part/../a.py", absolute, "a.module"], tmp_path) == expected


@pytest.mark.parametrize("edited", ["beside_edited.py", "edited.py"])
def test_an_edit_after_the_import_is_refused_by_the_driver_and_ignored_by_workers(tmp_path: Path, edited: str) -> None:
    written(tmp_path / "beside_edited.py", "SCALE = 3.0\n")
    plugin = activation(tmp_path / "edited.py", "edited", imports="import beside_edited", scale="beside_edited.SCALE")
    load_plugins([plugin])
    file = tmp_path / edited
    file.write_text(file.read_text() + "\n# a comment\n")
    load_plugins([plugin])
    file.write_text(file.read_text() + "\nMORE = 1\n")
    import_plugins([plugin])
    assert f"plugins: {edited} changed since it was imported" in refusal(plugin)


@pytest.mark.rest
def test_the_process_that_measures_finds_what_the_driver_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module found only on the driver's path is found by the processes that it starts."""
    activation(tmp_path / "found_by_path.py", "found_by_path")
    monkeypatch.syspath_prepend(tmp_path)
    load_plugins(["found_by_path"])
    problem = Problem(gamma=0.1, p=1, k=1, d=40, Delta=0, activation="found_by_path")
    pilot = Pilot("found", (Case(problem, "sgd", 0, Recording((0.1,))),))
    with Calibration(["found_by_path"]) as calibration:
        assert calibration.costs([pilot])["found"].measured


PACKAGE = {
    "own_package/__init__.py": "import json\n",
    "own_package/base.py": "THING = 1\n",
    "own_package/part.py": "from . import more, other\n",
    "own_package/other.py": "import numpy, math\n",
    "own_package/more/__init__.py": "from .thing import THING\n",
    "own_package/more/thing.py": "from ..base import THING\n",
    "own_package/unused.py": "",
}


def test_a_package_counts_by_what_is_imported_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in PACKAGE.items():
        written(tmp_path / name, text)
    monkeypatch.syspath_prepend(tmp_path)
    assert user_files(["own_package.part"]) == [tmp_path / name for name in sorted(PACKAGE) if "unused" not in name]
    assert "own_package" not in sys.modules, "found without being imported"


def digest(folder: Path) -> str:
    """Return the digest of the code behind an activation whose file imports another one, in a new Python."""
    load_plugins([str(folder / "counted.py")])
    found = modules_digest([ACTIVATIONS["counted"].value.__module__])
    del ACTIVATIONS._things["counted"]
    plugins._plugins.clear()
    sources._content_of.cache_clear()
    sys.path.remove(str(folder))
    for name in ("counted", "beside_counted"):
        del sys.modules[name]
    return found


def test_the_digest_follows_the_files_beside_a_plugin_wherever_they_lie(tmp_path: Path) -> None:
    beside = Path(written(tmp_path / "here/beside_counted.py", "SCALE = 3.0\n"))
    activation(tmp_path / "here/counted.py", "counted", imports="import beside_counted", scale="beside_counted.SCALE")
    first = digest(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there", ignore=shutil.ignore_patterns("__pycache__"))
    assert digest(tmp_path / "there") == first
    beside.write_text("# A comment\nSCALE = 3.0\n")
    assert digest(tmp_path / "here") == first
    beside.write_text("SCALE = 30.0\n")
    assert digest(tmp_path / "here") != first


MAKER = """
from sweeplib.networks.maths.activations import ACTIVATIONS, Activation

def registered(name, scale):
    ACTIVATIONS.register(name, Activation(name, "x", lambda field: scale * field, lambda field: scale, 1))
"""


def test_what_another_file_registers_for_a_plugin_is_the_plugins(tmp_path: Path) -> None:
    """The number that makes the activation is in the plugin, the code in the other file."""
    written(tmp_path / "maker.py", MAKER)
    load_plugins([written(tmp_path / "made.py", "import maker\n\nmaker.registered('made', 2.0)\n")])
    assert ACTIVATIONS["made"].value.__module__ == "maker"
    assert ACTIVATIONS.origin("made") == "made"


def test_a_plugin_counts_from_the_first_stage_that_uses_what_it_registers(tmp_path: Path) -> None:
    none = [plugins_digest([], stage) for stage in STAGES]
    for name, text, first in (
        ("staged_activation", ACTIVATION.format(name="staged_activation", imports="", scale="1.0"), "simulate"),
        ("staged_analysis", ANALYSIS.format(name="staged_analysis"), "analyse"),
        ("staged_figure", FIGURE.format(name="staged_figure"), "figure"),
        ("staged_nothing", "X = 1\n", "simulate"),
    ):
        plugin = written(tmp_path / f"{name}.py", text)
        load_plugins([plugin])
        counted = [plugins_digest([plugin], stage) != empty for stage, empty in zip(STAGES, none, strict=True)]
        assert counted == [number >= STAGES.index(first) for number in range(len(STAGES))], name
    assert {"staged_analysis"} <= set(ANALYSES) and {"staged_figure"} <= set(FIGURES)
