"""The examples of docs/how-to/plugins.md do what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from sweeplib import Problem, plugins, simulate
from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.headlines import headline
from sweeplib.config import load
from sweeplib.contracts.outcomes import all_outcomes
from sweeplib.engine.code.exports import FORMER
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.errors import InputError
from sweeplib.networks.maths.activations import ACTIVATIONS
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import problem_expectations
from sweeplib.networks.simulation import Case
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.views import OverlapView
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.report.plots import interactive_plot
from tests.datasets import sweep_dataset
from tests.plugged import nothing_left

REFUSED = [
    ("observables: [risk, alignment]", "observables: [alignment]", "no final risk without the risk"),
    ("gamma: [0.05, 0.1, 0.2]", "gamma: [0.05, 0.1, 0.2], teacher_start: [orthogonal, sphere]", "against gamma alone"),
    ("figures: [final_risks]", "figures: {final_risks: {scale: -1}}", r"figures\.final_risks\.scale: not a scale"),
    ("gamma: [0.05, 0.1, 0.2]", "gamma: [0.05, 0.1, 0.2], m0: [0.0]", "no overlap to relax"),
    ("gamma: [0.05, 0.1, 0.2]", "gamma: [0.05, 0.1, 0.2], spherical: [true]", "relaxation does not act on spherical"),
    ("{rate: 2}", "{rate: fast}", r"dynamics\.relaxation\.rate"),
]
"""A line of the example, what stands there instead, and what is said of it when the config is loaded."""

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "plugins.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files of the page."""
    tmp_path = tmp_path_factory.mktemp("page")
    page = PAGE.read_text()
    files = re.findall(r"```\w+\n# (\S+)\n(.*?)```", page, flags=re.DOTALL)
    assert len(files) == len(re.findall(r"^```\w", page, flags=re.MULTILINE)), "code that is no file"
    for name, text in files:
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", FORMER)
def test_a_name_of_before_says_what_stands_for_it(name: str) -> None:
    with pytest.raises(InputError, match=r"a Chart|Layer"):
        getattr(plugins, name)


def test_every_kind_of_thing_that_can_be_registered_has_an_example(folder: Path) -> None:
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    kinds = set(re.findall(r"^\|.*`([A-Z]+)\.register", PAGE.read_text(), re.MULTILINE))
    assert len(kinds) == 15
    assert set(re.findall(r"^([A-Z]+)\.register", code, re.MULTILINE)) == kinds - {"FORMS"}


@pytest.mark.rest
def test_the_first_example_is_a_sweep_whose_figure_is_drawn(folder: Path) -> None:
    ds = sweep_dataset(seeds=2).isel(gamma_ratio=slice(4), d=0, Delta=0)
    with nothing_left():
        sweep = load(folder / "bent.yaml")
        assert sweep.runs["relaxation"].options == {"rate": 2.0}
        for line, instead, said in REFUSED:
            (folder / "other.yaml").write_text((folder / "bent.yaml").read_text().replace(line, instead))
            with pytest.raises(InputError, match=said):
                load(folder / "other.yaml")
        problem = Problem(p=2, k=1, d=100, Delta=0, activation="bent", gamma=0.1)
        run = simulate(problem, "relaxation", times=[0, 1], observables=["alignment"], options={"rate": 2.0})
        decay = run.alignment.isel(time=1) / run.alignment.isel(time=0)
        assert decay.values.ravel() == pytest.approx(np.exp(-2.0))
        assert ACTIVATIONS["bent"].value(0.0) == 0.0
        assert list(sweep.analyses) == ["final_risk"]
        analyses = {"final_risk": ANALYSES["final_risk"](ds)}
        [axes] = FIGURES["final_risks"](ds, analyses, **sweep.figures["final_risks"]).axes
        assert len(axes.lines) == ds.sizes["dynamics"]


def test_a_law_along_an_axis_and_a_figure_with_theory_take_a_few_lines(folder: Path) -> None:
    """The exponent of the exits in d is known, in words too; picture and page have the points and the curve."""
    wanted = {"growth.py": 25, "floors.py": 15}
    for name, most in wanted.items():
        assert len([line for line in (folder / name).read_text().splitlines() if line]) <= most
    ds = sweep_dataset(seeds=4, derived=False, d=(100, 300, 1000), Delta=(0.5,))
    with nothing_left():
        load_plugins([str(folder / name) for name in wanted])
        with pytest.raises(InputError, match="along: no such axis of numbers"):
            ANALYSES["growth"](ds.isel(d=slice(2)), along="d")
        result = ANALYSES["growth"](ds, along="d")
        known = result.exponent.notnull()
        assert known.any()
        assert (result.exponent_low < result.exponent).where(known, other=True).all()
        assert "exponent of exit_steps in d" in headline(result, "exponent").lines[0]
        floors = {"risk_floor": ANALYSES["risk_floor"](ds)}
        drawing = FIGURES["floors"](ds, floors)
        plot = interactive_plot("floors", FIGURES["floors"].declared(ds, floors), ds, floors, {})
        assert {"gamma", "risk_floor", "theory"} <= {column.name for column in plot.table.columns}
        assert plot.spec["theory"] == "theory"
        assert "theory, γΔ/(1 − 6γ)" in [text.get_text() for text in drawing.legends[0].get_texts()]


