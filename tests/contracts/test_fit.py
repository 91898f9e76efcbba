"""A sweep that does not fit is refused when its config is loaded, and no other sweep is refused.

Each figure and analysis is tested on some sweeps, all of which are run: loading must give the message of the run.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import matplotlib.figure
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.overlaps import open_with_overlaps
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.engine.storage.dataset.outline import outline_of, planned_outline
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from tests.in_process import InProcess

pytestmark = pytest.mark.slow

SWEEPS = {
    "a scan of the learning rate": """
problem: {p: 1, k: 1, activation: square, spherical: true}
grid: {d: [20, 40, 80], Delta: [0, 1], gamma: {linspace: [0.03, 0.14, 5]}}
seeds: 3
dynamics: [sgd_chain, ode]
times: {linspace: [0, 2, 3]}
thresholds: [0.1]
""",
    "exponents": """
problem: {k: 1, Delta: 0, activation: erf, gamma0: 0.5}
grid: {d: [10, 20], delta: [0, 1], kappa: [0, 0.5]}
derive: {gamma: gamma0 * d**-delta, p: round(d**kappa)}
seeds: 3
dynamics: {sgd_chain: {}, ode: {}, gradient_flow: {}}
times: {values: [0, 1, 2], scale: p/gamma}
observables: [risk, student_norm, overlap_M]
""",
    "one problem": """
problem: {p: 2, k: 1, d: 20, Delta: 0, gamma: 0.1, activation: erf}
seeds: 2
dynamics: [ode]
times: [0, 1]
""",
    "no risk": """
problem: {p: 2, k: 1, Delta: 0, activation: erf}
grid: {gamma: [0.1, 0.2], d: [10, 20]}
seeds: 3
dynamics: [ode, sgd_chain]
times: [0, 1]
observables: [overlap_P]
""",
    "norms": """
problem: {k: 1, Delta: 0, activation: square, gamma: 0.1}
grid: {d: [8, 12], p: [2, 4]}
seeds: 3
dynamics: [sgd, mean_field]
times: [0, 0.1]
observables: [risk, norm_quantiles, overlap_M, self_overlap]
""",
    "limits": """
problem: {k: 1, Delta: 0, activation: erf}
grid: {gamma: [0.1, 0.5], d: [10, 20], p: [1, 2]}
seeds: 3
dynamics: [sgd_chain, gradient_flow, ode]
times: [0, 1]
""",
    "batches": """
problem: {p: 2, k: 2, d: 20, Delta: 0, gamma: 1, activation: erf}
grid: {batch_size: [1, 2, 4]}
seeds: 3
dynamics: [sgd]
times: [0, 0.1, 0.2]
thresholds: [0.01]
observables: [subspace_cosine]
""",
    "schedules": """
problem: {p: 1, k: 1, d: 20, Delta: 0.1, gamma: 1, activation: linear, m0: 0}
grid: {schedule: [1/(1 + t), optimal(2)]}
seeds: 2
dynamics: [sgd_chain, ode]
times: [0, 1]
""",
    "tasks": """
problem: {p: 2, k: 2, d: 20, Delta: 0, gamma: 0.5, activation: erf, tasks: in_turn, switch_time: 1}
grid: {task_overlap: [0, 0.5]}
seeds: 3
dynamics: [sgd_chain, ode]
times: [0, 1, 2, 3]
observables: [risk_of_task, risk]
""",
    "blocks of inputs": """
problem: {p: 1, k: 1, d: 20, Delta: 0, gamma: 0.5, activation: linear, data: power_law, exponent: 1}
grid: {bins: [2, 4]}
seeds: 3
dynamics: [ode]
times: [0, 1, 2, 3]
observables: [risk_of_block]
""",
    "many axes of many values": """
