"""The cheapest of several simulators of one law, and costs and other runs as names in `when`."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib.config import from_mapping
from sweeplib.engine.design.choices import row_seconds
from sweeplib.engine.design.design import Design
from sweeplib.engine.design.questions import Row, with_rows
from sweeplib.engine.execution import work
from sweeplib.engine.execution.plan import write_plan
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.engine.storage.store.other_stores import COMPUTE_ALL
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.simulator import SIMULATOR
from tests.in_process import Here, computed

PROBLEM = {"k": 1, "activation": "erf", "start": "sphere", "Delta": 0.5, "gamma": 0.5}
LAW = {"kind": "cheapest", "of": ["sgd", "sgd_chain"]}


def config(dynamics: Any = None, **changed: Any) -> dict[str, Any]:
    whole = {
        "name": "cheap",
        "problem": PROBLEM,
        "grid": {"p": [2, 30], "d": [45, 400]},
        "seeds": 2,
        "dynamics": {"law": LAW} if dynamics is None else dynamics,
        "times": [0, 1],
        "figures": [],
    }
    return whole | changed


def of(dynamics: Any = None, **changed: Any) -> Design:
    return from_mapping(config(dynamics, **changed))


def points(sweep: Design, run: str) -> set[tuple[int, ...]]:
    return {(case.problem.p, case.problem.d) for _, case in sweep.cases(run)}


def run(folder: Path, dynamics: Any = None, **changed: Any) -> xr.Dataset:
    sweep = sweeplib.Sweep(results=folder, **config(dynamics, **changed))
    sweep.design = replace(sweep.design, cluster=Here(block_size=64))
    return sweep.run(progress=False)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process compute the blocks."""
    monkeypatch.setattr(work, "dispatched", computed)


def test_each_point_gets_one_simulator_and_what_one_refuses_another_takes() -> None:
    sweep = of(grid={"p": [2, 8, 30], "d": [3, 20, 40, 400]})
    weights, chain = points(sweep, "sgd-law"), points(sweep, "sgd_chain-law")
    assert weights | chain == {(p, d) for p in (2, 8, 30) for d in (3, 20, 40, 400)}
    assert not weights & chain
    assert {(2, 400), (30, 400)} <= chain and (30, 40) in weights  # p of the order of d: the chain costs p², SGD p d
    offsets = of(grid={"p": [2], "d": [400], "offset_scale": [0, 1]})
    taken = {name: [case.problem.offset_scale for _, case in offsets.cases(f"{name}-law")] for name in LAW["of"]}
    assert taken == {"sgd": [1.0, 1.0], "sgd_chain": [0.0, 0.0]}


def test_the_choice_is_that_of_the_model_and_does_not_change_as_a_sweep_grows() -> None:
    sweep, more = of(), of(grid={"p": [2, 30, 40], "d": [45, 100, 400, 500]}, seeds=50)
    for simulator in ("sgd", "sgd_chain"):
        own = points(more, f"{simulator}-law")
        assert points(sweep, f"{simulator}-law") == {(p, d) for p, d in own if p in (2, 30) and d in (45, 400)}


@pytest.mark.rest
def test_the_dataset_has_one_run_says_which_simulator_it_was(tmp_path: Path) -> None:
    ds = run(tmp_path)
    assert ds.dynamics.values.tolist() == ["law"]
    names = ds.simulator.attrs["flag_meanings"].split()
    found = {(p, d): names[int(ds.simulator.sel(dynamics="law", p=p, d=d))] for p in (2, 30) for d in (45, 400)}
    assert found == {(2, 45): "sgd_chain", (2, 400): "sgd_chain", (30, 45): "sgd", (30, 400): "sgd_chain"}
    assert (ds.status == 1).all() and ds.risk.notnull().all()
    again = run(tmp_path)
    xr.testing.assert_identical(again, ds)


