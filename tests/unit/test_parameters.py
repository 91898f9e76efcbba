"""Parameters of parts: each of the templates of a data law, a start, a target and an observable has one of its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from sweeplib.commands.starter import write_new
from sweeplib.config import load
from sweeplib.config.catalogue import catalogue, explanation
from sweeplib.config.reference import json_schema, key_table
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.execution import work
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.errors import InputError
from sweeplib.networks.problem import DEFAULTS, PARAMETERS, Problem
from sweeplib.networks.problem.base_parameters import CORE
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.labels import LABELS, label
from tests.in_process import Here, computed
from tests.plugged import nothing_left
from tests.tiers import slow_but

OWN = {"data": "signs", "start": "nearness", "target": "slope", "observable": "power"}
"""The parameter of each template."""
KINDS = {"data": "data", "start": "starts", "target": "targets", "observable": "observables"}
COMMON: dict[str, Any] = {"gamma": 0.2, "p": 2, "k": 1, "d": 40, "Delta": 0.1, "activation": "square"}


@pytest.fixture(autouse=True)
def _afterwards() -> Iterator[None]:
    with nothing_left():
        yield


def plugin(kind: str, name: str = "own") -> Path:
    """Return the sweep that is written beside a new plugin, which is loaded."""
    write_new(kind, Path(f"{name}.py"))
    load_plugins([str(Path(f"{name}.py").resolve())])
    return Path(f"{name}.yaml")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(work, "dispatched", computed)


def run(file: Path, *overrides: str) -> xr.Dataset:
    sweep = load(file, overrides)
    directory = Path("results", sweep.name)
    run_sweep(replace(sweep, cluster=Here()), directory, progress=False)
    path = finalise(sweep, directory)
    shapes = [None, (2, 1)] if "own" in sweep.recording.observables else [None]  # its values are one a pair of units
    return xr.merge([open_dataset(path, shape).load() for shape in shapes], compat="override")


@pytest.mark.parametrize("kind", slow_but(OWN, "target", "observable"))
def test_a_parameter_of_a_plugin_is_an_axis(kind: str) -> None:
    """With its label and symbol; its values give different results, one of them those of the fixed value."""
    file, name = plugin(kind), OWN[kind]
    small = ("problem.d=20", "grid.gamma=[0.2]", "seeds=2", "times=[0, 0.5]", "figures=[]")
    swept = run(file, *small)
    known, values = PARAMETERS[name], swept[name].values
    assert name in swept.dims
    assert len(values) == 2
    assert swept[name].attrs == {"long_name": known.label, "symbol": known.symbol}
    assert known.label in ("share of signs", "nearness to the teacher", "slope of the target", "power of the cosine")
    observed = "own" if kind == "observable" else "risk"
    one, other = (swept[observed].sel({name: value}) for value in values)
    assert not np.allclose(one, other)
    fixed = run(file, *small, "name=fixed", f"problem.{name}={values[1]}")
    assert name not in fixed.dims
    assert fixed.attrs[name] == values[1]
    np.testing.assert_array_equal(fixed[observed].squeeze(), other.squeeze())
    if kind == "observable":  # it changes nothing but what reads it
        np.testing.assert_array_equal(swept.risk.isel({name: 0}), swept.risk.isel({name: 1}))


@pytest.mark.parametrize("kind", OWN)
def test_a_parameter_of_a_plugin_is_listed_explained_and_in_the_reference(kind: str) -> None:
    plugin(kind)
    known = PARAMETERS[OWN[kind]]
    [entry] = catalogue(KINDS[kind], ["own"])
    assert [(option.name, option.meaning) for option in entry.options] == [(known.name, known.meaning)]
    entry, example = explanation(f"{KINDS[kind]}.own")
    assert f"{known.name}: {known.example}" in example
    assert explanation(f"problem.{known.name}")[0].meaning.startswith(known.meaning)
    assert f"| `{known.name}` | " in key_table()
    assert json_schema()["properties"]["problem"]["properties"][known.name]["description"] == known.meaning
    assert label(known.name) == {"long_name": known.label, "units": "1", "symbol": known.symbol}


@pytest.mark.parametrize("kind", OWN)
def test_a_parameter_of_a_part_that_a_run_does_not_name_is_refused(kind: str) -> None:
    plugin(kind)
    name = OWN[kind]
    with pytest.raises(InputError, match=f"{name}: .* not act on {name}; .* that acts on it: own$"):
        Case(Problem(**COMMON, **{name: PARAMETERS[name].example}), "sgd", 0, Recording((1.0,))).check()


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("taken", ["gamma", "check", "teacher", "m0", "ridge", "contrast"])
def test_a_name_that_is_taken_is_refused_in_a_line(kind: str, taken: str) -> None:
    """One of a problem, or one of parts of another kind, or another one of parts of its kind."""
    file = plugin(kind, "first").with_suffix(".py")
    before = dict(PARAMETERS)
    text = file.read_text().replace("first", "second").replace(f"{OWN[kind]}:", f"{taken}:")
    Path("second.py").write_text(text)
    with pytest.raises(InputError) as refused:
        load_plugins([str(Path("second.py").resolve())])
    others = PARAMETERS.keys() - CORE
    whose = f"one of `{PARAMETERS[taken].owner}` has another of this name" if taken in others else "a problem has it"
    assert f"cannot have a parameter '{taken}': {whose}; expected another name" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert before == PARAMETERS


def test_two_parts_of_a_kind_may_share_a_parameter() -> None:
    plugin("start", "first")
    plugin("start", "second")
    problems = [Problem(**COMMON, start=start, nearness=0.3) for start in ("first", "second")]
    assert [problem.nearness for problem in problems] == [0.3, 0.3]


def test_a_target_with_another_number_is_another_shape() -> None:
    """Its kernels have the number, as those of formulas have theirs."""
    plugin("target")
    cases = [Case(Problem(**COMMON, target="own", slope=slope), "ode", 0, Recording((1.0,))) for slope in (1.0, 2.0)]
    assert [case.problem.learned for case in cases] == ["own(slope=1.0)", "own(slope=2.0)"]
    assert cases[0].shape != cases[1].shape


@pytest.mark.parametrize(
    ("target", "expected"),
    [("own(slope=2)", "own, and slope beside `target`"), ("committee(a=1)", "committee"), ("committee(=", "committee")],
)
def test_numbers_of_a_target_stand_beside_its_name(target: str, expected: str) -> None:
    """Its name with their values in it is for kernels; any text in it would be read as Python."""
    plugin("target")
    with pytest.raises(InputError, match="no values stand in the name of a target") as refused:
        Problem(**COMMON, target=target)
    assert str(refused.value).endswith(f"expected {expected}")


def test_a_value_is_checked() -> None:
    file = plugin("start")
    with pytest.raises(
        InputError, match=r"nearness\[1\]: not a value of nearness; got 1.5; expected a number of at most 1"
    ):
        load(file, ["grid.nearness=0.5,1.5"])
    with pytest.raises(InputError, match="nearness: not a valid problem; got 'near'; expected a valid number"):
        Problem(**COMMON, start="own", nearness="near")


def test_a_needed_parameter_is_asked_for() -> None:
    with pytest.raises(InputError, match="contrast: two_gaussians needs it; got None; expected c in"):
        Problem(**(COMMON | {"k": 0}), data="two_gaussians")


def test_all_that_can_be_set_has_one_declaration() -> None:
    assert not PARAMETERS.keys() & LABELS.keys()
    assert all(known.meaning and known.label and known.example is not None for known in PARAMETERS.values())
    assert DEFAULTS.keys() == {name for name, known in PARAMETERS.items() if not (name in CORE and known.is_needed)}


def test_parts_that_are_not_used_leave_nothing_in_a_dataset() -> None:
    file = plugin("start")
    ds = run(file, "problem.start=gaussian", "grid={gamma: [0.2]}", "seeds=1", "times=[0]", "figures=[]")
    assert not {"nearness", "ridge", "m0", "contrast"} & {*ds.attrs, *ds.coords}
    assert ds.attrs["start_scale"] == 1.0
