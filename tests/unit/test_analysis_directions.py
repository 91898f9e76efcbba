"""Averages over the seeds, cosines of teacher directions and the steps at which they are learned."""

from dataclasses import replace

import numpy as np
import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.write import analysed
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.outline import planned_outline
from sweeplib.errors import InputError
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.views import OverlapView
from tests.datasets import giant_steps_dataset, with_outcome
from tests.in_process import InProcess

averages, learned = ANALYSES["averages"], ANALYSES["directions_learned"]


def cosines(W, W_star):
    d = W.shape[1]
    Q, M, P = W @ W.T / d, W @ W_star.T / d, W_star @ W_star.T / d
    ones = np.ones((1, len(W)))
    view = OverlapView(Q[None], M[None], P[None], ones, ones[:, : len(W_star)], np.zeros(1), None)
    return OBSERVABLES["subspace_cosine"].function_of(OverlapView)(view)[0]


def test_the_cosine_is_that_of_a_projection_of_the_weights():
    rng = np.random.default_rng(0)
    W, W_star = rng.standard_normal((3, 12)), rng.standard_normal((2, 12))
    basis = np.linalg.qr(W.T)[0]
    expected = np.linalg.norm(W_star @ basis, axis=1) / np.linalg.norm(W_star, axis=1)
    np.testing.assert_allclose(cosines(W, W_star), expected, rtol=1e-12)


@pytest.mark.parametrize("lengths", [(1e7, 1.0, 1e-6), (240.0, 1.0, 0.0045), (15.9, 1.0, 0.063)])
def test_short_rows_have_directions_too(lengths: tuple[float, ...]):
    rng = np.random.default_rng(2)
    W, W_star = rng.standard_normal((3, 12)), rng.standard_normal((2, 12))
    short = np.array(lengths)[:, None] * W
    np.testing.assert_allclose(cosines(short, W_star), cosines(W, W_star), rtol=1e-9)


def test_units_that_agree_or_vanish_add_no_direction():
    rng = np.random.default_rng(1)
    W, W_star = rng.standard_normal((2, 9)), rng.standard_normal((2, 9))
    one = cosines(W[:1], W_star)
    np.testing.assert_allclose(cosines(np.vstack([W[:1], -2.0 * W[:1], 0.0 * W[:1]]), W_star), one, rtol=1e-9)
    np.testing.assert_array_equal(cosines(0.0 * W, W_star), [0.0, 0.0])
    np.testing.assert_allclose(cosines(np.vstack([W_star, W]), W_star), [1.0, 1.0])
    with np.errstate(invalid="ignore"):
        assert np.isnan(cosines(np.inf * W[:1], W_star)).all()


def test_averages_are_means_with_standard_errors():
    ds = giant_steps_dataset()
    found = averages(ds)
    np.testing.assert_allclose(found.subspace_cosine, ds.subspace_cosine.mean("seed"))
    np.testing.assert_allclose(found.risk_error, ds.risk.std("seed", ddof=1) / np.sqrt(8))
    assert found.teacher.values.tolist() == [1, 2, 3]
    assert found.steps.values.tolist() == list(range(7))
    assert (found.runs == 8).all()


def test_averages_of_one_seed_have_no_error():
    found = averages(giant_steps_dataset(seeds=1))
    assert found.risk.notnull().all()
    assert found.risk_error.isnull().all()


def test_averages_are_not_taken_where_runs_are_lost():
    ds = giant_steps_dataset()
    found = averages(with_outcome(ds, "failed", (ds.seed == 3) & (ds.batch_size == 10)))
    assert found.risk.sel(batch_size=10).isnull().all()
    assert found.subspace_cosine.sel(batch_size=10).isnull().all()
    assert found.risk.sel(batch_size=[1, 100, 1000]).notnull().all()


def test_there_must_be_something_to_average():
    with pytest.raises(InputError, match="no such observable is recorded"):
        averages(giant_steps_dataset().drop_vars(["risk", "subspace_cosine"]))


def test_directions_are_learned_at_their_steps():
    found = learned(giant_steps_dataset())
    for r in (1, 2):
        assert (found.learned_steps_median.sel(teacher=r) == r).all()
        assert (found.learned_fraction.sel(teacher=r) == 1.0).all()
    never = found.sel(teacher=3)
    assert never.learned_steps_median.isnull().all()
    assert (never.learned_fraction == 0.0).all()
    assert (never.learned_fraction_high > 0.2).all()
    assert (never.seeds_censored == 8).all()


