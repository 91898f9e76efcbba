"""The driver: the identity of cases, the records, the end of runs."""

import dataclasses
import inspect

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib import InputError, Overlaps, Problem
from sweeplib.engine.status import Status
from sweeplib.networks.maths.overlaps import matrix_of
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.simulation.sample_keys import samples_key
from sweeplib.networks.views import OverlapView

RETRIEVAL = Problem(gamma=0.08, p=1, k=1, d=200, Delta=0.1, activation="square", spherical=True)
COMMITTEE = Problem(gamma=0.5, p=2, k=2, d=50, Delta=0.1, activation="erf")
STEPPERS = ["sgd", "sgd_chain"]


def case(problem=RETRIEVAL, dynamics="sgd_chain", seed=0, **changes):
    recording = Recording(**{"times": (0.0, 0.1, 0.2), "thresholds": (0.01,), **changes.pop("recording", {})})
    return Case(problem, dynamics, seed, recording, **changes)


def test_seeds_may_be_their_number() -> None:
    one, other = (sweeplib.simulate(RETRIEVAL, "sgd_chain", times=[0.0, 1.0], seeds=seeds) for seeds in (3, range(3)))
    assert one.identical(other)


def test_a_number_of_seeds_may_be_one_of_numpy() -> None:
    assert sweeplib.simulate(RETRIEVAL, "ode", times=[0.0], seeds=np.int64(2)).seed.values.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"seeds": 2.0}, "seeds: not a list; got 2.0"),
        ({"seeds": True}, "seeds: not a list; got True"),
        ({"seeds": np.array(2)}, "seeds: not a list; got "),
        ({"times": 1.0}, "times: not a list; got 1.0; expected a list, such as [1.0]"),
        ({"thresholds": 0.5}, "thresholds: not a list; got 0.5"),
        ({"observables": "risk"}, "observables: not a list; got 'risk'; expected a list, such as ['risk']"),
        ({"pair_by": "gamma"}, "pair_by: not a list; got 'gamma'"),
        ({"root_seed": 1.5}, "root_seed: not a seed; got 1.5"),
        ({"initial": ([[1.0, 2.0], [3.0]], [[1.0]])}, "W: not weights; got [[1.0, 2.0], [3.0]]; expected a matrix of"),
    ],
)
def test_what_are_no_arguments_of_simulate_is_refused_in_a_line(more, said) -> None:
    arguments = {"problem": RETRIEVAL, "dynamics": "ode", "times": [0.0, 1.0]} | more
    with pytest.raises(InputError) as refused:
        inspect.unwrap(sweeplib.simulate)(**arguments)  # without the check of its types, which users do not have
    assert str(refused.value).startswith(said)


def test_texts_are_no_weights() -> None:
    with pytest.raises(InputError, match=r"^W: not weights; .* expected a matrix of finite numbers"):
        matrix_of("W", np.full((2, 2), "1"), "not weights")


def test_the_attributes_tell_all_that_numbers_depend_on() -> None:
    attributes = [
        sweeplib.simulate(RETRIEVAL, dynamics, times=[0.0], **more).attrs
        for dynamics, more in (
            ("ode", {"pair_by": ["d"]}),
            ("ode", {"options": {"rtol": 1e-3, "finite_d": False}}),
            ("sgd_chain", {"pair_by": ["gamma", "d", "seed"]}),
        )
    ]
    assert attributes[1] == attributes[0] | {"ode.rtol": 1e-3}
    assert "pair_by" not in attributes[0] and attributes[2]["pair_by"] == "seed, d, gamma"