SWARM_REFUSED = [
    (
        "observables: [mean_overlap]",
        "observables: [risk]",
        r"observables\[0\]: swarm has no such observable; got 'risk'",
    ),
    ("start: opposed", "start: opposed, a_star: 2.0", "the target mean does not act on a_star"),
    ("start: opposed", "start: opposed, m0: 0.5", "the start opposed does not act on m0"),
    ("particles: 20", "particles: many", r"dynamics\.swarm\.particles"),
    (", where: {target: committee}", "", "swarm does not act on target"),
    ("start: opposed", "start: opposed, repeats: 2", "ode does not act on repeats"),
]


@pytest.mark.rest
def test_the_second_example_is_a_sweep_of_targets_starts_views_clusters_and_expectations(folder: Path) -> None:
    with nothing_left():
        sweep = load(folder / "swarm.yaml")
        for line, instead, said in SWARM_REFUSED:
            (folder / "other.yaml").write_text((folder / "swarm.yaml").read_text().replace(line, instead))
            with pytest.raises(InputError, match=said):
                load(folder / "other.yaml")
        problem = next(case.problem for _, case in sweep.cases("swarm"))
        options = {"particles": 20}
        run = simulate(problem, "swarm", times=[0.0, 1.0], observables=["mean_overlap"], options=options)
        assert run.mean_overlap.dims == ("seed", "time", "teacher")
        assert run.mean_overlap.values[0] == pytest.approx(np.array([[-0.5] * 2, [1.0 - 1.5 * np.exp(-1.0)] * 2]))
        assert run.spread.sizes == {"seed": 1, "time": 2, "teacher": 2}
        replicas = replicas_of([Case(problem, "ode", 0, sweep.recording)])
        assert OBSERVABLES["mean_overlap"].function_of(OverlapView)(replicas) == pytest.approx(-0.5)
        taught = next(case.problem for _, case in sweep.cases("ode") if case.problem.target == "mean")
        assert problem_expectations(taught).name.startswith("hermite(")
        with sweep.cluster.client() as client:
            assert client.submit(sum, [1, 2]).result() == 3


@pytest.mark.rest
def test_runs_exit_on_the_distance_of_the_page(folder: Path) -> None:
    with nothing_left():
        assert {outcome.status for outcome in all_outcomes([str(folder / "distance.py")])} == {"ok"}
        problem = Problem(p=1, k=1, d=50, Delta=0, activation="erf", gamma=0.5)
        steps = np.arange(100) * problem.step_time()
        run = simulate(problem, "sgd", times=steps, observables=["distance"], thresholds=[0.1], exit_on="distance")
        [distance] = run.distance.values
        assert run.exit_steps.item() == np.argmax(distance <= 0.9 * distance[0]) > 0


@pytest.mark.rest
def test_the_proposer_of_the_page_passes_its_checks(folder: Path) -> None:
    with nothing_left():
        assert {outcome.status for outcome in all_outcomes([str(folder / "fixed.py")])} == {"ok"}


@pytest.mark.rest
def test_the_data_law_of_the_page_has_its_inputs(folder: Path) -> None:
    """In one dimension x² = 1: a linear student approaches a linear teacher by the factor 1 − γ a step."""
    with nothing_left():
        load_plugins([str(folder / "signs.py")])
        problem = Problem(p=1, k=1, d=1, Delta=0, activation="linear", gamma=0.25, data="signs")
        run = simulate(problem, "sgd", times=[0.0, 1.0], observables=["risk"])
        assert run.end_steps.item() == 4.0
        assert run.risk.values[0, 1] == pytest.approx(run.risk.values[0, 0] * 0.75**8)
        with pytest.raises(InputError, match="ode does not act on data"):
            simulate(problem, "ode", times=[1.0])
        for dynamics in ("mean_field_hd", "weight_flow"):
            with pytest.raises(InputError, match="no mixture of isotropic Gaussians; got 'signs'"):
                simulate(problem, dynamics, times=[1.0])


@pytest.mark.rest
def test_the_loss_keeps_all_that_a_loss_must(folder: Path) -> None:
    """And its parameter is an axis."""
    with nothing_left():
        found = list(all_outcomes([str(folder / "cauchy.py")]))
        assert {outcome.status for outcome in found} == {"ok"}
        assert len(found) == 5
        common = {"p": 1, "k": 1, "d": 30, "Delta": 0.1, "activation": "erf", "loss": "cauchy", "gamma": 0.5}
        one, other = (Problem(**common, cauchy_scale=scale) for scale in (0.3, 0.6))
        assert one.criterion.numbers == (0.3,)
        risks = [simulate(problem, "sgd_chain", times=[1.0], seeds=[0]).risk.item() for problem in (one, other)]
        assert risks[0] != risks[1]
