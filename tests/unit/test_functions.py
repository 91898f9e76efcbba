"""Functions as simulators: their signatures, their sweeps from files, scripts and Python, what goes wrong in them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from enum import Enum
from functools import partial
from pathlib import Path
from traceback import extract_tb
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.text import Text

import sweeplib
from sweeplib import InputError, Result, simulator
from sweeplib.commands.upkeep.cases import chosen_case
from sweeplib.commands.upkeep.recomputation import random_sample, sample_findings
from sweeplib.commands.upkeep.reproduce import reproduces
from sweeplib.commands.upkeep.stored_cases import stored_cases
from sweeplib.config import from_mapping, load
from sweeplib.config.functions import file_of
from sweeplib.engine.code.user_code import file_and_name
from sweeplib.engine.execution import work
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.finalise import dataset_in_memory
from sweeplib.engine.storage.store.outcomes import first_outcomes
from sweeplib.engine.storage.store.run_store import segment_paths
from sweeplib.functions.cases import FunctionCase, generator_of
from sweeplib.functions.function import Function, registered
from sweeplib.functions.global_generators import global_states, set_global_states
from sweeplib.functions.program import parsed_output
from sweeplib.functions.results import checked_results
from sweeplib.functions.source import source_of
from sweeplib.sweeps import sweep_of
from tests.in_process import Here, computed

WALK = '''
from typing import Annotated, Literal
import numpy as np
from pydantic import Field
from sweeplib import Result, simulator

SCALE = 2.0
UNUSED = open

def doubled(x):
    return SCALE * x

@simulator(position="m", passed="1", path=Result("m", dims={"step": "n"}, label="path of the walk"))
def walk(rng, bias: Annotated[float, Field(ge=-1, le=1, description="drift of a step"), "m"] = 0.0, n: int = 3,
         law: Literal["normal", "signs"] = "normal"):
    """A docstring, which is no code."""
    steps = rng.standard_normal(n) if law == "normal" else rng.choice([-1.0, 1.0], n)
    path = np.cumsum(steps + doubled(bias))
    return {"position": path[-1], "passed": path[-1] > 1, "path": path}
'''
TROUBLED = """
import sys
import time
from sweeplib import simulator

@simulator(y="1")
def troubled(rng, what: str = "fine"):
    match what:
        case "raises":
            raise ValueError("no such thing")
        case "exits":
            sys.exit(3)
        case "text":
            return "one"
        case "complex":
            return 1j
        case "array":
            return [1.0, 2.0]
        case "others":
            return {"z": 1.0}
        case "nan":
            return float("nan")
        case "inf":
            return float("inf")
        case "bool":
            return True
        case "large":
            return 10**20
        case "imports":
            import no_such_module
        case "lacks":
            try:
                import no_such_module
            except ImportError:
                raise RuntimeError("install it") from None
    return 1.0
"""


pytestmark = pytest.mark.usefixtures("forgotten_functions")


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """Return what writes a function's file and a config beside it."""

    def write(code: str, keys: str, name: str = "own") -> Path:
        (tmp_path / f"{name}_functions.py").write_text(code, encoding="utf-8")
        config = tmp_path / f"{name}.yaml"
        config.write_text(f"simulator: {name}_functions.py\n{keys}\n", encoding="utf-8")
        return config

    return write


def ran(config: Path, *overrides: str) -> xr.Dataset:
    sweep = sweeplib.Sweep.from_yaml(config, *overrides, results=config.parent / "results")
    return sweep.run(progress=False)


@pytest.mark.rest
def test_a_signature_is_the_schema(written: Callable[..., Path]) -> None:
    """Types, defaults, bounds, labels and units; parameters that a sweep does not name have their defaults."""
    ds = ran(written(WALK, "grid: {bias: [-0.5, 0.5], n: [2, 4]}\nseeds: 3\nfigures: []"))
    assert dict(ds.sizes) == {"dynamics": 1, "bias": 2, "n": 2, "seed": 3, "step": 4}
    assert ds.bias.attrs == {"long_name": "drift of a step", "units": "m", "symbol": ""}
    assert ds.position.attrs["units"] == "m"
    assert ds.path.attrs["long_name"] == "path of the walk"
    assert ds.attrs["law"] == "normal"
    assert (ds.status == Status.ok).all()
    assert ds.path.sel(n=2).isel(step=slice(2, None)).isnull().all(), "shorter arrays are padded"
    np.testing.assert_array_equal(ds.path.sel(n=4).isel(step=-1), ds.position.sel(n=4))


@pytest.mark.rest
def test_random_numbers_depend_on_root_seed_values_and_replica_alone(written: Callable[..., Path]) -> None:
    """Not on the other cases, nor on the worker: a direct call with the generator of the case has the same bits."""
    config = written(WALK, "grid: {bias: [-0.5, 0.5], n: [2, 4]}\nseeds: 5\nroot_seed: 3\nfigures: []")
    ds, walk = ran(config), registered("walk")
    values = (("bias", 0.5), ("n", 4), ("law", "normal"))
    case = FunctionCase("walk", walk.code, values, 4, root_seed=3)
    alone = walk(generator_of(case), **dict(values))
    stored = ds.sel(bias=0.5, n=4, seed=4, dynamics="walk")
    assert stored.path.values.tobytes() == alone["path"].tobytes()
    assert len(np.unique(ds.position)) == ds.position.size


GLOBAL = """
import random
import numpy as np
from sweeplib import simulator

@simulator(x="1", y="1")
def drawn(rng, a: float = 0.0):
    return {"x": np.random.random(), "y": random.random()}
"""


def test_numbers_of_global_generators_are_those_of_the_case(written: Callable[..., Path]) -> None:
    """Whatever was drawn before in the process, which goes on with its own; a direct call is not touched."""
    cases = [case for _, case in load(written(GLOBAL, "grid: {a: [0, 1]}\nseeds: 8")).cases("drawn")]
    first, again = (cases[0].simulator.run(cases[at:]).data for at in (0, 5))
    for name in ("x", "y"):
        assert first[name][5:].tobytes() == again[name].tobytes()
        assert first[name][5] == cases[0].simulator.run_openly(cases[5]).data[name]
    assert np.unique([first["x"], first["y"]]).size == 32
    states, drawn = global_states(), registered("drawn")
    before = drawn(None)
    set_global_states(states)
    cases[0].simulator.run(cases[:2])
    assert drawn(None) == before


