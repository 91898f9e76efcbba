"""The `reads` of every registered dynamics: they contain every field that changes its numbers, and no other."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sweeplib
from sweeplib import DYNAMICS, OBSERVABLES, InputError, Problem
from sweeplib.commands.starter import write_new
from sweeplib.contracts import dynamics as contract
from sweeplib.contracts.problems import CHANGED, CHANGED_OF, OTHERS, variants
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.networks.dynamics.dynamics import NOISE, OFFSETS
from sweeplib.networks.problem import AVERAGES, DATA, DEFAULTS, PARAMETERS, TAILS, names_with_parts, parameters_of
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.views import OverlapView
from tests.plugged import nothing_left
from tests.tiers import ALONE, slow_among


def case(
    problem: Problem,
    dynamics: str,
    observables: tuple[str, ...],
    pair_by: tuple[str, ...] | None = (),
    thresholds: tuple[float, ...] = (0.01,),
) -> Case:
    """Return a case with the same samples as all others: numbers then differ by the fields read, not by the stream."""
    cheaper = {"dmft": (("paths", 2**15),), "nonlinear_dynamics": (("particles", 64),)}
    options = cheaper.get(dynamics, ())
    return Case(problem, dynamics, 0, Recording((0.0, 0.5), thresholds, observables), options=options, pair_by=pair_by)


def numbers(one: Case) -> dict[str, np.ndarray]:
    return run_cases([one]).data


def same(one: Case, other: Case) -> bool:
    """Return whether all recorded numbers of two cases agree to the bit."""
    first, second = numbers(one), numbers(other)
    return all(np.array_equal(first[name], second[name], equal_nan=True) for name in first | second)


def built_in() -> list[str]:
    return sorted(name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib."))


def test_every_field_is_tried() -> None:
    assert OTHERS.keys() == set(PARAMETERS)


def needs_teacher(observable: str) -> bool:
    known = OBSERVABLES[observable]
    return known.needs_teacher or "teacher" in known.dims_of(OverlapView)


def suited(problem: Problem, dynamics: str, *kept: str) -> Problem:
    """Return the problem as the dynamics takes it, without what it does not read, but for fields that are kept."""
    candidates = variants(contract.readable(dynamics, problem, *kept))
    return next(each for each in candidates if not refused(case(each, dynamics, ()), *kept))


def refused(one: Case, *kept: str) -> bool:
    """Return whether a case is refused for another reason than a field that is kept."""
    try:
        one.check()
    except InputError as refusal:
        return refusal.key not in kept
    return False


def pair(field: str, dynamics: str) -> tuple[Problem, Problem]:
    """Return two problems that differ in a field; the dynamics takes both if it reads the field."""
    if acts_on(dynamics, field) or field not in DEFAULTS:
        return next(contract.pairs(dynamics, field))
    of_law = ("data", *parameters_of("data")) if field in parameters_of("data") else ()
    of_parts = OF_STEPS | dict.fromkeys(parameters_of("tasks"), ("tasks", *parameters_of("tasks")))
    kept = ({"sampling": ("samples",), "huber_delta": ("loss",), "outlier_scale": ("outlier_share",)} | of_parts).get(
        field, of_law
    )
    # a loss with which noise is more than its variance is one more field, refused before it
    base = {name: dataclasses.replace(CHANGED_OF[name], loss="square") for name in TAILS}.get(
        field, CHANGED_OF.get(field, CHANGED)
    )
    one = suited(base, dynamics, *kept)
    if field == "data":
        return one, suited(CHANGED_OF["contrast"], dynamics, "data", "contrast")
    if field == "tasks":
        return one, CHANGED_OF["switch_time"]
    return one, dataclasses.replace(one, **{field: OTHERS[field]})


SPECTRA = {name for law in DATA.values() if law.has_spectrum for name in law.parameter_names}
"""The parameters of data laws with several eigenvalues, which particles do not take."""


TURNS = {"tasks", *parameters_of("tasks")}


def acts_on(dynamics: str, field: str) -> bool:
    if field in SPECTRA:
        return dynamics == "sgd" or DYNAMICS[dynamics].takes_spectra
    return field in names_with_parts(DYNAMICS[dynamics].reads)


OF_STEPS = dict.fromkeys(parameters_of("update"), ("update",))
ELSEWHERE = [*(("overlap_map", field) for field in ("update", *OF_STEPS)), ("sde", "huber_delta")]
ELSEWHERE += [("ode", "spectral_ridge")]
"""Steps of the map are in `unit/test_map_of_updates.py`; the SDE has one loss, the ODE no ridge."""
WITHIN = {"sampling": "samples", "huber_delta": "loss", "outlier_scale": "outlier_share"}
WITHIN |= dict.fromkeys(OF_STEPS, "update")
WITHIN |= dict.fromkeys(parameters_of("data"), "data")
WITHIN |= dict.fromkeys(parameters_of("tasks"), "tasks")
"""Fields that are nothing without another one."""
OBSERVED = sorted(parameters_of("observables"))
OF_OVERLAPS = [name for name in built_in() if issubclass(DYNAMICS[name].view, OverlapView)]
REFUSED = [
    (name, field)
    for name in built_in()
    for field in DEFAULTS
    if not (acts_on(name, field) or field in OBSERVED or (field in SPECTRA and "data" in DYNAMICS[name].reads))
]
for _dynamics in ("dmft", "training_flow"):
    for _name in NOISE - {"temperature"}:
        REFUSED.remove((_dynamics, _name))  # a training set, which they need, refuses these
    REFUSED.remove((_dynamics, "sampling"))  # the choice of batches is nothing to a full batch, which has one


def tier(name: str, field: str) -> Any:
    """Return the mark of a test whose kernels no other test needs."""
    if field == "teacher_activation":
        return pytest.mark.long
    batches = name in ("sgd", "sgd_chain") and field in ("batch_size", "repeats")
    without_variance = name == "gradient_flow" and field in ("keep_probability", "replay", "target")
    by_nodes = name == "ode" and field in ("update", "clip_norm", "huber_delta", "labels")
    return pytest.mark.slow if batches or without_variance or by_nodes or name in ALONE else ()


ACCEPTED = [
    pytest.param(name, field, marks=tier(name, field))
    for name in built_in()
    for field in PARAMETERS
    if acts_on(name, field) and (name, field) not in ELSEWHERE
]


@pytest.mark.parametrize(("dynamics", "field"), ACCEPTED)
def test_numbers_change_with_what_is_read(dynamics: str, field: str) -> None:
    """Those of the motion, whatever the observables read; and the risk, with the identity."""
    contract.its_numbers_change_with_a_field_that_it_reads(dynamics, field)
    thresholds: tuple[float, ...] = () if field in {"data", "contrast", *SPECTRA, *OFFSETS, *TURNS} else (0.01,)
    problems = pair(field, dynamics)
    of_all = ("average_M",) if field in AVERAGES else ("risk",)  # no step depends on averages
    observables = () if field in ("data", "contrast") and needs_teacher("risk") else of_all
    one, other = (case(problem, dynamics, observables, thresholds=thresholds) for problem in problems)
    assert not same(one, other)
    assert one.identity() != other.identity()


UNREAD = [(name, field) for name in built_in() for field in PARAMETERS if not acts_on(name, field)]


@pytest.mark.parametrize(("dynamics", "field"), [(name, field) for name, field in UNREAD if field not in DEFAULTS])
def test_numbers_do_not_change_with_what_is_not_read(dynamics: str, field: str) -> None:
    """Of the fields without a default, which no problem is refused for."""
    contract.its_numbers_change_with_a_field_that_it_reads(dynamics, field)


@pytest.mark.parametrize(("dynamics", "field"), REFUSED)
def test_a_field_that_is_not_read_is_refused_unless_it_has_its_default(dynamics: str, field: str) -> None:
    """The message has the value, its default, and the dynamics that act on the field."""
    one, other = pair(field, dynamics)
    if field in WITHIN:  # that without which there is none is refused first
        field, other = WITHIN[field], one
    with pytest.raises(InputError) as caught:
        case(other, dynamics, ("risk",)).check()
    assert caught.value.key == field
    assert caught.value.value == getattr(other, field)
    said = str(caught.value)
    assert f"{dynamics} does not act on {field}" in said
    assert f"expected {json.dumps(DEFAULTS[field])}, its default; or a dynamics that acts on it: " in said
    acting = [name for name, kind in DYNAMICS.items() if field in kind.reads_of(other, kind.Options())]
    assert ", ".join(acting) in said or "none yet" in said


@pytest.mark.parametrize("dynamics", slow_among(built_in(), *ALONE))
def test_samples_are_read_where_seeds_part(dynamics: str) -> None:
    """`pair_by` does not change the results of a dynamics without samples."""
    problem = suited(CHANGED, dynamics)
    one, other = (case(problem, dynamics, ("risk",), pair_by) for pair_by in (("d",), ("d", "gamma")))
    assert same(one, other) == (not DYNAMICS[dynamics].stochastic)
    assert (one.identity() == other.identity()) == (not DYNAMICS[dynamics].stochastic)


@pytest.mark.slow
def test_the_error_of_drifts_that_gradient_flow_does_not_use_is_not_recorded() -> None:
    """Drifts by quadrature have an error; the recorded one leaves out the variance term, which contains Δ."""
    noisy, silent = (
        case(Problem(gamma=0.2, p=1, k=1, d=40, Delta=Delta, activation="relu"), "gradient_flow", ("risk",))
        for Delta in (0.0, 1.0)
    )
    assert "drift_error" in numbers(noisy)
    assert same(noisy, silent)


@pytest.mark.parametrize("field", OBSERVED)
@pytest.mark.parametrize("dynamics", slow_among(OF_OVERLAPS, *set(ALONE) & set(OF_OVERLAPS)))
def test_a_field_of_observables_needs_one_that_reads_it(dynamics: str, field: str) -> None:
    """It changes the observable, and the identity, but not the run."""
    one, other = pair(field, dynamics)
    with pytest.raises(
        InputError, match=r"risk and noise_trace do not act on .*; or an observable that acts on it: refitted"
    ):
        case(other, dynamics, ("risk", "noise_trace")).check()
    cases = [case(problem, dynamics, ("risk", "refitted_risk"), None) for problem in (one, other)]
    first, second = (numbers(each) for each in cases)
    np.testing.assert_array_equal(first["risk"], second["risk"])
    assert (first["refitted_risk"] != second["refitted_risk"]).all()
    assert cases[0].identity() != cases[1].identity()


def test_the_problems_are_derived_from_what_a_dynamics_reads(tmp_path: Path) -> None:
    """A plugin that reads less than the library's dynamics, moved into the library, needs no edit of these tests."""
    write_new("dynamics", tmp_path / "heavy.py")
    with nothing_left():
        load_plugins([str(tmp_path / "heavy.py")])
        for field in PARAMETERS:
            one, other = pair(field, "heavy")
            assert not refused(case(one, "heavy", ()), *([WITHIN[field]] if field in WITHIN else [])), field
            assert refused(case(other, "heavy", ())) != (acts_on("heavy", field) or field not in DEFAULTS)


