"""Points that are no product: tables with seeds of their own, numbers in formulas, several runs of a dynamics."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.commands.starter import write_new
from sweeplib.commands.upkeep.cases import chosen_case
from sweeplib.config import from_mapping, load
from sweeplib.config.catalogue import explanation
from sweeplib.config.values import plain
from sweeplib.engine.design import grid
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution import work
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.outline import outline_of, planned_outline
from sweeplib.engine.storage.records.artefacts import cases_made_from
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.errors import InputError
from sweeplib.pictures.figures.figure import requested
from sweeplib.pictures.figures.kit.facets import by_columns
from sweeplib.pictures.figures.kit.style import dynamics_look
from tests.in_process import Here, computed

PROBLEM = {"p": 2, "k": 1, "d": 50, "Delta": 0.0, "activation": "erf"}
SHORT = {"times": [0, 0.5, 1], "figures": []}


def run(design: Design, directory: Path) -> xr.Dataset:
    """Compute the cases of a sweep in this process, and return its dataset."""
    run_sweep(replace(design, cluster=Here()), directory, progress=False)
    return xr.open_zarr(finalise(design, directory)).load()


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "dispatched", computed)


@pytest.fixture
def results(tmp_path: Path) -> Callable[..., xr.Dataset]:
    """Run a sweep in a folder of its own, and return its dataset."""

    def dataset(name: str, **config: Any) -> xr.Dataset:
        given = {"name": name, "seeds": 2, **SHORT, **config}
        return run(from_mapping(plain(given), tmp_path), tmp_path / "results" / name)

    return dataset


def refusal(folder: Path, **config: Any) -> str:
    given = {"name": "x", "problem": {"activation": "erf"}, "dynamics": ["ode"], **SHORT, **config}
    with pytest.raises(InputError) as refused:
        from_mapping(given, folder)
    return str(refused.value)


def test_rows_are_the_same_table_as_columns(tmp_path: Path) -> None:
    rows = [{"gamma": 0.1, "target": "tanh(lam1)", "n": 2}, {"gamma": 0.4, "target": "lam1", "n": 3}]
    given = {"name": "x", "problem": PROBLEM, "seeds": "n", "dynamics": ["ode"], **SHORT}
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    one, other = (from_mapping({**given, "points": points}, tmp_path).points("ode") for points in (rows, columns))
    assert list(one.cases) == list(other.cases) and one.counts.tolist() == other.counts.tolist() == [2, 3]


def test_rows_that_are_no_table_are_refused(tmp_path: Path) -> None:
    assert "points[1]: not the same names; got 'p'; expected" in refusal(tmp_path, points=[{"gamma": 0.1}, {"p": 1}])
    assert "points[1].gamma: not a value of gamma" in refusal(tmp_path, points=[{"gamma": 0.1}, {"gamma": "erf"}])
    for table in (5, [], ["points.csv"]):
        assert "points: not a table of points" in refusal(tmp_path, points=table)


@pytest.mark.rest
def test_names_of_the_grid_are_numbers_in_formulas(results: Callable[..., xr.Dataset]) -> None:
    target, schedule = "lam1 + c*he3(lam1)", "1/(1 + t/tau)"
    problem, grid = PROBLEM | {"gamma": 0.1}, {"tau": [0.5, 2], "c": [-0.25, 0.25]}
    formulas = {"target": target, "schedule": schedule, "activation": "hermite(0, 1, c)"}
    swept = results("swept", problem=problem | formulas, grid=grid, dynamics=["ode"])
    assert swept["target"].dims == ("c",) and swept["schedule"].dims == ("tau",)
    assert swept["target"].attrs["formula"] == target
    for tau, c in ((0.5, -0.25), (2.0, 0.25)):
        alone = {"target": f"lam1 {c:+}*he3(lam1)", "schedule": f"1/(1 + t/{tau})", "activation": f"hermite(0, 1, {c})"}
        one = results(f"alone{tau}", problem=problem | alone, dynamics=["ode"])
        np.testing.assert_array_equal(swept["risk"].sel(tau=tau, c=c), one["risk"])
    assert len(np.unique(swept["risk"].isel(time=-1))) == 8


def test_a_name_in_a_formula_is_a_number_of_the_grid(tmp_path: Path) -> None:
    problem = PROBLEM | {"gamma": 0.5, "target": "lam1 + c*he3(lam1)"}
    assert "unknown name: `c`" in refusal(tmp_path, problem=problem)
    assert "problem.c: not a value of c" in refusal(tmp_path, problem=problem | {"c": "erf"})
    for c, text in ((1, "lam1 + he3(lam1)"), (-2, "lam1 - 2*he3(lam1)")):
        given = {"name": "x", "problem": problem, "grid": {"c": [c]}, "dynamics": ["ode"], **SHORT}
        assert [case.problem.target for case in from_mapping(given, tmp_path).points("ode").cases] == [text]
    assert "'t'" in refusal(tmp_path, problem=problem | {"target": "lam1", "schedule": "1/t"}, grid={"t": [1]})


@pytest.mark.rest
def test_runs_of_one_dynamics_stand_side_by_side(results: Callable[..., xr.Dataset]) -> None:
    problem = PROBLEM | {"gamma": 0.5}
    runs = {"ode": {}, "ode-loose": {"rtol": 1e-3}, "sde-fine": {}, "sgd_chain": {}}
    swept = results("runs", problem=problem, grid={"sde-fine.step": [1, 5]}, dynamics=runs)
    loose = results("loose", problem=problem, dynamics={"ode": {"rtol": 1e-3}})
    np.testing.assert_array_equal(swept["risk"].sel(dynamics="ode-loose").isel({"sde-fine.step": 0}), loose["risk"][0])
    for step in (1, 5):
        alone = results(f"step{step}", problem=problem, dynamics={"sde": {"step": step}})
        fine = swept["risk"].sel({"dynamics": "sde-fine", "sde-fine.step": step})
        np.testing.assert_array_equal(fine, alone["risk"][0])
    risk = swept["risk"].isel(time=-1)
    assert (risk.sel(dynamics="ode") != risk.sel(dynamics="ode-loose")).all()
    assert (risk.sel(dynamics="sgd_chain").std("sde-fine.step") == 0).all()


@pytest.mark.rest
def test_commands_find_the_cases_of_runs_by_their_options(tmp_path: Path) -> None:
    given = {"problem": PROBLEM | {"gamma": 0.5}, "grid": {"sde-fine.step": [1, 5]}, "dynamics": ["ode", "sde-fine"]}
    sweep = from_mapping({"name": "x", "seeds": "2 if d > 10 else 1", **SHORT, **given}, tmp_path)
    run(sweep, tmp_path)
    chosen = chosen_case(sweep, tmp_path, "dynamics=sde-fine,sde-fine.step=5,seed=1")
    assert chosen.case.dynamics == "sde" and dict(chosen.case.options)["step"] == 5.0
    entry, text = explanation("dynamics.ode-loose")
    assert entry.name == "ode-loose" and "ode-loose" in text


def test_a_case_of_a_law_is_found_by_the_name_of_the_law(tmp_path: Path) -> None:
    """The dataset has that name alone."""
    runs = {"fast": {"kind": "cheapest", "of": ["sgd", "sgd_chain"]}}
    config = {"problem": PROBLEM | {"gamma": 0.1, "d": 3000}, "dynamics": runs, **SHORT}
    design = from_mapping({"name": "x", **config}, tmp_path)
    chosen = chosen_case(design, tmp_path, "dynamics=fast,seed=0")
    assert design.laws["fast"] == ("sgd-fast", "sgd_chain-fast") and chosen.coordinates["dynamics"] in design.runs


def test_an_option_is_an_axis_or_fixed_and_belongs_to_a_run(tmp_path: Path) -> None:
    problem = PROBLEM | {"gamma": 0.5}
    twice = refusal(tmp_path, problem=problem, grid={"sde.step": [1, 2]}, dynamics={"sde": {"step": 3}})
    assert "dynamics.sde.step: given twice, in grid.sde.step too" in twice
    assert "did you mean 'step'" in refusal(tmp_path, problem=problem, grid={"sde.steps": [1, 2]}, dynamics=["sde"])
    assert "grid.sde.step: unknown name" in refusal(tmp_path, problem=problem, grid={"sde.step": [1, 2]})
    assert "whole number" in refusal(tmp_path, problem=problem, grid={"sde.samples": [1.5]}, dynamics=["sde"])
    assert "did you mean 'ode'" in refusal(tmp_path, problem=problem, dynamics=["odd-one"])
    assert "not the name of a run" in refusal(tmp_path, problem=problem, dynamics=["ode-a/b"])
    message = refusal(tmp_path, problem=problem, dynamics={"fine": {"kind": "ode"}})
    assert "dynamics.fine.kind" in message
    assert "`ode-fine: {...}`" in message
    assert "expected a text" in refusal(tmp_path, problem=problem, dynamics={"fine": {"kind": ["ode"]}})


def test_runs_are_told_apart_by_their_marks() -> None:
    shown = ["sgd", "sde", "sde-fine", "sde-coarse", "ode", "ode-loose", "gradient_flow"]
    looks = [dynamics_look(name, shown, {"marker": "o", "color": "k"}) for name in shown]
    marks = {(look["marker"], look.get("markerfacecolor"), look.get("fillstyle")) for look in looks}
    assert len(marks) == len(shown)


TABLE = "gamma, p,k,d,Delta,n\n.1,2,1,50,0,3\n0.2,2,1,50,0,1\n.3,4,1,60,1e-2,0\n"


@pytest.mark.rest
def test_a_table_of_points_with_seeds_of_their_own(results: Callable[..., xr.Dataset], tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    config = {"points": "rows.csv", "seeds": "n", "problem": {"activation": "erf"}, "dynamics": ["sgd_chain", "ode"]}
    table.write_text("\ufeff" + TABLE.replace("\n", "\r\n"))
    first = results("table", **config)
    assert first["status"].sel(dynamics="ode").values.tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert first["gamma"].dims == ("point",) and first["gamma"].values.tolist() == [0.1, 0.2, 0.3]
    table.write_text(TABLE.replace(",0\n", ",2\n") + ".4,2,1,50,0,5\n")
    grown = results("table", **config)
    assert grown["status"].sum().item() == 2 * (3 + 1 + 2 + 5)
    np.testing.assert_array_equal(grown["risk"][:, :3, :3].where(first["status"] == 1), first["risk"])
    alone = results("alone", problem=PROBLEM | {"gamma": 0.4}, dynamics=["sgd_chain", "ode"], seeds=5)
    np.testing.assert_array_equal(grown["risk"].isel(point=3), alone["risk"])
    np.testing.assert_array_equal(
        grown.set_index(point=["gamma", "d"]).unstack()["risk"].sel(gamma=0.4, d=50).values,
        grown["risk"].isel(point=3).values,
    )


def test_an_edit_of_any_row_of_a_long_table_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "PROBES", 2)
    rows, config = tmp_path / "rows.csv", {"points": "rows.csv", "problem": PROBLEM, "dynamics": ["ode"], **SHORT}
    found = []
    for second in (0.2, 0.25, 0.2):
        rows.write_text(f"gamma\n.1\n{second}\n.3\n.4\n")
        design = from_mapping({"name": "x", **config}, tmp_path)
        found.append((design.numerics("ode"), cases_made_from(design)))
    (numerics, before), (same, edited), (_, again) = found
    assert numerics == same and before != edited and before == again, "the second row is not probed"


def test_code_that_any_row_of_a_long_table_needs_is_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts say which code runs; of rows in turn every second one is probed."""
    monkeypatch.setattr(grid, "PROBES", 5)
    rows = "".join(f"{0.1 + 0.01 * row},{'erf' if row % 2 else 'relu'}\n" for row in range(10))
    (tmp_path / "rows.csv").write_text(f"gamma,activation\n{rows}")
    problem = {name: value for name, value in PROBLEM.items() if name != "activation"}
    design = from_mapping(
        {"name": "x", "points": "rows.csv", "problem": problem, "dynamics": ["sgd"], **SHORT}, tmp_path
    )
    assert {case.problem.activation for case in design.probed("sgd")} == {"relu", "erf"}


