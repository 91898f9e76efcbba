"""Configs: all keys, defaults, overrides; the complete text of a config describes the same sweep."""

import inspect
import itertools
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.analysis import Analysis
from sweeplib.config import load
from sweeplib.config.models import DynamicsSection, Section, SweepConfig
from sweeplib.config.reference import generated
from sweeplib.config.time_models import Times
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.files.strict_yaml import document, parsed, written
from sweeplib.errors import InputError
from sweeplib.networks.coordinates import constants, coordinates
from sweeplib.networks.problem import PARAMETERS
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.figure import Figure

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "config" / "quickstart.yaml"

FULL = """\
name: full
problem: {k: 2, p0: 2, Delta: 0.001, a: 0.5}
grid:
  d: {geomspace: [100, 10000, 3]}
  kappa: {range: [0, 0.3, 0.1]}
  zip:
    - {activation: [erf, square], teacher_activation: [erf, square]}
derive:
  p: round(p0 * d**kappa)
  gamma: 0.5 / p
seeds: {range: [3, 8]}
root_seed: 7
pair_by: [seed, d]
dynamics:
  ode: {rtol: 1e-6}
  sgd: {where: {d: [100], seed: 4, activation: square}}
times: {values: [0, 1, 2.5], scale: p/gamma}
thresholds: [0.5, 0.1]
observables: [risk, overlap_M]
cluster: {kind: address, address: "tcp://10.0.0.1:8786"}
timeout: 60
"""


def load_text(directory: Path, text: str, *overrides: str) -> Design:
    path = directory / "sweep.yaml"
    path.write_text(text)
    return load(path, overrides)


def test_quickstart_is_the_main_job() -> None:
    sweep = load(QUICKSTART)
    assert sweep.grid.dims == ("gamma", "d", "Delta")
    assert sweep.grid.shape == (12, 3, 3)
    assert sweep.seeds == tuple(range(64))
    assert [sweep.size_of(name) for name in ("sgd_chain", "ode", "sgd")] == [108 * 64, 108 * 64, 36 * 64]
    assert sweep.recording.stop == "exit"
    assert sweep.recording.thresholds == (0.1,)
    assert "learning_rate_scan" in sweep.figures