@pytest.mark.parametrize("dynamics", STEPPERS)
def test_the_dataset_is_labelled(dynamics):
    observables = ("risk", "test_error", "overlap_Q", "overlap_M", "overlap_P")
    ds = sweeplib.simulate(
        COMMITTEE, dynamics, times=[0.0, 0.5, 1.0], seeds=range(3), thresholds=[0.1, 0.5], observables=observables
    )
    assert dict(ds.risk.sizes) == {"seed": 3, "time": 3}
    assert dict(ds.overlap_Q.sizes) == {"seed": 3, "time": 3, "student": 2, "student_2": 2}
    assert dict(ds.overlap_P.sizes) == {"seed": 3, "teacher": 2, "teacher_2": 2}
    assert dict(ds.exit_time.sizes) == {"seed": 3, "threshold": 2}
    for name, variable in ds.data_vars.items():
        assert variable.attrs["long_name"], name
    np.testing.assert_allclose(ds.test_error, ds.risk + COMMITTEE.Delta / 2)
    np.testing.assert_array_equal(ds.steps, [0, 100, 200])


@pytest.mark.parametrize("dynamics", STEPPERS)
def test_risk_is_that_of_the_overlaps_recorded(dynamics):
    ds = sweeplib.simulate(RETRIEVAL, dynamics, times=[0.0, 1.0], seeds=range(4), observables=["risk", "overlap_M"])
    m = ds.overlap_M.values[..., 0, 0]
    np.testing.assert_allclose(ds.risk, 2 * (1 - m**2), rtol=1e-12)


@pytest.mark.rest
def test_all_dynamics_start_alike():
    reused = dict.fromkeys(("dmft", "training_flow"), dataclasses.replace(COMMITTEE, samples=100, batch_size=100))
    starts = [
        sweeplib.simulate(
            reused.get(name, COMMITTEE), name, times=[0.0], seeds=range(3), observables=["overlap_Q", "overlap_M"]
        )
        for name, kind in sweeplib.DYNAMICS.items()
        if kind.__module__.startswith("sweeplib.") and issubclass(kind.view, OverlapView)
    ]
    for start in starts[1:]:
        np.testing.assert_allclose(start.overlap_Q, starts[0].overlap_Q, atol=1e-13)
        np.testing.assert_allclose(start.overlap_M, starts[0].overlap_M, atol=1e-13)


@pytest.mark.parametrize("dynamics", STEPPERS)
def test_exits_are_found_at_the_step(dynamics):
    """Recording every step, the exit is the first record at or below (1−T) of the first one."""
    steps = np.arange(2501)
    ds = sweeplib.simulate(
        RETRIEVAL, dynamics, times=steps * RETRIEVAL.step_time(), seeds=range(4), thresholds=[0.01, 0.3]
    )
    for threshold in ds.threshold.values:
        below = ds.risk <= (1 - threshold) * ds.risk.isel(time=0)
        first = below.argmax("time").where(below.any("time"))
        np.testing.assert_array_equal(ds.exit_steps.sel(threshold=threshold), first)
    assert ds.exit_steps.notnull().any("seed").all()


@pytest.mark.parametrize("dynamics", STEPPERS)
def test_a_run_that_stops_at_its_exit_has_the_same_exit(dynamics):
    times = np.linspace(0, 3, 31)
    common = {"times": times, "seeds": range(6), "thresholds": [0.01, 0.1]}
    whole, stopped = (sweeplib.simulate(RETRIEVAL, dynamics, stop=stop, **common) for stop in ("end", "exit"))
    np.testing.assert_array_equal(whole.exit_steps, stopped.exit_steps)
    np.testing.assert_array_equal(stopped.end_steps, stopped.exit_steps.max("threshold"))
    recorded = stopped.risk.notnull()
    np.testing.assert_array_equal(recorded, stopped.end_steps >= stopped.steps)
    np.testing.assert_array_equal(whole.risk.where(recorded), stopped.risk)


def test_a_run_that_does_not_exit_is_censored_at_its_end():
    ds = sweeplib.simulate(RETRIEVAL, "sgd_chain", times=[0.0, 0.01], seeds=range(4), thresholds=[0.99], stop="exit")
    assert ds.exit_steps.isnull().all()
    np.testing.assert_array_equal(ds.end_steps, 25)
    assert (ds.status == Status.ok).all()