@pytest.mark.slow
def test_a_frame_a_mapping_and_a_file_are_one_table(results: Callable[..., xr.Dataset], tmp_path: Path) -> None:
    columns = {"gamma": [0.1, 0.1], "d": [50, 60], "schedule": ["1", "1/(1 + t)"]}
    problem = {"p": 2, "k": 1, "Delta": 0.0, "activation": "erf"}
    pd.DataFrame(columns).to_csv(tmp_path / "rows.csv", index=False)
    found = [
        results(f"table{number}", points=points, problem=problem, dynamics=["ode"])
        for number, points in enumerate((columns, pd.DataFrame(columns), "rows.csv"))
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other["risk"], found[0]["risk"])
    assert found[0]["schedule"].values.tolist() == ["1", "1 / (1 + t)"]


@pytest.mark.parametrize(
    ("text", "said"),
    {
        "an empty file": ("", "no points"),
        "no row": ("gamma,d\n", "no points"),
        "no value": (TABLE.replace("1e-2", ""), "rows.csv:4: Delta: no value"),
        "no value below": ("# a\n" + TABLE.replace("\n", "\n\n").replace("1e-2", ""), "rows.csv:8: Delta: no value"),
        "a text below": ("\n# mine\n" + TABLE.replace("0.2,2", "0.2,two"), "rows.csv:5: p[1]: not a value of p"),
        "NaN": (TABLE.replace("1e-2", "nan"), "rows.csv:4: Delta: no value"),
        "a text": (TABLE.replace("0.2,2", "0.2,two"), "rows.csv:3: p[1]: not a value of p; got 'two'"),
        "a fraction": (TABLE.replace("0.2,2", "0.2,2.5"), "rows.csv:3: p[1]: not a value of p; got 2.5"),
        "a name twice": (TABLE.replace("Delta", "d"), "rows.csv:1: not the names of columns"),
        "decimal commas": ("gamma,d\n\n1,5,300\n2,5,300\n", "rows.csv:3: 3 values; got '1,5,300'; expected 2, one per"),
        "its remedy": ("gamma,d\n1,5,300\n", "a comma separates values, also one in a number; numbers with a"),
        "thousands": ("gamma,d\n0.05,1000\n0.05,1,000\n", "rows.csv:3: 3 values; got '0.05,1,000'"),
        "quoted thousands": ('gamma,d\n0.05,"1,000"\n', "rows.csv:2: a comma or another sign in a number; got '1,000'"),
        "a comma after a semicolon": ("gamma;d\n# one\n0,05;300\n", "rows.csv:3: a comma or another sign in a number"),
        "thousands with blanks": ("gamma;d\n0.1;1 000\n", "got '1 000'; expected numbers with a decimal point"),
        "a short row": (TABLE.replace(",50,0,3", ",50,3"), "rows.csv:2: 5 values; got '.1,2,1,50,3'; expected 6"),
        "a column without a name": (TABLE.replace("Delta", ""), "rows.csv:1: not the names of columns"),
        "an unknown name": (TABLE.replace("Delta", "Delte"), "did you mean 'Delta'"),
        "a long row": (TABLE.replace("1e-2", "1e-2,7,8"), "rows.csv:4: 8 values"),
        "an axis too": (TABLE.replace("Delta,n", "seed,n"), "this name has another meaning"),
    }.values(),
)  # fmt: skip
def test_a_table_that_is_none(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text)
    assert said in refusal(tmp_path, points="rows.csv", seeds="n")


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "text"),
    {
        "as printed": ("rows.csv", "# rows.csv\n" + TABLE),
        "remarks and empty lines": ("rows.csv", TABLE.replace("\n", "\n\n  # remark, with a comma\n,,,,,\n")),
        "capital letters": ("ROWS.CSV", TABLE),
        "semicolons": ("rows.csv", TABLE.replace(",", ";")),
        "tabs": ("rows.tsv", TABLE.replace(" ", "").replace(",", "\t")),
        "blanks": ("rows.txt", "# numpy.savetxt\n" + TABLE.replace(" ", "").replace(",", "  ")),
        "text": ("rows.txt", TABLE),
    }.values(),
)
def test_a_table_is_read_as_what_it_is(name: str, text: str, tmp_path: Path) -> None:
    given = {"name": "x", "problem": {"activation": "erf"}, "seeds": "n", "dynamics": ["sgd"], **SHORT}
    (tmp_path / "plain.csv").write_text(TABLE)
    (tmp_path / name).write_text(text)
    plain_one, other = (from_mapping({**given, "points": file}, tmp_path).points("sgd") for file in ("plain.csv", name))
    assert list(plain_one.cases) == list(other.cases) and plain_one.counts.tolist() == other.counts.tolist() == [
        3,
        1,
        0,
    ]