WITH_A_FIELD = """
import json

from sweeplib import DYNAMICS, InputError, Problem
from sweeplib.networks.simulation import Case, Recording


def refusal(name, inertia, more):
    fields = {"gamma": 8.0, "p": 2, "k": 1, "d": 40, "Delta": 0.1, "activation": "square", "inertia": inertia}
    try:
        Case(Problem(**fields | more), name, 0, Recording((0.5,), (), ())).check()
    except InputError as refused:
        return str(refused)


said = {}
for name in DYNAMICS:
    taken = [more for more in ({}, {"d": 3}, {"batch_size": 80, "samples": 80}) if not refusal(name, 0.0, more)]
    said[name] = refusal(name, 0.9, taken[0])
print(json.dumps(said))
"""


def test_a_field_that_is_new_is_refused_by_every_dynamics(tmp_path: Path) -> None:
    """In a copy of the package with one more line, of which nothing else knows."""
    shutil.copytree(Path(sweeplib.__file__).parent, tmp_path / "sweeplib", ignore=shutil.ignore_patterns("*.nb?"))
    file, last = tmp_path / "sweeplib" / "networks" / "problem" / "base_parameters.py", "    of_parts: "
    text = file.read_text()
    assert text.count(last) == 1
    field = '    inertia: NotNegative = parameter(0.0, "inertia", "", 0.5)\n    """Inertia."""\n'
    file.write_text(text.replace(last, field + last))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WITH_A_FIELD], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert sorted(said) == built_in()
    for name, words in said.items():
        assert words.startswith(f"inertia: {name} does not act on inertia; got 0.9; expected 0.0, its default")
        assert "none yet" in words