def test_a_function_that_no_seed_decides_is_told_from_other_libraries(
    written: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "dispatched", computed)
    code = GLOBAL.replace("np.random.random()", "random.SystemRandom().random()")
    design = replace(load(written(code, "seeds: 4")), cluster=Here())
    run_sweep(design, tmp_path / "results", progress=False)
    _, findings, _ = sample_findings(random_sample([stored_cases(design, "drawn", tmp_path / "results")], None))
    assert len(findings) == 4
    assert {finding.why.partition(":")[0] for finding in findings} == {"computed twice here, a case has two results"}


@pytest.mark.rest
def test_forked_processes_have_no_numbers_of_global_generators_in_common(written: Callable[..., Path]) -> None:
    """They begin with one state of these."""
    code = GLOBAL.replace("    return", "    time.sleep(0.01)\n    return").replace(
        "import random", "import random, time"
    )
    ds = ran(written(code, "grid: {a: [0, 1]}\nseeds: 64\nfigures: []\ncluster: {workers: 2}"))
    assert np.unique(ds.x).size == np.unique(ds.y).size == 128


@pytest.mark.rest
def test_runs_that_are_paired_share_their_random_numbers(written: Callable[..., Path]) -> None:
    ds = ran(written(WALK, "grid: {bias: [0.0, 0.5]}\nseeds: 4\npair_by: [seed]\nfigures: []"))
    shift = ds.path.sel(bias=0.5) - ds.path.sel(bias=0.0)
    np.testing.assert_allclose(shift, np.broadcast_to(np.arange(1.0, 4.0), shift.shape), atol=1e-12)


@pytest.mark.rest
def test_a_sweep_of_a_function_grows_and_an_edit_computes_it_again(written: Callable[..., Path]) -> None:
    """More seeds and values leave what there is; comments and units are no edit, a helper's number is one.

    What a run returned can be read when its version is no longer kept.
    """
    config = written(WALK, "grid: {bias: [0.0, 0.5]}\nseeds: 2\nfigures: []")
    before = ran(config)
    original = registered("walk").code
    grown = ran(config, "seeds=4", "grid.bias=[0, 0.5, 0.9]")
    ran(config, "seeds=3")
    xr.testing.assert_equal(grown.position.sel(bias=[0.0, 0.5], seed=[0, 1]), before.position)
    codes = {}
    for name, code in {
        "same": WALK.replace("# a comment", "").replace('position="m"', 'position="km"') + "\n# a remark\nOTHER = 1\n",
        "helper": WALK.replace("SCALE = 2.0", "SCALE = 3.0"),
        "default": WALK.replace("n: int = 3", "n: int = 4"),
    }.items():
        load(written(code, "grid: {bias: [0.0, 0.5]}\nseeds: 2\nfigures: []", name))
        codes[name] = registered("walk").code
    assert codes["same"] == original
    assert len({original, codes["helper"], codes["default"]}) == 3