def test_repeated_calls_share_no_data_and_no_attributes():
    """What calls have in common is kept. Problems with 0.0 and -0.0 are equal but have other random numbers."""
    problem = Problem(gamma=0.1, p=1, k=1, d=20, Delta=0.0, activation="square")
    first = sweeplib.simulate(problem, "sgd_chain", times=[0.1], seeds=2)
    kept = first.copy(deep=True)
    first.attrs["gamma"] = 7.0
    first["risk"][:] = 1.0
    again = sweeplib.simulate(dataclasses.replace(problem), "sgd_chain", times=[0.1], seeds=2)
    xr.testing.assert_identical(again, kept)
    other = sweeplib.simulate(dataclasses.replace(problem, Delta=-0.0), "sgd_chain", times=[0.1], seeds=2)
    assert str(other.attrs["Delta"]) == "-0.0" and str(again.attrs["Delta"]) == "0.0"
    assert not np.array_equal(other.risk, again.risk), "its random numbers are others, as in a sweep"


@pytest.mark.rest
@pytest.mark.parametrize("dynamics", STEPPERS)
def test_what_diverges_is_said_to_and_harms_no_neighbour(dynamics):
    """Phase retrieval without projection at a far too large learning rate, next to runs that do not diverge."""
    good = Problem(gamma=0.01, p=1, k=1, d=60, Delta=0.0, activation="square")
    bad = Problem(gamma=2.0, p=1, k=1, d=60, Delta=0.0, activation="square")
    recording = {"times": (0.0, 1.0, 10.0)}
    cases = [case(problem, dynamics, seed, recording=recording) for seed in range(3) for problem in (good, bad)]
    records = run_cases(cases)
    assert records.status.tolist() == [Status.ok, Status.diverged] * 3
    assert np.isnan(records.data["risk"][1::2, -1]).all()
    alone = run_cases(cases[::2])
    for name, values in alone.data.items():
        np.testing.assert_array_equal(values, records.data[name][::2])


def test_bits_of_a_case_depend_on_no_other():
    """Any subset of cases that differ in γ, Δ, d and seed, in any order, gives each case the same bits."""
    problems = [
        Problem(gamma=gamma, p=2, k=1, d=d, Delta=Delta, activation="square", spherical=True)
        for gamma in (0.05, 0.2)
        for d in (40, 300)
        for Delta in (0.0, 1.0)
    ]
    cases = [case(problem, seed=seed) for problem in problems for seed in range(9)]
    whole = run_cases(cases)
    order = np.random.default_rng(0).permutation(len(cases))[:37]
    part = run_cases([cases[i] for i in order])
    for name, values in part.data.items():
        np.testing.assert_array_equal(values, whole.data[name][order])


def test_pairs_share_their_samples():
    """With pair_by d, problems that differ slightly in γ have the same samples; without it they do not."""
    twin = Problem(gamma=0.0800000001, p=1, k=1, d=200, Delta=0.1, activation="square", spherical=True)
    free = [run_cases([case(problem)]).data["risk"] for problem in (RETRIEVAL, twin)]
    paired = [run_cases([case(problem, pair_by=("d",))]).data["risk"] for problem in (RETRIEVAL, twin)]
    assert abs(free[0] - free[1]).max() > 1e-4
    assert abs(paired[0] - paired[1]).max() < 1e-6


@pytest.mark.parametrize(
    ("name", "value"),
    [("start", "gaussian"), ("a", (1.0, 1.0)), ("teacher_activation", "erf"), ("schedule", "1")],
)
@pytest.mark.parametrize("paired", [True, False])
def test_values_that_mean_the_same_have_the_same_samples(name, value, paired):
    problems = COMMITTEE, dataclasses.replace(COMMITTEE, **{name: value})
    one, other = (case(problem, pair_by=(name,) if paired else None) for problem in problems)
    assert one.identity() == other.identity()
    assert samples_key(one) == samples_key(other)


def test_a_run_may_have_any_name():
    """Also the word that stands for the digest of a problem while its key is made."""
    assert samples_key(case(dynamics="sgd_chain-digest")) != samples_key(case(dynamics="sgd_chain"))