@pytest.mark.rest
def test_a_config_is_checked_without_what_analyses_and_stores_import() -> None:
    """A dry run imports only what checks a config; each of these modules takes as long to import as all of that."""
    loading = "import sys, sweeplib.config; sweeplib.config.load(sys.argv[1]); print(*sys.modules)"
    command = [sys.executable, "-c", loading, str(QUICKSTART)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "sweeplib.pictures.figures.learning_rate_scan" in loaded
    assert not set(loaded) & {
        "xarray",
        "pandas",
        "zarr",
        "scipy.special",
        "scipy.stats",
        "matplotlib",
        "distributed",
        "rich",
    }


def test_every_key_has_its_say(tmp_path: Path) -> None:
    sweep = load_text(tmp_path, FULL)
    assert sweep.name == "full"
    assert sweep.grid.dims == ("d", "activation", "kappa")
    assert sweep.grid.axes[0].values == (100, 1000, 10000)
    assert sweep.grid.axes[2].values == (0.0, 0.1, 0.2)
    assert sweep.seeds == (3, 4, 5, 6, 7)
    assert sweep.pair_by == ("d",)
    assert sweep.root_seed == 7
    assert sweep.recording.times == (0.0, 1.0, 2.5)
    assert sweep.recording.thresholds == (0.1, 0.5)
    assert sweep.recording.observables == ("risk", "overlap_M")
    assert sweep.runs["sgd"] == Run(
        "sgd", {"d": (100,), "seed": (4,), "activation": ("square",)}, options={"weights": "float64"}
    )
    assert sweep.runs["ode"].options["rtol"] == 1e-6
    assert sweep.cluster.address == "tcp://10.0.0.1:8786"
    assert sweep.timeout == 60


def test_cases_are_those_of_the_points_and_seeds(tmp_path: Path) -> None:
    sweep = load_text(tmp_path, FULL)
    cases = list(sweep.cases("ode"))
    assert [index for index, _ in cases] == list(itertools.product(*map(range, sweep.shape)))
    assert len(cases) == sweep.size_of("ode") == 3 * 2 * 3 * 5
    for index, case in cases:
        assert case.seed == sweep.seeds[index[-1]]
        assert case.problem.d == sweep.grid.axes[0].values[index[0]]
        assert case.problem.activation == case.problem.teacher_activation
        assert case.problem.p == round(2 * case.problem.d ** sweep.grid.axes[2].values[index[2]])
        assert case.clock == case.problem.p / case.problem.gamma
        assert (case.root_seed, case.pair_by, case.recording) == (7, ("d",), sweep.recording)
        assert dict(case.options) == sweep.runs["ode"].options
    assert len({case.identity() for _, case in cases}) == len(cases)


def test_cases_of_where_keep_their_places(tmp_path: Path) -> None:
    sweep = load_text(tmp_path, FULL)
    assert [index for index, _ in sweep.cases("sgd")] == [(0, 1, place, 1) for place in range(3)]
    assert sweep.size_of("sgd") == 3
    everywhere = load_text(tmp_path, FULL, "dynamics.sgd.where={}")
    places = dict(everywhere.cases("sgd"))
    assert all(places[index].identity() == case.identity() for index, case in sweep.cases("sgd"))


@pytest.mark.rest
@pytest.mark.parametrize("text", [FULL, QUICKSTART.read_text()])
def test_the_complete_config_is_the_same_sweep(text: str, tmp_path: Path) -> None:
    sweep = load_text(tmp_path, text)
    assert load_text(tmp_path, sweep.source) == sweep
    assert set(parsed(sweep.source)) == set(SweepConfig.model_fields) - {"from_"}
    assert yaml.safe_load(sweep.source) == parsed(sweep.source)


def test_a_dynamics_has_all_its_options_in_the_complete_config() -> None:
    complete = parsed(load(QUICKSTART).source)
    assert {"max_steps", "rtol", "atol"} <= set(complete["dynamics"]["ode"])
    assert complete["dynamics"]["sgd"]["where"] == {"d": [300]}


def test_the_name_is_the_files_by_default(tmp_path: Path) -> None:
    path = tmp_path / "my-sweep_2.yaml"
    path.write_text(FULL.replace("name: full\n", ""))
    assert load(path).name == "my-sweep_2"


def test_what_a_figure_needs_is_analysed(tmp_path: Path) -> None:
    sweep = load_text(tmp_path, QUICKSTART.read_text(), "analyses=[]")
    from sweeplib.pictures.figures import FIGURES

    assert set(FIGURES["learning_rate_scan"].needed({})) <= set(sweep.analyses)


def test_overrides(tmp_path: Path) -> None:
    sweep = load_text(
        tmp_path,
        FULL.replace("dynamics:\n", "dynamics: [sgd]\nfigures:\n").split("figures:")[0] + "times: [0, 1]\n",
        "grid.d=[300]",
        "seeds=2",
        "dynamics.ode.rtol=1e-5",
        "problem.p0=3",
    )
    assert sweep.grid.axes[0].values == (300,)
    assert sweep.seeds == (0, 1)
    assert list(sweep.runs) == ["sgd", "ode"]
    assert sweep.runs["ode"].options["rtol"] == 1e-5
    assert sweep.grid.fixed["p0"] == 3


def test_overrides_are_in_the_complete_config(tmp_path: Path) -> None:
    sweep = load_text(tmp_path, FULL, "grid.d=[100, 300]")
    assert parsed(sweep.source)["grid"]["d"] == [100, 300]
    assert load_text(tmp_path, sweep.source) == sweep


@pytest.mark.rest
def test_growing_keeps_the_identity_of_every_case(tmp_path: Path) -> None:
    few = {case.identity() for _, case in load_text(tmp_path, FULL).cases("ode")}
    grown = load_text(
        tmp_path, FULL, "seeds=10", "grid.d=[100, 500, 1000, 10000]", "grid.kappa={range: [-0.1, 0.5, 0.1]}"
    )
    assert few < {case.identity() for _, case in grown.cases("ode")}


@pytest.mark.rest
def test_a_million_points_are_not_held_in_memory(tmp_path: Path) -> None:
    load(QUICKSTART)
    tracemalloc.start()
    sweep = load_text(
        tmp_path,
        FULL,
        "grid.d={range: [100, 600, 5]}",
        "grid.kappa={linspace: [0, 0.5, 100]}",
        "problem={k: 2, p0: 2}",
        "grid.Delta={linspace: [0, 1, 50]}",
        "dynamics={ode: {}}",
    )
    assert sweep.grid.size == 10**6
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * sweep.grid.size  # bytes; a point as a problem takes a thousand


PRINTED = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | PRINTED
WORDS = st.sampled_from(
    ["on", "yes", "no", "~", "null", "1e5", "1_000", "010", "0x1", "12:30", ".inf", "=", "<<", "-", "2001-01-01"]
)


@pytest.mark.rest
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.from_regex("[a-z]{1,5}", fullmatch=True), st.lists(SCALARS | WORDS, max_size=4), max_size=4))
def test_what_is_written_is_read_back(value: dict[str, list[object]]) -> None:
    assert parsed(written(value)) == value


def test_numbers_are_read_as_one_writes_them() -> None:
    text = "[1e-8, 1.e3, .5, -2, 1_000, .inf, true, on, 010, ~]"
    assert parsed(text) == [1e-8, 1000.0, 0.5, -2, 1000, float("inf"), True, "on", 10, None]


def test_lines_of_keys() -> None:
    text = "a: 1\ngrid:\n  d: [1,\n    2]\n  e: 3\n"
    paths = [("a",), ("grid", "d"), ("grid", "d", 1), ("grid", "x"), ("b",)]
    assert [document(text).lines_of(path) for path in paths] == [[1], [2, 3], [2, 3, 4], [2], []]