@pytest.mark.rest
def test_an_edit_of_a_module_that_is_imported_relatively_is_another_code(tmp_path: Path) -> None:
    (package := tmp_path / "package").mkdir()
    text = "from sweeplib import simulator\nfrom .helper import SCALE\n\n"
    (package / "model.py").write_text(f'{text}@simulator(y="m")\ndef scaled(x: float):\n    return SCALE * x\n')
    codes = []
    for helper in ("SCALE = 1", "SCALE = 1  # a remark", "SCALE = 2"):
        (package / "helper.py").write_text(helper)
        command = [sys.executable, "-B", "-c", "from package.model import scaled; print(scaled.code)"]
        codes.append(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert codes[0] == codes[1] != codes[2]


LABELS = """
import sweeplib, sys
ds = sweeplib.Sweep.from_yaml(sys.argv[1], results="results").run(progress=False)
print(ds.position.units, ds.path.long_name, ds.bias.long_name, ds.passed.attrs.get("units"))
"""


@pytest.mark.rest
def test_an_edited_label_is_in_the_dataset_although_the_cases_stay(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    """Units that are wrong without a word are worse than none."""
    edited = WALK.replace('position="m", passed="1"', 'position="km", passed="s"').replace(
        "path of the walk", "its path"
    )
    edited, said = edited.replace("drift of a step", "the drift"), []
    for code in (WALK, edited, WALK):
        config = written(code, "grid: {bias: [0.0, 0.5]}\nseeds: 2\nfigures: []")
        command = [sys.executable, "-c", LABELS, str(config)]
        said.append(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert said == [first := "m path of the walk drift of a step None\n", "km its path the drift s\n", first]
    assert len(segment_paths(tmp_path / "results" / "own", "walk")) == 1


@pytest.mark.rest
@pytest.mark.parametrize(
    ("what", "status", "says"),
    [
        ("raises", "failed", "ValueError: no such thing"),
        ("exits", "failed", "SystemExit: 3"),
        ("text", "failed", "returned y as the text"),
        ("complex", "failed", "returned y as complex128"),
        ("array", "failed", "float64 of shape (2,); expected real numbers of shape ()"),
        ("others", "failed", "its results differ in y"),
        ("nan", "ok", None),
        ("inf", "ok", None),
        ("bool", "ok", None),
        ("large", "ok", None),
        ("imports", "failed", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("lacks", "failed", "RuntimeError: install it"),
    ],
)
@pytest.mark.filterwarnings("ignore:troubled. of 4 cases 2 failed")
def test_what_a_function_does_wrong_is_a_status_with_a_reason(
    what: str, status: str, says: str | None, written: Callable[..., Path]
) -> None:
    """And harms no other case."""
    config = written(TROUBLED, f"grid: {{what: [fine, {what}]}}\nseeds: 2\nfigures: []", what)
    ds = ran(config)
    assert (ds.status.sel(what="fine") == Status.ok).all()
    assert (ds.y.sel(what="fine") == 1.0).all()
    assert (ds.status.sel(what=what) == Status[status]).all()
    outcomes = first_outcomes(config.parent / "results" / what, "troubled", 9)
    assert len(outcomes) == (2 if says else 0)
    assert all(str(says) in line["exception"] for line in outcomes)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            "grid: {bias: [0.1]}\nn: 50",
            "yaml:3: n: unknown key; got 'n'; expected it below `parameters`, `grid` or `derive`",
        ),
        (
            "grid: {bias: [0.1]}\nbais: 50",
            "expected one of analyses, .* simulator, .*; or below `parameters`, .* one of bias, n.*did you mean 'bias'",
        ),
        ("grid: {bias: [0.1]}\nsedes: 50", "did you mean 'seeds'"),
        ("grid: {bias: [0.1]}\nobservables: [risk]", "got 'observables'; expected one of analyses, answers, "),
        ("parameters: {bais: 0.1}", "parameters.bais: unknown name: no parameter of the function.*did you mean 'bias'"),
        ("parameters: {bias: 3}", "parameters.bias: not a value of bias; got 3"),
        ("grid: {bais: [0.1]}", "unknown name: no parameter of the function.*did you mean 'bias'"),
        ("grid: {bias: [0.1, 3]}", "not a value of bias; got 3"),
        ("grid: {n: [1.5]}", "a whole number"),
        ("grid: {law: [normal, cauchy]}", "not a value of law"),
        ("grid: {position: [1, 2]}", "this name has another meaning"),
        ("grid: {bias: [0.1]}\ndynamics: [sgd]", "dynamics"),
        ("grid: {bias: [0.1]}\npair_by: [d]", "unknown parameter"),
        ("grid: {bias: [0.1]}\nanswers: {a: {of: averages, variable: positoin, to: 1 %}}", "did you mean 'position'"),
    ],
)
def test_a_config_that_does_not_fit_is_refused_before_any_call(
    keys: str, says: str, written: Callable[..., Path]
) -> None:
    with pytest.raises(InputError, match=says):
        load(written(WALK, keys))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = 1", "no simulator in this file"),
        (
            WALK + WALK.partition("@simulator")[2].join(["\n@simulator", ""]).replace("def walk", "def run"),
            "several simulators",
        ),
        (WALK.replace("doubled(bias)", "tripled(bias)"), "got 'tripled'"),
        (WALK.replace("rng, bias", "rng, seed, bias"), "rng and seed"),
        (WALK.replace('position="m"', 'bias="m"'), "parameter has"),
        (WALK.replace("passed", "position_error"), "for an end of the interval, or the error, of position"),
        (WALK.replace('dims={"step": "n"}', 'dims={"step": "length"}'), "no parameter has the length of step"),
        (WALK.replace("n: int = 3", 'n: int = "x"'), "the default of n is no value of it"),
    ],
)
def test_a_file_that_is_no_simulator_is_refused(code: str, says: str, written: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=says):
        load(written(code, "grid: {n: [1, 2]}"))


def test_functions_that_other_processes_cannot_have_are_refused() -> None:
    with pytest.raises(InputError, match="at the top level of a file or a notebook"):
        simulator(y="1")(lambda rng, x=1.0: x)

    def inner(rng: np.random.Generator, x: float = 1.0) -> float:
        return x

    with pytest.raises(InputError, match="cannot be sent"):
        simulator(y="1")(inner)


class Law(Enum):
    normal = "normal"
    signs = "signs"