@pytest.mark.slow
def test_cases_are_shared_with_sweeps_that_name_the_simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMPUTE_ALL, raising=False)
    ds = run(tmp_path)
    other = of({"sgd": {"where": {"p": [30], "d": [45]}}, "sgd_chain": {"where": {"d": [400]}}}, name="others")
    plan = write_plan(other, tmp_path / "others", progress=False)
    assert {name: sum(part.copies.values()) for name, part in plan.dynamics.items()} == {"sgd": 2, "sgd_chain": 4}
    alone = run(tmp_path, ["sgd_chain"], name="alone", grid={"p": [2, 30], "d": [400]})
    np.testing.assert_array_equal(alone.risk.sel(dynamics="sgd_chain"), ds.risk.sel(dynamics="law", d=[400]))


@pytest.mark.rest
def test_a_simulator_that_is_nowhere_the_cheapest_has_no_cases(tmp_path: Path) -> None:
    ds = run(tmp_path, grid={"p": [2], "d": [30]})
    assert ds.simulator.values.ravel().tolist() == [1]
    assert ds.simulator.attrs["flag_meanings"] == "none sgd_chain"


def test_a_complete_config_gives_the_same_runs() -> None:
    sweep = of({"law": LAW | {"of": {"sgd": {"weights": "float32"}, "sgd_chain": {}}, "when": "cost < 1"}, "ode": {}})
    again = from_mapping(parsed(sweep.source))
    assert again.runs == sweep.runs
    assert again.source == sweep.source


def test_a_cost_is_that_of_all_seeds_of_the_config() -> None:
    sweep = of({"sgd_chain": {"when": "cost <= 1e-3"}, "ode": {"where": {"seed": [1]}}}, grid={"p": [2], "d": [30]})
    [case] = [case for _, case in sweep.cases("sgd_chain")][:1]
    _, table = sweep.grid.points()
    assert row_seconds(sweep, "sgd_chain", table) == pytest.approx([2 * SIMULATOR.seconds(case)])
    assert row_seconds(sweep, "ode", table) == pytest.approx(
        [SIMULATOR.seconds(replace(case, dynamics="ode", options=()))]
    )
    grown = with_rows(sweep, [[Row({"p": 2, "d": 30}, 4096, "")]])
    assert row_seconds(grown, "sgd_chain", table) == row_seconds(sweep, "sgd_chain", table)
    limit = float(row_seconds(sweep, "sgd_chain", table)[0])
    for seeds, rows in ((2, 1), (3, 0)):
        when = {"sgd_chain": {"when": f"cost <= {limit!r}"}, "ode": {}}
        if rows:
            assert len(of(when, grid={"p": [2], "d": [30]}, seeds=seeds).points("sgd_chain").flat) == rows
        else:
            with pytest.raises(InputError, match="true at no point"):
                of(when, grid={"p": [2], "d": [30]}, seeds=seeds)


def test_the_name_of_another_run_is_true_where_that_runs() -> None:
    dynamics = {
        "ode": {"when": "law and p < 8 or sgd"},
        "law": LAW | {"where": {"d": [400]}},
        "sgd": {"when": "d < 100 and p > 2"},
    }
    sweep = of(dynamics)
    assert points(sweep, "ode") == {(2, 400), (30, 45)}


@pytest.mark.parametrize(
    "given",
    [
        {
            "problem": {name: value for name, value in PROBLEM.items() if name != "gamma"},
            "grid": {"zip": [{"gamma": [0.4, 0.5, 0.6], "p": [2, 30, 30], "d": [45, 45, 400]}]},
        },
        {"grid": {}, "points": {"p": [2, 30, 30], "d": [45, 45, 400]}},
        {"grid": {"p": [2, 30], "d": [45, 400]}, "seeds": "2 if d > 45 or p < 30 else 1", "pair_by": ["seed"]},
    ],
)
def test_linked_axes_tables_of_points_and_ragged_seeds(given: dict[str, Any]) -> None:
    sweep = of({"law": LAW | {"when": "cost < 9"}, "ode": {"when": "law", "where": {"d": [45]}}}, **given)
    assert points(sweep, "sgd-law") == {(30, 45)}
    assert {(2, 45), (30, 400)} <= points(sweep, "sgd_chain-law")
    assert points(sweep, "ode") == {(2, 45), (30, 45)}


def test_a_sweep_of_one_point() -> None:
    sweep = of(problem=PROBLEM | {"p": 30, "d": 45}, grid={})
    assert (sweep.size_of("sgd-law"), sweep.size_of("sgd_chain-law")) == (2, 0)