def test_a_run_without_cases_has_no_rows_and_no_variables(tmp_path: Path) -> None:
    config = {"problem": PROBLEM, "grid": {"gamma": [0.1, 0.2]}, "seeds": "4 if gamma > 0.15 else 0", **SHORT}
    design = from_mapping(
        {"name": "x", "dynamics": {"sgd": {}, "ode": {"where": {"gamma": [0.1]}}}, **config}, tmp_path
    )
    rows = inventory(design, "ode", RunStore(tmp_path, "ode")).rows()
    assert rows == {"gamma": [], "seed": [], "status": [], "identity": []}
    assert not design.has_cases("ode") and design.has_cases("sgd")
    assert "risk_error" not in planned_outline(design).variables
    assert (
        "risk_error" in planned_outline(from_mapping({"name": "x", **config, "dynamics": ["ode"]}, tmp_path)).variables
    )


def test_seeds_are_whole_numbers_and_points_no_axis_of_ones_own(tmp_path: Path) -> None:
    problem, grid = PROBLEM | {"gamma": 0.5}, {"n": [1, 3]}
    assert "not a number of seeds: n/2 at n=1; got 0.5" in refusal(tmp_path, problem=problem, grid=grid, seeds="n/2")
    assert "not a number of seeds: n - 2 at n=1; got -1" in refusal(tmp_path, problem=problem, grid=grid, seeds="n - 2")
    assert "this name has another meaning" in refusal(tmp_path, problem=problem, grid={"point": [1, 2]})
    assert "no such file" in refusal(tmp_path, points="none.csv").lower()
    (tmp_path / "rows.csv").write_text(TABLE)
    twice = refusal(tmp_path, points="rows.csv", seeds="n", grid={"d": [1, 2]})
    assert "points: given twice, in grid.d too; got 'd'" in twice