def test_generated_files_are_fresh() -> None:
    stale = [name for name, text in generated().items() if (ROOT / "config" / name).read_text() != text]
    assert not stale, "run `sweeplib schema`"


def test_every_key_is_explained_by_an_example() -> None:
    models: list[type[Section]] = [SweepConfig, Times, DynamicsSection]
    for model in models:
        for name, field in model.model_fields.items():
            assert field.description, name
            assert field.examples, name
    assert all(known.meaning and known.label for known in PARAMETERS.values())


def test_the_reference_explains_every_key() -> None:
    before, _, after = generated()["README.md"].partition("## What goes with what\n")
    lines = [*before.splitlines(), *after.partition("\n## ")[2].splitlines()]
    rows = [line.split(" | ") for line in lines if line.startswith("| `")]
    assert [row[0] for row in rows if len(row) != 5 or not row[-1].strip(" |")] == []
    keys = {row[0].strip("| `") for row in rows}
    assert {"cluster.tls_ca", "cluster.tls_cert", "cluster.tls_key"} < keys
    options = [set(ANALYSES[name].check({})) for name in ANALYSES] + [set(FIGURES[name].check({})) for name in FIGURES]
    assert set().union(*options) < keys


@pytest.mark.rest
@pytest.mark.parametrize(("registry", "made"), [(ANALYSES, Analysis), (FIGURES, Figure)], ids=["analyses", "figures"])
def test_a_new_option_is_explained_where_it_is_declared(
    registry: Any, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No list has to be edited; without a meaning, the error names the file and the option."""

    def told(ds: Any, analyses: Any = None, *, sharpness: Annotated[int, Field(description="how sharp.")] = 3) -> Any:
        return ds

    def untold(ds: Any, analyses: Any = None, *, sharpness: int = 3) -> Any:
        return ds

    if registry is ANALYSES:
        for function in (told, untold):
            monkeypatch.setattr(function, "__signature__", without_analyses(function), raising=False)
    monkeypatch.setitem(registry._things, "new", made("new", told, "A new one."))
    assert "| `sharpness` | whole number | `3` | `new` | how sharp. |" in generated()["README.md"]
    monkeypatch.setitem(registry._things, "new", made("new", untold, "A new one."))
    with pytest.raises(InputError, match=r"test_config\.py: untold: an option without a meaning; got 'sharpness'; exp"):
        generated()


def without_analyses(function: Any) -> inspect.Signature:
    ds, _, option = inspect.signature(function).parameters.values()
    return inspect.Signature([ds, option])


def test_schema_knows_the_keys_and_the_fields() -> None:
    schema = json.loads(generated()["schema.json"])
    assert set(schema["properties"]) == {name.removesuffix("_") for name in SweepConfig.model_fields}
    assert set(schema["then"]["required"]) == {"dynamics", "times"}
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]["problem"]["properties"]) == set(PARAMETERS)


def test_null_is_a_field_that_is_not_given(tmp_path: Path) -> None:
    """What follows from other fields varies with them: a spherical student starts on the sphere."""
    text = """\
name: nulls
problem: {gamma: 0.1, p: 1, k: 1, d: 9, Delta: 0, activation: erf, m0: null, start: null, teacher_activation: null}
grid: {spherical: [false, true]}
dynamics: [ode]
times: {values: [0, 1]}
"""
    sweep = load_text(tmp_path, text)
    problem = sweep.points("ode").cases[0].problem
    starts = next(each for each in coordinates(sweep, problem) if each.name == "start")
    assert (starts.dims, starts.values.tolist()) == (("spherical",), ["gaussian", "sphere"])
    assert constants(sweep, problem)["teacher_activation"] == "erf"


def test_a_dynamics_runs_when_its_expression_is_true(tmp_path: Path) -> None:
    text = """
problem: {k: 1, activation: square, gamma: 0.1}
grid: {d: [100, 200, 400], Delta: [0, 1], cost: [1, 2]}
derive: {p: round(cost)}
seeds: 3
dynamics:
  ode: {}
  sgd: {when: p * d <= 400, where: {d: [200, 400]}}
times: [0, 1]
"""
    sweep = load_text(tmp_path, text)
    found = [(case.problem.p, case.problem.d, case.problem.Delta) for _, case in sweep.cases("sgd") if case.seed == 0]
    assert sorted(found) == [(1, 200, 0), (1, 200, 1), (1, 400, 0), (1, 400, 1), (2, 200, 0), (2, 200, 1)]
    assert sweep.size_of("sgd") == 18 and sweep.size_of("ode") == 36
    assert {case.problem.d for case in sweep.probed("sgd")} == {200, 400}
    complete = parsed(sweep.source)["dynamics"]["sgd"]
    assert complete == {"where": {"d": [200, 400]}, "when": "p * d <= 400", "weights": "float64"}