def test_a_single_direction_and_a_single_seed():
    found = learned(giant_steps_dataset(directions=1, seeds=1))
    assert found.learned_fraction.squeeze("teacher").values.tolist() == [[0.0] * 4] * 2
    assert (
        learned(giant_steps_dataset(directions=1), threshold=0.01).learned_steps_median.squeeze().values.tolist()
        == [[0.0] * 4] * 2
    )


def test_diverged_runs_never_learn_a_direction_and_lost_runs_leave_no_statistics():
    ds = giant_steps_dataset()
    gone = ds.seed < 4
    diverged = with_outcome(ds, "diverged", gone).assign(
        subspace_cosine=ds.subspace_cosine.where(~gone | (ds.time < 2))
    )
    found = learned(diverged)
    assert (found.learned_fraction.sel(teacher=1) == 1.0).all()
    assert (found.learned_fraction.sel(teacher=2) == 0.5).all()
    killed = learned(with_outcome(ds, "killed", ds.seed == 0))
    assert killed.learned_fraction.isnull().all()
    assert (killed.seeds_used == 0).all()


def test_runs_that_time_out_are_censored_where_they_stop():
    """Half of the runs are seen up to step 1 only: of direction 2, the others represent them."""
    ds = giant_steps_dataset()
    late = ds.seed < 4
    seen = with_outcome(ds, "timeout", late).assign(subspace_cosine=ds.subspace_cosine.where(~late | (ds.time < 2)))
    found = learned(seen)
    assert (found.learned_fraction.sel(teacher=2) == 1.0).all()
    assert (found.learned_steps_median.sel(teacher=2) == 2).all()
    assert (found.seeds_censored.sel(teacher=2) == 4).all()


SWEEP = """\
problem: {p: 2, d: 40, Delta: 0, stride: 2}
grid: {batch_size: [1, 8], zip: [{activation: [relu, erf], k: [1, 2]}]}
derive: {gamma: stride * p * d}
seeds: 3
dynamics: [sgd_chain]
times: {values: [0, 1, 2], scale: stride}
observables: [subspace_cosine]
figures: {learned: {kind: line, x: steps, panel: activation, hue: teacher, where: {batch_size: 8}}}
analyses: [directions_learned]
"""


def test_runs_that_stop_at_their_exits_are_refused(tmp_path):
    """Before anything runs, and of a dataset that does not say so."""
    (tmp_path / "sweep.yaml").write_text(SWEEP + "thresholds: [0.9]\nstop: exit\n")
    with pytest.raises(InputError, match=r"directions_learned: runs stop at their exits.*expected `stop: end`"):
        load(tmp_path / "sweep.yaml")
    ds = giant_steps_dataset()
    stopped = ds.assign(subspace_cosine=ds.subspace_cosine.where((ds.time < 4) | (ds.seed > 2)))
    with pytest.raises(InputError, match="directions_learned needs what they do later"):
        learned(stopped)
    assert learned(stopped.assign_attrs(stop="end")).learned_fraction.notnull().any()


@pytest.mark.rest
def test_problems_of_several_teacher_widths_share_a_dataset(tmp_path):
    """The axes keep the order of the config, and directions that a problem does not have are missing."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    sweep = load(tmp_path / "sweep.yaml")
    assert list(planned_outline(sweep, groups=True).axes["teacher"]) == [0, 1]
    run_sweep(replace(sweep, cluster=InProcess(block_size=100)), tmp_path, progress=False)
    finalise(sweep, tmp_path)
    found, known = (analysed(sweep, name, tmp_path) for name in ("averages", "directions_learned"))
    assert found.activation.values.tolist() == ["relu", "erf"]
    there = found.subspace_cosine.notnull().all(("dynamics", "batch_size", "time"))
    assert there.transpose("activation", ...).values.tolist() == [[True, False], [True, True]]
    assert found.steps.values.tolist() == [0, 1, 2]
    used = known.seeds_used.transpose("activation", "batch_size", "dynamics", "teacher").squeeze("dynamics")
    assert used.values.tolist() == [[[3, 0]] * 2, [[3, 3]] * 2]
