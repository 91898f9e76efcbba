"""Activations by name: registered ones and Hermite series, alone and in problems, configs and datasets."""

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.errors import InputError, UnknownNameError
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.hermite import hermite_polynomials, hermite_series
from sweeplib.networks.problem import Problem
from tests.in_process import InProcess

GOOD = {"gamma": 0.1, "p": 1, "k": 1, "d": 50, "Delta": 0.1}
Z = np.linspace(-3.0, 3.0, 13)


@pytest.mark.parametrize("spelling", ["hermite(0,1,0.5)", " hermite ( 0.0 ,1e0, .50, 0) ", "hermite(-0, +1, 5e-1)"])
def test_spelling_does_not_matter(spelling):
    assert activation(spelling) is activation("hermite(0, 1, 0.5)")
    assert activation(spelling).name == "hermite(0, 1, 0.5)"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("hermite", "hermite(c0, c1, ...) with finite numbers"),
        ("hermit(0, 1)", "unknown activation"),
        ("sqaure", "did you mean 'square'"),
        ("hermite()", "hermite(c0, c1, ...) with finite numbers"),
        ("hermite(0, 1", "hermite(c0, c1, ...) with finite numbers"),
        ("hermite(0, one)", "hermite(c0, c1, ...) with finite numbers"),
        ("hermite(0, 1,)", "hermite(c0, c1, ...) with finite numbers"),
        ("hermite(0, nan)", "hermite(c0, c1, ...) with finite numbers"),
        ("hermite(0, -inf)", "hermite(c0, c1, ...) with finite numbers"),
        ("hermite(3)", "a coefficient beyond the constant"),
        ("hermite(3, 0, 0)", "a coefficient beyond the constant"),
        ("hermite(0, 0, 0, 0, 0, 0, 0, 0, 0, 1)", "at most 8"),
    ],
)
def test_what_is_no_activation_is_refused_in_one_line(name, told):
    with pytest.raises(InputError) as caught:
        Problem(**GOOD, activation=name)
    message = str(caught.value)
    assert message.startswith("activation: ")
    assert told in message
    assert "\n" not in message


def test_an_unknown_name_is_an_unknown_name():
    with pytest.raises(UnknownNameError, match=r"erf.*hermite\(c0, c1, \.\.\.\).*square"):
        activation("nothing like it")


@pytest.mark.parametrize("degree", range(1, 7))
def test_hermite_polynomials_are_the_normalised_ones(degree):
    he = activation(f"he{degree}")
    np.testing.assert_allclose([he.value(z) for z in Z], hermite_polynomials(Z, degree)[degree], rtol=1e-12, atol=1e-13)
    assert he.information_exponent == degree


@pytest.mark.parametrize("coefficients", [(0.0, 0.0, 1.0, 0.5), (1.0, -2.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.1)])
def test_a_series_is_the_sum_of_its_terms(coefficients):
    series = activation(f"hermite{coefficients}")
    degree = len(coefficients) - 1
    np.testing.assert_allclose([series.value(z) for z in Z], coefficients @ hermite_polynomials(Z, degree), rtol=1e-11)
    slopes = [series.derivative(z) for z in Z]
    weights = [c * math.sqrt(n) for n, c in enumerate(coefficients)][1:]
    np.testing.assert_allclose(slopes, weights @ hermite_polynomials(Z, degree - 1), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(hermite_series(series.value, degree).coefficients, coefficients, atol=1e-11)
    assert series.information_exponent == next(n for n, c in enumerate(coefficients) if n and c)
    assert series.hermite == coefficients


def test_problems_that_differ_in_spelling_are_the_same():
    one, other = (Problem(**GOOD, activation=name) for name in ("hermite(0,1)", "hermite(0.0, 1, 0)"))
    assert one == other
    assert one.canonical() == other.canonical()
    assert one.activation == one.teacher == "hermite(0, 1)"
    said_aloud = Problem(**GOOD, activation="hermite(0, 1)", teacher_activation="hermite(0,1.0)")
    assert said_aloud.text == one.text != Problem(**GOOD, activation="hermite(0, 1.1)").text


@pytest.mark.rest
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain", "ode"])
def test_a_series_is_simulated(dynamics):
    """A linear student of a linear teacher has R = (Q − 2M + P)/2, and learns."""
    problem = Problem(**GOOD, activation="hermite(0, 1)")
    names = ["risk", "overlap_Q", "overlap_M", "overlap_P"]
    ds = sweeplib.simulate(problem, dynamics, times=[0.0, 3.0], seeds=range(2), observables=names)
    Q, M, P = (ds[name].values[..., 0, 0] for name in names[1:])
    np.testing.assert_allclose(ds.risk, 0.5 * (Q - 2.0 * M + P[:, None]), rtol=1e-9, atol=1e-12)
    assert (ds.risk[:, 1] < 0.1 * ds.risk[:, 0]).all()


CONFIG = """\
name: series
problem: {gamma: 0.1, p: 1, k: 1, d: 20, Delta: 0.1, teacher_activation: "hermite(0, 0, 1)"}
grid:
  activation: [square, "hermite(0, 0, 1)"]
dynamics: {ode: {}}
seeds: 2
times: [1]
"""


@pytest.mark.rest
def test_series_are_values_and_axes_of_a_sweep(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(CONFIG)
    sweep = dataclasses.replace(load(path), cluster=InProcess(block_size=4))
    run_sweep(sweep, tmp_path, progress=False)
    ds = xr.open_zarr(finalise(sweep, tmp_path), chunks=None)
    assert ds.activation.values.tolist() == ["square", "hermite(0, 0, 1)"]
    assert ds.teacher_activation == "hermite(0, 0, 1)"
    problem = Problem(**{**GOOD, "d": 20}, activation="hermite(0, 0, 1)")
    alone = sweeplib.simulate(problem, "ode", times=[1.0], seeds=range(2))
    np.testing.assert_array_equal(ds.risk.sel(activation="hermite(0, 0, 1)", dynamics="ode"), alone.risk)


def test_a_wrong_series_of_a_config_is_told_with_its_place(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(CONFIG.replace("[square,", '["hermite(0)",'))
    with pytest.raises(
        InputError, match=r"sweep\.yaml:4: grid\.activation\[0\]: a constant activation.*'hermite\(0\)'"
    ):
        load(path)


def test_equal_series_have_one_compiled_form():
    one, other = expectations("hermite(0, 1)"), expectations("hermite(0,1.0)")
    assert (one.risk, one.drifts) == (other.risk, other.drifts)


@pytest.mark.rest
def test_problems_are_light():
    """Reading a config needs no compiler."""
    code = "import sys, sweeplib.networks.problem; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