async def later(x: float = 1.0) -> float:
    return x


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (partial(pow, 2), "partial is no function that returns or yields its results"),
        (later, "later is no function that returns or yields its results"),
    ],
)
def test_what_is_no_function_is_refused(function: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        simulator(y="1")(function)


@pytest.mark.parametrize(
    ("kind", "default", "says"),
    [
        (Law, Law.normal, r"values of x are members of an Enum; got 'Law'; expected Literal\['normal', 'signs'\]"),
        (np.ndarray, 1, "no config can have values of x; got .*ndarray"),
        (Law | None, None, "values of x are members of an Enum; got 'Law'"),
        (date, date(2026, 1, 1), "no config can have values of x; got 'date'; expected a type such as float"),
        (list[complex], [], "no config can have values of x; got 'complex'"),
        (Callable[[int], int], abs, "no config can have values of x; got 'Callable'"),
        (Any, np.zeros(2), "no config can have the default of x; got array"),
    ],
)
def test_a_parameter_that_no_config_can_name_is_refused(
    kind: Any, default: Any, says: str, written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top_level, "__annotations__", {"x": kind})
    monkeypatch.setattr(top_level, "__defaults__", (default,))
    with pytest.raises(InputError, match=says):
        simulator(y="1")(top_level)


def top_level(x: Any = 1.0) -> float:
    return float(x)


@pytest.mark.parametrize(
    ("kind", "default", "stored"),
    [(float, 2, "2.0"), (float | None, 2, "2.0"), (bool, 1, "True"), (int, 3.0, "3"), (Any, 2, "2"), (None, 2, "2")],
)
def test_a_default_is_what_a_config_gives(
    kind: Any, default: Any, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One point has one identity, and one stream of random numbers."""
    monkeypatch.setattr(top_level, "__annotations__", {"x": kind} if kind else {})
    monkeypatch.setattr(top_level, "__defaults__", (default,))
    assert repr(simulator(y="1")(top_level).arguments["x"].default) == stored


def test_none_is_a_default_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_level, "__annotations__", {})
    monkeypatch.setattr(top_level, "__defaults__", (None,))
    assert simulator(y="1")(top_level).arguments["x"].default is None


WRAPPED = """
import functools
import numba
from sweeplib import simulator

def doubled(function):
    @functools.wraps(function)
    def wrapper(*arguments, **values):
        return 2 * function(*arguments, **values)
    return wrapper

@simulator(y="1")
@doubled
def wrapped(x=1.0):
    return x

@simulator(y="1")
@numba.njit
def compiled(x=1.0):
    return x
"""


def test_a_function_may_have_other_decorators(written: Callable[..., Path], tmp_path: Path) -> None:
    """Those of functools and numba; an edit of one is an edit of the function."""
    for name, value in (("wrapped", 6.0), ("compiled", 3.0)):
        config = written(WRAPPED, "parameters: {x: 3}\nfigures: []")
        config.write_text(config.read_text().replace("_functions.py", f"_functions.py:{name}"))
        assert ran(config, f"name={name}").y.item() == value


NUMBERS = """
from typing import Annotated
from pydantic import Field
from sweeplib import simulator

@simulator(y="1")
def numbers(rng, a=0.0, n=1, m: int | float = 2, b: Annotated[int | float, Field(ge=0)] = 1):
    return a + n + m + b
"""


SLEEPING = """
import time
from sweeplib import simulator

@simulator(y="1")
def sleeping(x=0.0):
    if x == 1.0:
        raise ValueError("no such value")
    time.sleep(0.05)
    return x
"""


@pytest.mark.parametrize("error", ["ValueError", "KeyboardInterrupt"])
def test_a_case_that_fails_at_once_is_no_measure_of_others(error: str, written: Callable[..., Path]) -> None:
    """There was time for one call after the first one, of a case that failed: a block had all cases of seconds each.

    One that raised KeyboardInterrupt ended the plan.
    """
    text = SLEEPING.replace("ValueError", error)
    cases = [case for _, case in load(written(text, "grid: {x: [0, 1, 2]}")).cases("sleeping")]
    assert cases[0].simulator.measured(cases, 0.04).seconds > 0.04
    assert cases[0].simulator.measured([cases[1]], 0.04).seconds < 0.04


def test_a_value_is_the_same_whatever_other_values_its_parameter_has(written: Callable[..., Path]) -> None:
    """Random numbers tell 1 from 1.0, and a grid that grows keeps its cases."""
    few = load(written(NUMBERS, "grid: {a: [0, 1], n: [1, 3], m: [0, 2], b: [0, 1]}"))
    more = load(written(NUMBERS, "grid: {a: [0, 0.5, 1], n: [1, 2.5, 3.0], m: [0, 0.5, 2], b: [0.0, 0.5, 1]}"))
    ours, all_of_them = ({case.identity() for _, case in design.cases("numbers")} for design in (few, more))
    assert len(ours) == 16 and ours < all_of_them
    with pytest.raises(
        InputError, match=re.escape("b[0]: not a value of b; got -0.5; expected a number of at least 0")
    ):
        load(written(NUMBERS, "grid: {b: [-0.5, 1]}"))


TURNED = """
import numpy as np
from sweeplib import Result, simulator

@simulator(m=Result("1", dims={"y": 2, "x": 2}), v=Result("m", dims={"z": 2}, label="length"))
def turned(a: float = 0.0):
    return {"m": np.array([[0.0, 1.0], [10.0, 11.0]]), "v": [1.0, 2.0]}
"""


def test_dimensions_are_those_of_the_code_of_now(
    written: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exchange of two is another result; another name of one is no other."""
    monkeypatch.setattr(work, "dispatched", computed)
    exchanged = TURNED.replace('"y": 2, "x": 2', '"x": 2, "y": 2').replace('"z"', '"w"').replace("length", "width")
    counts, values = [], []
    codes = {
        "first": TURNED,
        "renamed": TURNED.replace('"z"', '"w"').replace("length", "width"),
        "exchanged": exchanged,
    }
    for name, code in codes.items():
        design = replace(load(written(code, "grid: {a: [0]}", name)), cluster=Here())
        counts.append(run_sweep(design, tmp_path / "results", progress=False)["turned"].computed)
        ds = dataset_in_memory(design, tmp_path / "results")
        values.append((ds.v.dims[-1], ds.v.long_name, ds.m.isel(x=0, y=1).item()))
    assert counts == [1, 0, 1]
    assert values == [("z", "length", 10.0), ("w", "width", 10.0), ("w", "width", 1.0)]


def test_a_mended_length_computes_the_cases_that_failed_by_it(
    written: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They failed as the code is, and would be taken as they are; a grid that grew would join results of two shapes."""
    monkeypatch.setattr(work, "dispatched", computed)
    code = """
import numpy as np
from sweeplib import Result, simulator

@simulator(y=Result("1", dims={"k": 2}))
def several(a=1.0):
    return a * np.ones(3)
"""
    statuses = []
    for name, text, values in (("first", code, "[1]"), ("mended", code.replace('"k": 2', '"k": 3'), "[1, 2]")):
        config = written(text, f"name: own\ngrid: {{a: {values}}}", name)
        design = replace(load(config), cluster=Here())
        run_sweep(design, tmp_path / "results", progress=False)
        statuses.append(dataset_in_memory(design, tmp_path / "results").status.values.ravel().tolist())
    assert statuses == [[Status.failed], [Status.ok, Status.ok]]


@pytest.mark.rest
def test_a_function_without_random_numbers_has_no_replicas(written: Callable[..., Path]) -> None:
    code = "from sweeplib import simulator\n\n@simulator(y='1')\ndef square(x: float = 1.0):\n    return x**2\n"
    with pytest.raises(InputError, match="takes neither rng nor seed"):
        load(written(code, "grid: {x: [1, 2]}\nseeds: 2"))
    ds = ran(written(code, "grid: {x: [1, 2, 3]}\nfigures: []", "det"))
    np.testing.assert_array_equal(ds.y.squeeze(), [1.0, 4.0, 9.0])


SCRIPT = """
import functools
import sys
import numpy as np
import sweeplib
from sweeplib import simulator

LEVELS = {"low": 1.0}
LEVELS["high"] = 2.0
FACTOR = 1
FACTOR += 1

class Law:
    def __init__(self, level):
        self.level = LEVELS[level]

def value(level):
    return FACTOR * Law(level).level

@simulator(y="1")
@functools.cache
def own(rng, level: str = "low"):
    return value(level) + 0.0 * rng.random()

print("the script runs")
assert len(sys.argv) == 2, "a script that workers must not run"
if __name__ == "__main__":
    ds = sweeplib.sweep(own, level=["low"], seeds=int(sys.argv[1]), results="res", config={"cluster": {"workers": 2}})
    print("values", sorted(set(ds.y.values.ravel().tolist())), "seeds", ds.sizes["seed"])
"""


def test_a_script_sweeps_its_own_function_and_grows(tmp_path: Path) -> None:
    """Workers get the function and what it reaches, not the script."""
    (tmp_path / "script.py").write_text(SCRIPT.replace('LEVELS["high"] = 2.0\n', ""), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(sweeplib.__file__).parents[1])}
    for seeds in (2, 3):
        command = [sys.executable, "script.py", str(seeds)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"the script runs\nvalues [2.0] seeds {seeds}\n"
    [file] = (tmp_path / "res" / "own" / "functions").glob("*.py")
    assert "the script runs" not in file.read_text(encoding="utf-8")


def test_the_source_of_a_function_is_what_it_reaches(written: Callable[..., Path]) -> None:
    load(written(WALK, "grid: {bias: [0.1]}"))
    text = source_of(registered("walk")).text
    assert "SCALE = 2.0" in text and "def doubled" in text and "UNUSED" not in text
    names: dict[str, Any] = {}
    exec(compile(text, "slice", "exec"), names)
    assert isinstance(names["walk"], Function)


def test_two_functions_of_one_name_are_told_apart_by_their_code(written: Callable[..., Path]) -> None:
    """A sweep that was made before goes on with its own."""
    first = sweeplib.Sweep.from_yaml(
        written(WALK, "grid: {bias: [0.0]}\nfigures: []\nname: first", "first"), results="unused"
    )
    second = load(written(WALK.replace("SCALE = 2.0", "SCALE = 3.0"), "grid: {bias: [0.0]}", "second"))
    assert first.design.numerics("walk") != second.numerics("walk")
    [case] = first.design.probed("walk")
    assert case.simulator.function is first.design.simulator.function  # type: ignore[attr-defined]


@pytest.mark.rest
def test_a_table_of_points_has_texts_and_numbers(written: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("bias,law\n0.1,normal\n0.2,signs\n", encoding="utf-8")
    ds = ran(written(WALK, "points: points.csv\nparameters: {n: 1}\nseeds: 2\nfigures: []"))
    assert ds.law.values.tolist() == ["normal", "signs"]
    values = ds.position.isel(point=1)
    assert set(np.round(values.values.ravel(), 12)) <= {-0.6, 1.4}


@pytest.mark.rest
def test_points_of_a_design_stay_where_they_are_as_it_grows(written: Callable[..., Path]) -> None:
    """Of Sobol and random points, also beside an axis; a function of the root seed; in the ranges, evenly."""
    ranges = "bias: {uniform: [-1, 1]}, n: {integers: [1, 4]}, law: {choices: [normal, signs]}"
    config = written(WALK, f"points: {{sobol: 16, {ranges}}}\nseeds: 2")
    before = ran(config, "figures=[]").load()
    after = ran(config, "figures=[]", "points.sobol=32").load()
    xr.testing.assert_equal(after.position.sel(point=before.point), before.position)
    assert np.histogram(before.bias, 16, (-1, 1))[0].tolist() == [1] * 16, "one in each interval"
    assert set(before.n.values) == {1, 2, 3, 4} and set(before.law.values) == {"normal", "signs"}
    other = load(config, ["root_seed=1"])
    assert not np.isin(other.grid.array_of("bias"), before.bias).any()
    random = [load(config, [f"points={{random: {count}, bias: {{loguniform: [0.01, 1]}}}}"]) for count in (5, 9)]
    few, many = (sweep.grid.array_of("bias") for sweep in random)
    np.testing.assert_array_equal(many[:5], few)
    assert (few > 0.01).all() and (few < 1.0).all()


@pytest.mark.parametrize(
    ("design", "says"),
    [
        ("{sobol: 33, bias: {uniform: [0, 1]}}", "a power of 2, such as 32 or 64"),
        ("{sobol: 32, latin: 32, bias: {uniform: [0, 1]}}", "two kinds of designs"),
        ("{latin: 3}", "no parameters"),
        ("{latin: 3, bias: {uniform: [1, 0]}}", "not the ends of a range"),
        ("{latin: 3, bias: {loguniform: [0, 1]}}", "not the ends of a range"),
        ("{latin: 3, bias: {integers: [0, 10000000000000000000]}}", "whole numbers up to 2\\^53 apart"),
        ("{latin: 3, bias: {uniform: [-1.7e+308, 1.7e+308]}}", "too wide a range"),
        ("{latin: 3, bias: {loguniform: [1.0e-160, 1.0e+160]}}", "too wide a range"),
        ("{latin: 3, bias: {normal: [0, 1]}}", "no such range"),
        ("{latin: 3, bias: [0, 1]}", "not a range"),
        ("{latin: 3, bias: {uniform: [0, 5]}}", "not a value of bias"),
        ("{latin: 3, bais: {uniform: [0, 1]}}", "did you mean 'bias'"),
    ],
)
def test_a_design_that_is_none_is_refused(design: str, says: str, written: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=says):
        load(written(WALK, f"points: {design}\nroot_seed: 3"))


@pytest.mark.rest
def test_the_distribution_at_a_point_of_a_table_says_its_values(written: Callable[..., Path]) -> None:
    config = written(WALK, "points: {sobol: 4, bias: {uniform: [0, 1]}, n: {integers: [1, 40]}}\nseeds: 4")
    sweep = sweeplib.Sweep.from_yaml(config, results=config.parent / "results")
    sweep.run(progress=False)
    texts = [text.get_text() for text in sweep.figure("distribution").findobj(Text)]
    assert any("bias" in text and "n" in text for text in texts), texts


COURSE = """
import numpy as np
from sweeplib import Result, simulator

@simulator(x=Result("m", dims={"time": "times"}), work="J")
def course(rng, times, rate: float = 1.0):
    x = np.exp(-rate * times) + 0.1 * rng.standard_normal(len(times))
    return {"x": x, "work": x[-1] ** 2}
"""


@pytest.mark.rest
def test_a_function_records_at_times(written: Callable[..., Path]) -> None:
    """They are an axis of results along them, of averages and answers; others have one value a run."""
    config = written(COURSE, "grid: {rate: [1, 2]}\ntimes: [0, 0.5, 3]\nseeds: 64")
    sweep = sweeplib.Sweep.from_yaml(config, results=config.parent / "results")
    ds, means = sweep.run(progress=False), sweep.analyse("averages")
    assert ds.time.values.tolist() == [0.0, 0.5, 3.0]
    assert (ds.x.dims[-1], ds.work.dims[-1]) == ("time", "seed")
    exact = np.exp(-means.rate * means.time)
    assert ((means.x_low < exact) & (exact < means.x_high)).mean() > 0.8
    assert set(sweep.design.figures) == {"trajectories", "work", "distribution"}
    assert "time" in means.x.dims and "time" not in means.work.dims and "steps" not in means.coords
    sweep.figure("trajectories")
    with pytest.raises(InputError, match="times of this sweep are no steps"):
        sweep.figure("trajectories", x="steps")


@pytest.mark.parametrize(
    ("code", "keys", "says"),
    [
        (COURSE, "", "course has argument `times`"),
        (WALK, "times: [0, 1]", "walk has no argument `times`"),
        (COURSE, "times: [1, 0]", "more than 1, the one before"),
        (COURSE.replace('{"time": "times"}', '{"step": "times"}'), "times: [0]", "not the dimension of times"),
        (WALK.replace('{"step": "n"}', '{"time": "n"}'), "", "not the dimension of times"),
    ],
)
def test_times_that_do_not_fit_a_function_are_refused(
    code: str, keys: str, says: str, written: Callable[..., Path]
) -> None:
    with pytest.raises(InputError, match=says):
        load(written(code, f"grid: {{}}\n{keys}"))


NOTEBOOK = """
In = []
def run(cell):
    In.append(cell)
    exec(cell, globals())

run("import sweeplib\\nfrom sweeplib import simulator\\nFACTOR = 1.0")
In.append("%a magic that Python does not read")
run("def scaled(v):\\n    return FACTOR * v")
run("@simulator(y='1')\\ndef own(rng, x: float = 0.0):\\n    return scaled(x) + 0 * rng.random()")
shown = "print(sweeplib.sweep(own, x=[1.0, 2.0], seeds=2).y.values.ravel().tolist())"
run(shown)
run("FACTOR = 3.0")
run(shown)
run("@simulator(y='1')\\ndef own(rng, x: float = 0.0):\\n    return scaled(x) + 100")
run(shown)
"""


@pytest.mark.rest
def test_a_cell_of_a_notebook_that_runs_again_is_another_function(tmp_path: Path) -> None:
    """Also where another cell has changed what the function reaches."""
    environment = {**os.environ, "PYTHONPATH": str(Path(sweeplib.__file__).parents[1])}
    command = [sys.executable, "-c", NOTEBOOK]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "[1.0, 1.0, 2.0, 2.0]", "[3.0, 3.0, 6.0, 6.0]", "[103.0, 103.0, 106.0, 106.0]",
    ], done.stderr  # fmt: skip


def test_results_are_shown_without_a_figure_being_asked_for(written: Callable[..., Path]) -> None:
    """The first result against the longest axis, and its distribution; a map where two axes are long."""
    file = written(WALK, "").with_name("own_functions.py")
    keys = {"simulator": str(file), "seeds": 4}
    line = from_mapping(keys | {"name": "a", "grid": {"bias": [0.1, 0.2]}})
    assert line.figures == {"position": {"kind": "line", "y": "position"}, "distribution": {"y": "position"}}
    both = {"bias": {"linspace": [0, 1, 8]}, "n": {"range": [1, 9]}}
    maps = from_mapping(keys | {"name": "b", "grid": both})
    assert maps.figures["position_map"] == {"kind": "map", "z": "position"}


@pytest.mark.rest
def test_the_mean_of_a_result_is_answered_to_a_precision(written: Callable[..., Path], tmp_path: Path) -> None:
    load(written(WALK, "grid: {bias: [0.1]}"))
    answers = sweeplib.answer(
        registered("walk"), "position", to=0.2, bias=[0.5], n=1, results=tmp_path / "res", name="answered"
    )
    [found] = answers
    assert found.state.value == "given"
    assert found.half_width <= 0.2
    assert found.low < 1.0 < found.high


PROGRAM = """
import os, sys
n, seed = int(sys.argv[1]), int(sys.argv[2])
if n == 13:
    sys.stderr.write("unlucky\\n")
    sys.exit(3)
if n == 14:
    os.abort()
print("words before")
print({0})
"""
DECLARED = """
from sweeplib import program
run = program({command!r}, name="run", x="m", parity="1", parameters={{"n": int}})
"""


@pytest.mark.rest
@pytest.mark.parametrize(
    "output",
    [
        "__import__('json').dumps({'x': n / 4, 'parity': seed % 2, 'other': 'text'})",
        "f'x = {n / 4}\\nparity: {seed % 2}'",
        "f'parity, x\\n{seed % 2}, {n / 4}'",
    ],
    ids=["JSON", "lines", "CSV"],
)
def test_a_program_is_a_simulator(output: str, tmp_path: Path) -> None:
    """Its exit status and messages are the reason of a failure; an edit of it is another code."""
    (tmp_path / "program.py").write_text(PROGRAM.replace("{0}", output), encoding="utf-8")
    declared = DECLARED.format(command=f"{sys.executable} program.py {{n}} {{seed}}")
    (tmp_path / "declared.py").write_text(declared, encoding="utf-8")
    (tmp_path / "own.yaml").write_text("simulator: declared.py\ngrid: {n: [1, 13, 14]}\nseeds: 6\nfigures: []\n")
    ds = ran(tmp_path / "own.yaml")
    assert (ds.x.sel(n=1) == 0.25).all() and ds.x.attrs["units"] == "m"
    assert set(ds.parity.sel(n=1).values.ravel()) == {0.0, 1.0}
    assert (ds.status.sel(n=[13, 14]) == Status.failed).all()
    reasons = " ".join(line["exception"] for line in first_outcomes(tmp_path / "results" / "own", "run", 12))
    assert "exit status 3: unlucky" in reasons and "signal SIGABRT" in reasons
    code = registered("run").code
    (tmp_path / "program.py").write_text(PROGRAM.replace("{0}", f"{output} "), encoding="utf-8")
    del registered("run").__dict__["code"]
    assert registered("run").code != code


@pytest.mark.parametrize(
    "text",
    [
        '{"m": 3}',
        'words\n{\n  "m": 3,\n  "k": {"m": 1}\n}\n{"done": true}\nend',
        '{"m": 2}\n{"m": 3}\n',
        '{"m": 2}\n \t{"m": 3}\n {"m"',
        '{\n  "all": [\n    {"m": 1}\n  ],\n  "m": 3\n}',
        "m: 2\nm = 3",
        "k,m\n1,3",
    ],
)
def test_the_last_text_that_has_the_results_counts(text: str) -> None:
    assert parsed_output(text, {"m": Result("1")}) == {"m": 3}


def test_a_file_behind_an_equals_sign_is_one_that_the_command_names(tmp_path: Path) -> None:
    """An edit of it is another code; braces in the path of its folder are no parameters."""
    folder = tmp_path / "{x} a"
    folder.mkdir()
    (folder / "data.txt").write_text("2")
    (folder / "take.py").write_text("import sys\nprint('m =', open(sys.argv[1].partition('=')[2]).read())\n")
    command = f"{sys.executable} take.py --data=data.txt {{n}}"
    (folder / "declared.py").write_text(
        f"from sweeplib import program\ntake = program('{command}', name='take', m='1')"
    )
    (folder / "own.yaml").write_text("simulator: declared.py\ngrid: {n: [1]}\n")
    design = load(folder / "own.yaml")
    take = registered("take")
    assert [path.name for path in take.files[1:]] == ["take.py", "data.txt"] and list(take.arguments) == ["n"]
    assert take(n=1) == {"m": 2.0}
    code = take.code
    (folder / "data.txt").write_text("3")
    del take.__dict__["code"]
    assert take.code != code and take(n=1) == {"m": 3.0}
    keys = {"name": "other", "simulator": {"command": command, "results": {"m": "1"}}, "grid": {"n": [1]}}
    other = from_mapping(keys, folder)
    assert other.simulator.files[1:] == take.files[1:]
    converted = other.with_files(lambda names: [str(folder.parent / Path(name).name) for name in names])
    assert "--data=" + str(tmp_path / "data.txt") in converted["simulator"]["command"]
    assert design.files()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("program('no-such-program {n}', x='1')", "no such program"),
        ("program('true {n}', x='1', parameters={'m': 1})", "the command has no such parameter.*expected one of n"),
        ("program('true {n}')", "has no results"),
        ("program('true {0}', x='1')", "parameters by name"),
    ],
)
def test_a_program_that_cannot_run_is_refused(call: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "declared.py").write_text(f"from sweeplib import program\n{call}\n", encoding="utf-8")
    (tmp_path / "own.yaml").write_text("simulator: declared.py\ngrid: {n: [1]}\n")
    with pytest.raises(InputError, match=says):
        load(tmp_path / "own.yaml")


WITHOUT = """
import importlib.abc, sys
PHYSICS = ("networks",)

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("sweeplib.") and name.split(".")[1] in PHYSICS:
            raise ImportError(f"physics is taken away: {name}")

sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.rest
def test_the_engine_runs_with_physics_taken_away(tmp_path: Path) -> None:
    """In the driver and in its processes: plan, store, guard, dataset, growth."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT.replace('LEVELS["high"] = 2.0\n', ""), encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path(sweeplib.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "script.py", "40"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("values [2.0] seeds 40\n")


@simulator(m=Result("1", dims={"x": 2}))
def masked(rng: np.random.Generator, workers: int = 3) -> Any:
    return np.ma.masked_array([1, -999], mask=[False, True])


def test_a_masked_number_is_none() -> None:
    [values] = checked_results(masked, masked.function(np.random.default_rng(0)), {}).values()
    np.testing.assert_array_equal(values, [1.0, np.nan])


@simulator(y="1")
def gathered(parameters: float = 1.0, others: float = 2.0) -> float:
    return parameters + others


@pytest.mark.rest
def test_a_parameter_may_have_the_name_of_what_gathers_parameters(tmp_path: Path) -> None:
    assert sweeplib.sweep(gathered, parameters=[1, 3], others=4, results=tmp_path).y.values.ravel().tolist() == [5, 7]


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        (
            {"n": 3, "config": {"parameters": {"n": 4}}},
            "config.parameters.n: a parameter that the call has as well; got 4",
        ),
        ({"n": [3], "config": {"grid": {"n": [4, 5]}}}, "config.grid.n: a parameter that the call has as well"),
        (
            {"n": 3, "config": {"seeds": 2}},
            "config.seeds: not a key of `config` here; got 2; expected the argument `seeds`",
        ),
        ({"config": {"name": "x"}}, "config.name: not a key of `config` here"),
        ({"config": {"simulator": "x.py"}}, "expected the argument `function` of the call"),
        ({"config": {"folder": "x"}}, "config.folder: not a key of `config` here; .* the argument `results`"),
        ({"config": [1]}, r"config: not a section; got \[1\]; expected keys with their values"),
        ({"config": {"grid": [1]}}, "config.grid: not a section"),
        ({"name": "../up"}, r"name: not a name of a sweep; got '\.\./up'; expected letters"),
    ],
)
def test_what_is_said_twice_is_refused(keywords: dict[str, Any], says: str, written: Callable[..., Path]) -> None:
    """Neither of the two is taken in silence, and nothing is written."""
    folder = load(written(WALK, "grid: {bias: [0.0]}")).files()[0].parent / "results"
    with pytest.raises(InputError, match=says):
        sweep_of(registered("walk"), **{"results": folder, **keywords})
    assert not folder.exists() and not (folder.parent / "up").exists()


def test_a_function_whose_name_another_has_now_is_refused(written: Callable[..., Path], tmp_path: Path) -> None:
    """Other processes find the function by its name."""
    load(written(WALK, "grid: {bias: [0.0]}"))
    before = registered("walk")
    vars(sys.modules[before.module])["walk"] = again = simulator(y="1")(top_level)
    with pytest.raises(InputError, match=r"^walk: another function has this name now; expected that one"):
        sweep_of(before, results=tmp_path)
    assert again.name == "top_level"


def test_a_call_adds_to_the_grid_of_its_config(written: Callable[..., Path], tmp_path: Path) -> None:
    load(written(WALK, "grid: {bias: [0.0]}"))
    config = {"grid": {"bias": [0.0, 0.5]}, "parameters": {"law": "signs"}}
    design = sweep_of(registered("walk"), n=[3, 4], results=tmp_path, config=config).design
    assert {axis.name: list(axis.values) for axis in design.grid.axes} == {"bias": [0.0, 0.5], "n": [3, 4]}


@pytest.mark.parametrize(
    ("parameter", "result", "words"),
    [
        ("title", "y", "another meaning"),
        ("license", "y", "another meaning"),
        ("x", "exit_time", "another meaning"),
        ("x", "end_state", "another meaning"),
        ("x", "y" * 101, "too long a name"),
    ],
)
def test_names_that_a_dataset_would_lose_are_refused(
    parameter: str, result: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a value and such results would not be there, and figures take some for exits of networks."""
    code = top_level.__code__.replace(co_varnames=(parameter,))
    monkeypatch.setattr(top_level, "__code__", code)
    monkeypatch.setattr(top_level, "__annotations__", {})
    with pytest.raises(InputError, match=words):
        simulator(**{result: "1"})(top_level)


@pytest.mark.parametrize("call", [sweeplib.sweep, partial(sweeplib.answer, variable="m", to="1 %")])
def test_a_parameter_that_the_call_would_take_for_its_own_is_refused(call: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^workers: a parameter of masked has the name of an argument"):
        call(masked, workers=2, results=tmp_path)


LONG = """
from sweeplib import Result, simulator

@simulator(y=Result("1", dims={"x": LENGTH}))
def long(rng, n: int = 2, half: float = 1.0):
    return [0.0]
"""


def test_results_of_arrays_need_their_lengths(written: Callable[..., Path]) -> None:
    assert Result("m", dims={"x": "L", "y": 3}).shape({"L": 5}) == (5, 3)
    for length in ("-1", "2.5", "True"):
        with pytest.raises(InputError, match=re.escape(f"not the length of x; got {length}; expected a whole")):
            load(written(LONG.replace("LENGTH", length), "grid: {n: [1]}", f"long{len(length)}"))
    config = written(LONG.replace("LENGTH", "'half'"), "grid: {half: [1, 0]}")
    assert len(load(config).probed("long")) == 2
    for value in ("-1", "1.5"):
        said = re.escape(f"grid.half: long: not the length of x at half={float(value)}; got {float(value)}; expected a")
        with pytest.raises(InputError, match=said):
            load(config, [f"grid.half=[1, {value}]"])


CHOSEN = """
import os
from sweeplib import simulator

@simulator(y="1")
def chosen(rng, γ: float = 0.5, n: int = 1):
    if n == 2:
        raise ValueError(os.environ["WHY"])
    return γ
"""


def test_a_case_is_chosen_by_any_names_and_fails_by_its_exception(
    written: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "dispatched", computed)
    design = replace(load(written(CHOSEN, "grid: {γ: [0.1, 0.7], n: [1, 2]}\nseeds: 2")), cluster=Here())
    monkeypatch.setenv("WHY", "first reason")
    run_sweep(design, tmp_path / "results", progress=False)
    for name in ("γ=0.7,n=2,seed=1", "seed=1,n=2,γ=0.7,dynamics=chosen"):
        assert dict(chosen_case(design, tmp_path / "results", name).coordinates)["γ"] == 0.7
    with pytest.raises(InputError, match="not a coordinate; got 'nonsense'"):
        chosen_case(design, tmp_path / "results", "nonsense,n=1,seed=1")
    for reason, alike in (("first reason", True), ("another reason", False)):
        monkeypatch.setenv("WHY", reason)
        said: list[str] = []
        assert reproduces(design, tmp_path / "results", "γ=0.7,n=2,seed=1", say=said.append) is alike
        assert said[-2:] == ["in the store: failed, ValueError: first reason", f"here: failed, ValueError: {reason}"]
    shown: list[Any] = []
    debugger = SimpleNamespace(
        runcall=lambda run, case: run(case), interaction=lambda frame, error: shown.append(extract_tb(error)[-1].name)
    )
    monkeypatch.setattr("sweeplib.commands.upkeep.reproduce._debugger", lambda: debugger)
    reproduces(design, tmp_path / "results", "γ=0.7,n=2,seed=1", debug=True, say=said.append)
    assert shown == ["chosen"], "it stops where the function raises"
    assert reproduces(design, tmp_path / "results", "γ=0.7,n=1,seed=1", debug=True, say=said.append)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("fall.py:fall", ("fall.py", "fall")),
        ("fall.py", ("fall.py", "")),
        ("a:b/fall.py", ("a:b/fall.py", "")),
        ("/a:b/fall.py:fall", ("/a:b/fall.py", "fall")),
    ],
)
def test_a_folder_may_have_a_colon_in_its_name(text: str, parts: tuple[str, str]) -> None:
    assert file_and_name(text) == parts


def test_results_in_a_place_for_no_folder_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("sweeplib.functions.source.is_importable", lambda _: False)  # as a script's
    monkeypatch.setattr(type(gathered), "source", lambda _: SimpleNamespace(text="", files={}, given={}))
    with pytest.raises(InputError, match=r"results: no folder can be made there: Not a directory; got .*file"):
        file_of(gathered, tmp_path / "file" / "f")
