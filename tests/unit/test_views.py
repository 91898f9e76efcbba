"""Views and what depends on them: incomplete plugins, particles of any number, hypotheses of theory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sweeplib import InputError, Problem, SweeplibError, simulate
from sweeplib.analysis.kit.information import information_exponents, largest_exponent
from sweeplib.analysis.kit.overlaps import open_with_overlaps
from sweeplib.analysis.kit.phase_retrieval import escape_theory_holds, exit_theory_holds, floor_theory_holds
from sweeplib.analysis.kit.problem_fields import one_pass_committee
from sweeplib.config import load
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.outline import outline_of, planned_outline
from sweeplib.networks.dynamics import DYNAMICS, ONE_PASS, Dynamics, OverlapDynamics
from sweeplib.networks.observables import OBSERVABLES, Observable
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.views import OverlapView, ParticleView
from tests.datasets import sweep_dataset
from tests.in_process import InProcess
from tests.plugged import nothing_left, written

OWN = Path(__file__).parents[1] / "workflow" / "own"
PROBLEM = Problem(gamma=0.1, p=2, k=1, d=30, Delta=0.0, activation="square")
DUST = """
from particles import Cloud
from sweeplib.networks.dynamics import DYNAMICS


class Dust(Cloud):
    \"\"\"As many particles as the input has dimensions.\"\"\"

    name = "dust"
    label = "Dust"

    def __init__(self, replicas, options):
        super().__init__(replicas, options.model_copy(update={"particles": int(replicas.d[0])}))

    @classmethod
    def sizes(cls, problem, options):
        return super().sizes(problem, options) | {"student": problem.d}


DYNAMICS.register("dust", Dust)
"""
SWEEP = """
problem: {p: 2, k: 1, Delta: 0, activation: square}
grid: {gamma: [0.1, 0.2], d: [4, 6]}
seeds: 2
dynamics: {dust: {}, cloud: {particles: 3}}
times: [0, 1]
observables: [student_norm, overlap_P]
plugins: [dust.py]
"""


@pytest.fixture
def plugins(tmp_path):
    with nothing_left():
        written(tmp_path / "dust.py", DUST)
        written(tmp_path / "particles.py", (OWN / "particles.py").read_text())
        yield tmp_path


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({}, "dynamics 'bare' must name the fields of a problem that it acts on: `reads = "),
        ({"reads": ("gamma",)}, "dynamics 'bare' must name the fields"),
        ({"reads": frozenset({"gama"})}, "dynamics 'bare' reads no field of a problem; got 'gama'"),
        (
            {"reads": ONE_PASS, "name": "bare", "label": "Bare", "work": None, "advance": None, "look": None},
            "dynamics 'bare': the class Bare lacks `end_steps`, `exit_steps`, `replicas_at_once`, `view`",
        ),
    ],
)
def test_a_dynamics_that_does_not_say_what_it_acts_on_is_refused(attributes, said):
    with pytest.raises(SweeplibError) as caught, nothing_left():
        DYNAMICS.register("bare", type("Bare", (Dynamics,), attributes))
    assert str(caught.value).startswith(said)
    assert "bare" not in DYNAMICS


def test_a_plugin_that_does_not_say_it_is_refused_in_one_line(tmp_path):
    text = "from sweeplib.plugins import DYNAMICS, OverlapDynamics\n\nDYNAMICS.register('mute', OverlapDynamics)\n"
    with pytest.raises(InputError) as caught, nothing_left():
        load_plugins([written(tmp_path / "mute.py", text)])
    assert "dynamics 'mute' must name the fields of a problem that it acts on" in str(caught.value)
    assert "(mute.py, line 3)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_observable_that_a_dynamics_does_not_have_is_refused(plugins):
    load_plugins([str(plugins / "dust.py")])
    with pytest.raises(InputError) as caught:
        simulate(PROBLEM, "cloud", times=[0.0], observables=["student_norm", "risk"])
    said = str(caught.value)
    assert said.startswith(
        "observables: cloud has no such observable; got 'risk'; expected for risk one of these dynamics: "
    )
    named, _, own = said.partition("these dynamics: ")[2].partition("; or of cloud: ")
    assert own.startswith("norm_quantiles, offset, overlap_M, ")
    dynamics = named.split(", ")
    assert {"gradient_flow", "ode", "sde", "sgd", "sgd_chain"} < {*dynamics, "a plugin's"}


def test_cases_of_other_sizes_are_not_run_together(plugins):
    load_plugins([str(plugins / "dust.py")])
    recording = Recording((0.0,), (), ("student_norm",))
    shapes = {Case(replace(PROBLEM, d=d), "dust", 0, recording).shape for d in (4, 6)}
    assert len(shapes) == 2


@pytest.mark.rest
def test_dynamics_of_other_numbers_of_particles_share_a_dataset(plugins):
    """At one (p, k) there are 4 or 6 particles, by d, or 3; entries beyond a dynamics' own number are missing."""
    written(plugins / "sweep.yaml", SWEEP)
    sweep = replace(load(plugins / "sweep.yaml"), cluster=InProcess(block_size=100))
    run_sweep(sweep, plugins, progress=False)
    finalise(sweep, plugins)
    ds = open_with_overlaps(plugins / "dataset.zarr")
    assert ds.sizes["student"] == 6
    there = ds.largest_m.isel(time=0, gamma=0, seed=0).notnull().sum("student")
    assert there.sel(dynamics="dust").values.tolist() == [4, 6]
    assert there.sel(dynamics="cloud").values.tolist() == [3, 3]
    assert ds.student_norm.notnull().all()
    assert planned_outline(sweep, groups=True).variables == outline_of(ds).variables