def test_a_run_past_its_time_is_given_up():
    records = run_cases([case(recording={"times": (0.0, 1e6), "stop": "end"})], timeout=0.05)
    assert records.status.tolist() == [Status.timeout]
    assert np.isnan(records.data["risk"][0, 1])


@pytest.mark.rest
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain", "sde", "ode"])
def test_a_run_past_its_time_ends_where_it_came(dynamics, monkeypatch):
    """Its exit is censored at its end, in steps and in time, and it has a value at every time that it reached."""
    monkeypatch.setattr("sweeplib.networks.numerics.integrators.integration.STEPS_A_ROUND", 3)
    problems = [
        Problem(gamma=gamma, p=1, k=1, d=200, Delta=0.5, activation="square", spherical=True) for gamma in (0.08, 1e-3)
    ]
    long, short = (Recording(times, (0.9999,)) for times in ((0.0, 0.05, 1e5), (0.0, 0.05)))
    given_up = run_cases(
        [Case(problem, dynamics, 0, long) for problem in problems], timeout=1e-4 if dynamics == "ode" else 0.02
    )
    risk = run_cases([Case(problem, dynamics, 0, short) for problem in problems]).data["risk"]
    end = given_up.data["end_time"]
    assert given_up.status.tolist() == [Status.timeout] * 2
    np.testing.assert_allclose(end, given_up.data["end_steps"] * [problem.step_time() for problem in problems])
    assert ((end > 0.0) & (end < 1e5)).all()
    assert np.isnan(given_up.data["exit_steps"]).all()
    reached = np.stack([np.full(2, True), end > 0.0499, np.full(2, False)], axis=1)
    np.testing.assert_array_equal(np.isfinite(given_up.data["risk"]), reached)
    np.testing.assert_array_equal(given_up.data["risk"][reached], risk[reached[:, :2]])


def test_weights_of_a_run_that_came_to_a_time_are_those_of_that_time(monkeypatch):
    """The first run is done when the time limit of both is reached; the second is not."""
    recording = Recording((0.0, 1.0), (), ("risk",))
    fast, slow = (Case(Problem(gamma=gamma, p=1, k=1, d=1000, Delta=0, activation="erf"), "sgd", 0, recording)
                  for gamma in (0.1, 1e-3))  # fmt: skip
    records, alone = run_cases([fast, slow], timeout=1e-9), run_cases([fast])
    assert records.status.tolist() == [Status.ok, Status.timeout]
    np.testing.assert_array_equal(records.data["risk"][0], alone.data["risk"][0])
    assert np.isnan(records.data["risk"][1, 1])