problem: {activation: erf, k: 1}
grid: {gamma: [0.1, 0.2], Delta: {linspace: [0, 1, 7]}, p: [1, 2], d: [9, 10]}
seeds: 2
dynamics: [sgd_chain, gradient_flow, ode]
times: [0, 0.1]
thresholds: [0.5]
""",
}


INNER = {"time", "knot", "student", "student_2", "teacher", "teacher_2", "task", "block"}


@dataclass(frozen=True)
class Made:
    """Return a config, and the dataset of its sweep."""

    config: Path
    directory: Path

    def loads(self, extra: str) -> InputError | None:
        """Return whether the config with these lines is accepted, and the message if not."""
        config = self.config.with_name("asked.yaml")
        config.write_text(self.config.read_text() + extra)
        try:
            load(config)
        except InputError as refusal:
            return refusal
        return None

    @cached_property
    def datasets(self) -> dict[bool, xr.Dataset]:
        """Return the dataset without and with overlap matrices."""
        path = self.directory / "dataset.zarr"
        return {False: open_dataset(path).load(), True: open_with_overlaps(path).load()}

    @cached_property
    def analyses(self) -> dict[str, xr.Dataset | InputError]:
        """Return the result of each analysis, or its message."""
        return {name: self._done(name) for name in ANALYSES}

    def _done(self, name: str) -> xr.Dataset | InputError:
        try:
            return ANALYSES[name](self.datasets[ANALYSES[name].overlaps])
        except InputError as refusal:
            return refusal

    def drawn(self, name: str) -> bool:
        """Return whether the figure, and the analyses that it needs, can be made from the dataset."""
        analyses = {need: self.analyses[need] for need in FIGURES[name].needed({})}
        if any(isinstance(analysis, InputError) for analysis in analyses.values()):
            return False
        try:
            FIGURES[name](self.datasets[False], analyses)
        except InputError:
            return False
        return True


@pytest.fixture(scope="module", autouse=True)
def unfitted():
    """Drawings are not fitted to a page: fitting takes most of their time and refuses nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sweeplib.pictures.figures.kit.fit.fitted", lambda drawing: drawing)
        yield


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    return {name: made(text, tmp_path_factory.mktemp("fit")) for name, text in SWEEPS.items()}


def made(text: str, directory: Path) -> Made:
    config = directory / "sweep.yaml"
    config.write_text(text)
    sweep = replace(load(config), cluster=InProcess(block_size=500))
    run_sweep(sweep, directory, progress=False)
    finalise(sweep, directory)
    return Made(config, directory)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_refused_at_load_or_drawn(name, every):
    found = set()
    for words, sweep in every.items():
        refused = sweep.loads(f"figures: [{name}]")
        assert sweep.drawn(name) == (refused is None), (words, refused)
        found.add(refused is None)
        if refused is not None:
            assert refused.key.startswith(f"figures.{name}")
            assert "\n" not in str(refused)
            assert "asked.yaml:" in str(refused)
    assert found == {True, False}, "no sweep above fits it, or none does not"


@pytest.mark.parametrize("name", ANALYSES)
def test_an_analysis_is_refused_at_load_or_done(name, every):
    found = set()
    for words, sweep in every.items():
        refused = sweep.loads(f"analyses: [{name}]")
        assert isinstance(sweep.analyses[name], xr.Dataset) == (refused is None), (words, refused)
        found.add(refused is None)
        assert refused is None or refused.key.startswith(f"analyses.{name}")
    assert found == {True, False}, "no sweep above fits it, or none does not"


def test_the_outline_of_a_plan_is_that_of_its_dataset(every):
    for sweep in every.values():
        for overlaps in (False, True):
            plan = planned_outline(load(sweep.config), groups=overlaps)
            known = outline_of(sweep.datasets[overlaps])
            assert plan.variables == known.variables
            assert set(plan.axes) == set(known.axes)
            for axis in set(plan.axes) - INNER | {"time"}:
                assert list(plan.axes[axis]) == list(known.axes[axis]), axis
            assert plan.attrs.items() <= known.attrs.items()


@pytest.mark.parametrize("name", ANALYSES)
def test_the_outline_of_an_analysis_is_that_of_its_result(name, every):
    analysis = ANALYSES[name]
    for words, sweep in every.items():
        if isinstance(sweep.analyses[name], InputError):
            continue
        known = outline_of(sweep.datasets[analysis.overlaps])
        foreseen, found = analysis.outlined(known, {}), outline_of(sweep.analyses[name])
        assert foreseen is not None
        for axis, values in foreseen.axes.items():
            assert list(values) == list(found.axes[axis]), (words, axis)
        assert {axis for axis in found.axes if axis in known.axes} - set(foreseen.axes) <= INNER
        for variable in foreseen.variables.keys() & found.variables.keys():
            assert set(foreseen.variables[variable]) == set(found.variables[variable]), variable


def test_a_plugin_without_a_check_is_loaded(every, tmp_path, monkeypatch):
    """The options of such a plugin are still checked, by their annotations."""
    from sweeplib.pictures.figures.figure import Figure

    def bare(ds, analyses, *, width: float = 1.0, odd: "Unknown" = None):  # noqa: F821
        return matplotlib.figure.Figure()

    monkeypatch.setitem(FIGURES._things, "bare", Figure("bare", bare, "Nothing."))
    sweep = every["one problem"]
    assert sweep.loads("figures: {bare: {width: 2, odd: [1]}}") is None
    assert "figures.bare.width: not a valid option" in str(sweep.loads("figures: {bare: {width: wide}}"))