def test_a_cost_that_nothing_can_pay_is_a_large_number() -> None:
    changed = {"problem": PROBLEM | {"p": 2, "d": 30}, "grid": {"offset_scale": [0, 1]}, "thresholds": [0.5]}
    assert of({"law": LAW | {"when": "cost < 1e9"}}, **changed).size == 2
    with pytest.raises(InputError) as refused:
        of(**changed)
    assert refused.value.key == "dynamics.law"
    for words in ("offset_scale=1", "sgd: ", "sgd_chain: ", "thresholds"):
        assert words in str(refused.value)


@pytest.mark.parametrize(
    ("dynamics", "key", "words"),
    [
        ({"law": LAW | {"of": ["sgd", "ode"]}}, "dynamics.law.of", "sgd, sgd_chain"),
        ({"law": LAW | {"of": ["sgd", "sgd_chian"]}}, "dynamics.law.of", "did you mean 'sgd_chain'"),
        ({"law": LAW | {"of": ["sgd"]}}, "dynamics.law.of", "two simulators"),
        ({"law": {"kind": "cheapest"}}, "dynamics.law.of", "two simulators"),
        ({"law": LAW | {"kind": "cheepest"}}, "dynamics.law.kind", "did you mean 'cheapest'"),
        ({"sgd": LAW}, "dynamics.sgd", "no dynamics"),
        ({"law": LAW | {"weights": "float32"}}, "dynamics.law.weights", "of: {sgd: {weights: float32}"),
        ({"law": LAW | {"of": {"sgd": {"weight": "float32"}, "sgd_chain": {}}}}, "dynamics.law.of.sgd", "weights"),
        ({"law": LAW, "sgd-law": {}}, "dynamics.law", "of this name"),
        ({"law": LAW | {"when": "costs < 1"}}, "dynamics.law.when", "did you mean 'cost'"),
        ({"law": LAW | {"when": "cost < 0"}}, "dynamics.law.when", "at no point"),
        ({"sgd": {"when": "ode"}, "ode": {"when": "sgd"}}, "dynamics", "ode -> sgd"),
        ({"sgd": {"when": "sgd"}}, "dynamics.sgd.when", "unknown name"),
        ({"law": {"kind": "ode"}}, "dynamics.law.kind", "ode-law"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_key(dynamics: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        of(dynamics)
    assert str(refused.value.key).startswith(key)
    assert words in str(refused.value)


def test_names_of_the_grid_come_before_costs_and_runs() -> None:
    sweep = of({"sgd": {"when": "cost > 20 and ode"}, "ode": {}}, derive={"cost": "p*d", "ode": "1 if d > 45 else 0"})
    assert points(sweep, "sgd") == {(2, 400), (30, 400)}


def test_the_model_of_each_dynamics_has_three_numbers() -> None:
    for kind in DYNAMICS.values():
        of_work, of_step, of_unit = kind.cost_seconds
        assert of_work > 0.0 <= min(of_step, of_unit)


def seconds(case: Case) -> float:
    """Return the processor time of some copies of a case, of one."""
    cases = [replace(case, seed=seed) for seed in range(16)]
    run_cases([replace(case, clock=0.0) for case in cases])
    before = time.process_time()
    run_cases(cases)
    return (time.process_time() - before) / len(cases)


@pytest.mark.slow
def test_the_simulator_that_the_model_takes_is_the_cheaper_one_where_they_differ_much() -> None:
    for p, d in ((2, 1000), (16, 4000), (100, 110)):
        problem = Problem(p=p, d=d, k=1, gamma=1.0, Delta=0.5, activation="erf", start="sphere")
        cases = [Case(problem, name, 0, Recording((2000 * problem.step_time(),))) for name in ("sgd", "sgd_chain")]
        model, here = (np.array(list(map(function, cases))) for function in (SIMULATOR.seconds, seconds))
        assert model.max() > 1.7 * model.min(), (p, d)
        assert here.argmin() == model.argmin(), (p, d, model, here)
        assert here[model.argmin()] < here.max() / 1.1