def test_identity_counts_what_changes_the_result_and_nothing_else():
    base = case()
    others = [
        case(seed=1),
        case(dynamics="sgd"),
        case(COMMITTEE),
        case(recording={"times": (0.0, 0.1)}),
        case(recording={"thresholds": (0.02,)}),
        case(recording={"observables": ("test_error",)}),
        case(recording={"stop": "exit"}),
        case(clock=2.0),
        case(root_seed=1),
        case(pair_by=("d",)),
    ]
    assert len({each.identity() for each in [base, *others]}) == len(others) + 1
    assert case().identity() == base.identity()
    assert case(COMMITTEE, "ode", options=(("atol", 1e-12),)).identity() == case(COMMITTEE, "ode").identity()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"times": []}, "times"),
        ({"times": [0.2, 0.1]}, "ascending"),
        ({"times": [-0.1]}, "ascending"),
        ({"times": [float("inf")]}, "finite"),
        ({"thresholds": [1.5]}, "between 0 and 1"),
        ({"thresholds": [0.1, 0.1]}, "twice"),
        ({"observables": ["rsik"]}, "did you mean 'risk'"),
        ({"stop": "exit"}, "thresholds"),
        ({"seeds": [-1]}, "seed"),
        ({"seeds": []}, "seeds: no replicas"),
        ({"dynamics": "ode", "options": {"rtol": [1e-8]}}, "ode.rtol: not a valid option"),
        ({"pair_by": ["gama"]}, "did you mean 'gamma'"),
        ({"dynamics": "sgd_chian"}, "did you mean 'sgd_chain'"),
        ({"initial": Overlaps(np.eye(2), np.zeros((2, 1)), [[1.0]])}, r"\(p, k\) = \(1, 1\)"),
        ({"initial": Overlaps([[2.0]], [[0.0]], [[1.0]])}, "sphere"),
        ({"initial": (np.ones((1, 3)), np.ones((1, 3)))}, r"\(1, 200\)"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        sweeplib.simulate(**{"problem": RETRIEVAL, "dynamics": "sgd_chain", "times": [0.1], **arguments})


def test_more_units_than_dimensions_are_their_weights_in_the_chain():
    """Without a second layer nothing moves: overlaps are those of the weights, whatever the dimension."""
    for d in range(1, 7):
        problem = Problem(gamma=0.1, p=4, k=1, d=d, Delta=0.0, activation="erf", a=0.0)
        weights, chain = (
            sweeplib.simulate(problem, name, times=[0.1], seeds=range(3), observables=("overlap_Q", "overlap_M"))
            for name in ("sgd", "sgd_chain")
        )
        for name in ("overlap_Q", "overlap_M"):
            np.testing.assert_allclose(chain[name], weights[name], rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_weights_in_single_precision_follow_those_in_double():
    """10,000 steps on the same samples, each with a rounding of 3e-8: overlaps differ by less than 2e-6, but differ."""
    problem = Problem(gamma=0.5, p=3, k=2, d=100, Delta=0.1, activation="erf")
    shown = {"times": [0.0, 16.0], "observables": ("overlap_Q", "overlap_M"), "seeds": range(2)}
    double, single = (
        sweeplib.simulate(problem, "sgd", options={"weights": weights}, **shown) for weights in ("float64", "float32")
    )
    for name in shown["observables"]:
        apart = np.abs(double[name] - single[name]).max().item()
        assert 0 < apart < 2e-6
    with pytest.raises(InputError, match="float64"):
        sweeplib.simulate(problem, "sgd", options={"weights": "float16"}, **shown)


@pytest.mark.parametrize(
    ("dynamics", "options", "most"),
    [("sgd", {}, 2.0**62), ("sgd_chain", {}, 2.0**62), ("sde", {"step": 4.0}, 4 * 2.0**62)],
)
def test_more_steps_than_can_be_counted_are_refused(dynamics, options, most):
    """Beyond 2^63 they would wrap to a negative number, and the run would end at its start with status ok."""
    last = most * RETRIEVAL.step_time()
    long = case(dynamics=dynamics, options=tuple(options.items()), recording={"times": (0.0, 0.999 * last)})
    long.check()
    refused = case(dynamics=dynamics, options=tuple(options.items()), recording={"times": (0.0, 1.001 * last)})
    with pytest.raises(InputError, match=r"times: more steps than can be counted; .* at most 2\^62"):
        run_cases([refused])
    with pytest.raises(InputError, match="more steps than can be counted"):
        sweeplib.simulate(RETRIEVAL, dynamics, times=[0.0, 4 * last], options=options)
    with pytest.raises(InputError, match="more steps than can be counted"):
        case(dynamics=dynamics, clock=1e308, recording={"times": (0.0, 1e308)}).check()


@pytest.mark.parametrize("dynamics", ["ode", "gradient_flow"])
def test_steps_of_the_odes_need_only_be_finite(dynamics):
    slow = dataclasses.replace(RETRIEVAL, gamma=1e-30)
    ds = sweeplib.simulate(slow, dynamics, times=[0.0, 0.1], thresholds=[0.5])
    assert ds.status == Status.ok and ds.end_time == 0.1 and np.isclose(ds.end_steps, 0.1 * 200 / 1e-30)
    with pytest.raises(InputError, match="more steps than can be counted; got inf"):
        sweeplib.simulate(dataclasses.replace(RETRIEVAL, gamma=5e-324), dynamics, times=[0.0, 0.1])