QUESTIONS = {
    "the time scale of a schedule": """
        problem: {p: 2, k: 1, d: 50, Delta: 0, activation: erf, schedule: 1/(1 + t/tau)}
        grid: {gamma: [0.5, 1], tau: [1, 4]}
        dynamics: [sgd_chain, ode]
        figures: {f: {kind: line, y: risk, x: tau}}""",
    "the coefficient of a target": """
        problem: {gamma: 0.5, p: 2, k: 1, d: 50, Delta: 0, activation: erf, target: he2(lam1) + c*he3(lam1)}
        grid: {c: [-0.5, 0, 1]}
        dynamics: [ode]
        figures: {f: {kind: line, y: risk, x: c}}""",
    "an ODE beside its correction": """
        problem: {gamma: 0.5, p: 2, k: 1, Delta: 0, activation: erf}
        grid: {d: [50, 100]}
        dynamics: {sgd_chain: {}, ode: {}, ode-corrected: {finite_d: true}}
        figures: [risk_curves]""",
    "the steps of the SDE": """
        problem: {gamma: 0.5, p: 2, k: 1, d: 50, Delta: 0, activation: erf}
        grid: {sde.step: [1, 2, 5]}
        dynamics: {sgd_chain: {}, sde: {}, sde-fixed: {step: 1}}
        figures: {f: {kind: line, y: risk, x: sde.step}}""",
    "the momentum": """
        problem: {p: 2, k: 1, d: 50, Delta: 0, activation: erf}
        grid: {gamma: [0.1, 0.2], inertia.momentum: [0, 0.5, 0.9]}
        dynamics: {sgd: {}, inertia: {}, inertia-heavy: {momentum: 0.95}}
        plugins: [inertia.py]
        figures: {f: {kind: line, y: risk, x: gamma}}""",
    "scales of the start": """
        problem: {gamma: 0.5, p: 2, k: 1, d: 50, Delta: 0, activation: erf}
        grid: {start_scale: [0.1, 0.5, 1]}
        dynamics: [sgd_chain, ode]
        figures: {f: {kind: line, y: risk, x: start_scale}}""",
    "the ridge": """
        problem: {gamma: 0.5, p: 2, k: 1, d: 50, Delta: 0, activation: erf, second_layer_samples: 100}
        grid: {ridge: [0, 0.01, 0.1]}
        dynamics: [sgd_chain]
        observables: [risk, refitted_risk]
        figures: {f: {kind: line, y: refitted_risk, x: ridge}}""",
    "sizes of batches beside rates": """
        problem: {p: 2, k: 1, d: 50, Delta: 0, activation: erf}
        grid: {batch_size: [1, 5], rate: [0.2, 0.4]}
        derive: {gamma: rate*batch_size}
        dynamics: [sgd_chain]
        figures: {f: {kind: line, y: risk, x: rate}}""",
    "the points of a table": """
        points: rows.csv
        problem: {activation: erf}
        seeds: n
        dynamics: [sgd_chain, ode]
        figures: {f: {kind: line, y: risk, x: gamma}}""",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_a_short_file(question: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(TABLE)
    text = QUESTIONS[question]
    if "inertia.py" in text:
        write_new("dynamics", tmp_path / "inertia.py")
    text = text if "seeds:" in text else text + "\nseeds: 2"
    (tmp_path / "asked.yaml").write_text(
        "\n".join(line.strip() for line in text.splitlines()) + "\ntimes: [0, 0.5, 1]\n"
    )
    assert len(text.splitlines()) < 25
    sweep = load(tmp_path / "asked.yaml")
    ds = run(sweep, tmp_path / "results")
    assert (ds["status"].values <= 1).all() and ds["risk"].notnull().any()
    [(name, options)] = sweep.figures.items()
    figure, chosen = requested(name, options)
    drawing = figure(ds, {need: ANALYSES[need](ds) for need in figure.needed(chosen)}, **chosen)
    lines = [line for axes in drawing.axes for line in axes.lines if line.get_xdata().size]
    assert lines and (question != "the points of a table" or {line.get_linestyle() for line in lines} == {"None"})


ROWS = [{"gamma": 0.1, "d": 300}, {"gamma": 0.2, "d": 100}, {"gamma": 0.1, "d": 100}, {"gamma": 0.4, "d": 100}]


def test_columns_of_a_table_are_panels_and_colours(tmp_path: Path) -> None:
    """Each row is at its values; elsewhere nothing was run. Outlines have the axes that the data will have."""
    names = ("d", "gamma")
    columns: dict[str, Any] = {name: ("point", [row[name] for row in ROWS]) for name in names}
    data = {"risk": (("point", "time"), np.arange(8.0).reshape(4, 2)), "status": ("point", np.ones(4, np.uint8))}
    ds = xr.Dataset(data, columns | {"point": np.arange(4), "time": [0.0, 1.0]})
    found = by_columns(ds, names)
    assert dict(found.sizes) == {"point": 1, "time": 2, "d": 2, "gamma": 3}
    for place, row in enumerate(ROWS):
        np.testing.assert_array_equal(found.risk.sel(row).isel(point=0), ds.risk[place])
    assert int((found.status == 1).sum()) == 4 and int(found.risk.notnull().sum()) == 8
    assert found.status.dtype == np.uint8
    outline = by_columns(outline_of(ds), names)
    assert {name: list(values) for name, values in outline.axes.items()} == {
        name: found[name].values.tolist() for name in found.dims
    }
    assert set(outline.variables["risk"]) == set(found.risk.dims)
    assert by_columns(ds, ("d",)).sizes["point"] == 3


def test_a_figure_by_columns_of_a_table_is_checked_before_any_work(tmp_path: Path) -> None:
    def said(rows: list[dict[str, float]] = ROWS, **options: Any) -> str:
        entry = {"figures": {"risks": {"kind": "risk_curves", **options}}, "derive": {}, "times": [0, 1]}
        given = {"problem": {"p": 1, "k": 1, "Delta": 0, "activation": "square"}, "points": rows, "seeds": 2}
        try:
            from_mapping({"name": "table", "dynamics": ["sgd_chain"], **given, **entry}, tmp_path)
        except InputError as error:
            return str(error)
        return ""

    assert not said(hue="gamma", panel="d") and not said(hue="gamma", where={"d": 100})
    assert said(panel="d") == (
        "figures.risks.hue: several points of the table have the same values; expected another column of the table "
        "here, or a value of one in `where`"
    )
    assert "figures.risks.where.d: not a value of the axis d; got 200" in said(hue="gamma", where={"d": 200})
    scattered = [{"gamma": 0.1 + row / 1e5, "d": 100 + row} for row in range(200)]
    assert said(scattered, hue="gamma", panel="d") == (
        "figures.risks: too many for panels and colours: 200 values of d and 200 values of gamma; expected columns of "
        "fewer values, or one of them"
    )