def test_an_observable_of_other_dimensions_in_two_dynamics_is_refused(tmp_path, monkeypatch):
    functions = {OverlapView: lambda now: now.M, ParticleView: lambda now: now.q}
    dims = {OverlapView: ("student", "teacher"), ParticleView: ("student",)}
    monkeypatch.setitem(OBSERVABLES._things, "uneven", Observable("uneven", functions, dims, "uneven", "u"))
    both = SWEEP.replace("{dust: {}, cloud: {particles: 3}}", "[sgd, mean_field]").replace("plugins: [dust.py]\n", "")
    written(tmp_path / "sweep.yaml", both.replace("student_norm, overlap_P", "uneven"))
    with pytest.raises(InputError, match=r"one variable along \(student, teacher\) for sgd and \(student\) for mean_"):
        load(tmp_path / "sweep.yaml")
    written(tmp_path / "sweep.yaml", both.replace("student_norm", "overlap_M, second_layer"))
    assert load(tmp_path / "sweep.yaml").recording.observables[:2] == ("overlap_M", "second_layer")


def test_sgd_has_the_same_numbers_with_its_overlaps_in_memory_and_without():
    """With a threshold it carries Q from step to step."""
    on_sphere = Problem(gamma=0.1, p=3, k=1, d=40, Delta=0.1, activation="square", spherical=True)
    names = ["student_norm", "overlap_Q", "overlap_M", "risk"]
    without, carried = (
        simulate(on_sphere, "sgd", times=[0.0, 1.0], thresholds=some, observables=names) for some in ((), (0.999,))
    )
    for name in names:
        np.testing.assert_allclose(without[name], carried[name], rtol=1e-12, atol=1e-14)


def test_the_views_of_built_in_dynamics_name_their_dimensions():
    assert issubclass(DYNAMICS["ode"], OverlapDynamics)
    for view in (OverlapView, ParticleView):
        assert set(view.sizes(PROBLEM)) == set(view.dims)
    assert OBSERVABLES["overlap_M"].dims_of(ParticleView) == ("student", "teacher")


@pytest.mark.rest
@pytest.mark.parametrize("field", [{"target": "lam1*lam2"}, {"batch_size": 4}, {"samples": 100}])
def test_theory_is_silent_of_other_targets_and_samplings(field):
    ds = sweep_dataset(seeds=2).isel(time=slice(2))
    other = ds.assign_attrs(field)
    assert one_pass_committee(ds).all() and floor_theory_holds(ds).any()
    for holds in (one_pass_committee, floor_theory_holds, escape_theory_holds, exit_theory_holds):
        assert not holds(other).any()
    known = "target" not in field
    assert bool(information_exponents(other).notnull().all()) == known
    assert np.isfinite(largest_exponent(outline_of(other))) == known
