"""Tasks in turn: known numbers, SGD by NumPy on the same samples, the chain against the weights and the ODE, limits."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import erf

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.contracts import tasks as contract
from sweeplib.contracts.check import checks_of
from sweeplib.networks.kernels.replay import tasks_of
from sweeplib.networks.numerics.random import normals
from sweeplib.networks.problem import TASKS
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.sample_keys import samples_key
from tests.tiers import slow_but


@pytest.mark.parametrize("check", checks_of(contract))
@pytest.mark.parametrize("name", TASKS)
def test_every_registered_course(name, check):
    check(name)


PLAIN = Problem(gamma=1.0, p=2, k=2, d=40, Delta=0.1, activation="erf")
TURNS = dataclasses.replace(PLAIN, tasks="in_turn", switch_time=1.0)
START = Overlaps([[1.0, 0.2], [0.2, 0.8]], [[0.3, 0.1], [0.0, 0.4]], [[1.0, 0.3], [0.3, 1.0]])
LAYERS = {"second_layer_rate": 0.5, "second_layer_decay": 0.2}
SHOWN = ("overlap_Q", "overlap_M", "second_layer", "risk_of_task")


@pytest.mark.parametrize("times", [[1.0, 2.0], [0.0, 0.3, 1.0, 1.0 + 1e-9, 1.9, 2.0]])
def test_the_ode_of_two_tasks_has_the_known_numbers(times):
    """Whatever is recorded: the equations change at the switch, not at a recording time."""
    ds = simulate(TURNS, "ode", times=times, initial=START, observables=("risk", *SHOWN)).isel(seed=0)
    np.testing.assert_allclose(ds.risk_of_task.sel(time=1.0), [0.12410937, 0.16159472], atol=6e-9)
    last = ds.isel(time=-1)
    np.testing.assert_allclose(last.risk_of_task, [0.1299819, 0.09432337], atol=6e-8)
    np.testing.assert_allclose(last.overlap_M, [[0.53140665, 0.31434804], [0.21582978, 0.63351818]], atol=6e-9)
    np.testing.assert_array_equal(ds.risk.sel(time=1.0), ds.risk_of_task.sel(time=1.0)[0])
    np.testing.assert_array_equal(last.risk, last.risk_of_task[1])


KINDS = {
    "shared head": {},
    "frozen heads": {"heads": "separate"},
    "both layers": LAYERS,
    "separate heads": {"heads": "separate"} | LAYERS,
    "first task again": {"heads": "separate", "switch_time": (0.3, 0.8), "task_order": (1, 2, 1)} | LAYERS,
    "schedule": {"schedule": "1/(1 + t)", "heads": "separate"} | LAYERS,
    "decay": {"weight_decay": 0.3} | LAYERS,
    "batches": {"batch_size": 6, "heads": "separate"} | LAYERS,
    "sphere": {"spherical": True, "task_overlap": 0.6},
    "replay": {"replay": 0.3, "spherical": True, "task_overlap": 0.6},
    "replay, separate heads": {"replay": 0.3, "heads": "separate", "schedule": "1/(1 + t)"} | LAYERS,
    "replay of two": {"replay": 0.5, "k": 3, "switch_time": (0.3, 0.6), "heads": "separate"} | LAYERS,
    "four rows": {"k": 4, "task_overlap": -0.4, "a_star": (1.0, 0.5, -1.0, 2.0)},
}


REPLAYS = [kind for kind in KINDS if kind.startswith("replay")]


def tasks_by_hand(problem, at):
    """Return the task of a time, and those before it."""
    times = problem.switch_time if isinstance(problem.switch_time, tuple) else (problem.switch_time,)
    order, phase = problem.task_order or range(1, len(times) + 2), sum(time <= at for time in times)
    return order[phase] - 1, sorted({task - 1 for task in order[:phase]} - {order[phase] - 1})


def steps_by_numpy(case, count):
    """Return Q, M, and a of the present task, of SGD for erf after some steps with the samples of the case."""
    problem, (W, W_star) = case.problem, replicas_of([case]).weights(0)
    W, key, n_b, d, p = W.copy(), samples_key(case), problem.batch_size, problem.d, problem.p
    count_of_tasks = 3 if problem.k == 3 else 2
    heads, own = np.ones((count_of_tasks, p)), problem.heads == "separate"
    for step in range(count):
        at = (step + 0.5) * problem.step_time()
        rate = 1.0 / (1.0 + at) if problem.rates else 1.0
        T = rate * problem.step_time()
        task, earlier = tasks_by_hand(problem, at)
        if problem.replay and earlier:
            ends = np.zeros(count_of_tasks)
            ends[earlier], ends[task] = problem.replay / len(earlier), 1.0 - problem.replay
            [task] = tasks_of(ends.cumsum(), step, 1, np.uint64(case.seed), np.uint64(key))
        rows = np.arange(problem.k) // (problem.k // count_of_tasks) == task
        a_star = np.where(rows, np.broadcast_to(problem.a_star, problem.k) * count_of_tasks, 0.0)
        layer = heads[task * own]
        draws = np.array([normals(key, case.seed, s, 32 * (d // 32 + 1)) for s in step * n_b + np.arange(n_b)])
        x, z = draws[:, :d] / np.sqrt(d), draws[:, d]
        lam = x @ W.T
        value = erf(lam / np.sqrt(2))
        y = erf(x @ W_star.T / np.sqrt(2)) @ a_star / problem.k + np.sqrt(problem.Delta) * z
        E = y - value @ layer / p
        slope = np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2)
        move = rate * problem.gamma / (p * n_b) * (layer * slope * E[:, None]).T @ x
        W = (1 - problem.weight_decay * T) * W + move
        means = (value * E[:, None]).mean(axis=0)
        heads[task * own] = layer + problem.second_layer_rate * T * (means - problem.second_layer_decay * layer)
        if problem.spherical:
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
    return W @ W.T / d, W @ W_star.T / d, heads[tasks_by_hand(problem, at)[0] * own]


@pytest.mark.rest
@pytest.mark.parametrize("kind", KINDS)
def test_sgd_takes_the_steps_of_several_tasks(kind):
    problem = dataclasses.replace(TURNS, **KINDS[kind])
    expected = steps_by_numpy(Case(problem, "sgd", 3, Recording((0.0,))), 110)
    ds = simulate(problem, "sgd", times=[110 * problem.step_time()], seeds=[3], observables=SHOWN)
    for name, value in zip(SHOWN, expected, strict=False):
        np.testing.assert_allclose(ds[name][0, -1], value, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("switch", "first"), [(0.99, 79), (1.0, 80), (1.004, 80), (1.007, 81), (0.001, 0)])
def test_the_step_nearest_to_the_switch_is_the_first_of_the_task(switch, first):
    """δt = 1/80: step ν has the task of (ν + ½)δt."""
    early = dataclasses.replace(TURNS, switch_time=switch)
    runs = [simulate(early, "sgd", times=[n / 80], pair_by=["d"], observables=SHOWN) for n in (first, first + 1)]
    late = [
        simulate(dataclasses.replace(TURNS, switch_time=5.0), "sgd", times=[n / 80], pair_by=["d"], observables=SHOWN)
        for n in (first, first + 1)
    ]
    np.testing.assert_array_equal(runs[0].overlap_M, late[0].overlap_M)
    assert abs(runs[1].overlap_M - late[1].overlap_M).max() > 1e-4


@pytest.mark.rest
@pytest.mark.parametrize(
    "kind", slow_but(["shared head", "separate heads", "sphere", "batches", *REPLAYS], "separate heads")
)
def test_the_chain_has_the_law_of_the_weights(kind):
    """p = k = 2, d = 30, before and after the switch: Kolmogorov-Smirnov at 1e-4; 16 numbers a kind and time."""
    problem = dataclasses.replace(TURNS, **({"d": 30, "switch_time": 0.5} | KINDS[kind]))
    common = {"times": [0.5, 1.0], "observables": SHOWN, "root_seed": 5}
    weights = simulate(problem, "sgd", seeds=range(1000), **common)
    chain = simulate(problem, "sgd_chain", seeds=range(1000, 2000), **common)
    for name in SHOWN:
        for x, y in zip(*(run[name].values.reshape(1000, -1).T for run in (weights, chain)), strict=True):
            if np.ptp(x) > 1e-9:
                assert stats.ks_2samp(x, y).pvalue > 1e-4


@pytest.mark.rest
@pytest.mark.parametrize("kind", KINDS)
def test_means_of_the_chain_are_those_of_the_ode(kind):
    """At d = 4000, of both risks and all overlaps: |z| < 4, some 20 numbers a kind."""
    problem = dataclasses.replace(TURNS, **({"d": 4000} | KINDS[kind]))
    start = START
    if problem.spherical:
        start = Overlaps([[1.0, 0.2], [0.2, 1.0]], START.M, [[1.0, 0.6], [0.6, 1.0]])
    if problem.k == 3:
        start = Overlaps(START.Q, np.hstack([START.M, [[0.1], [0.2]]]), np.eye(3))
    if problem.k == 4:
        P = np.array([[1, 0, -0.4, 0], [0, 1, 0, -0.4], [-0.4, 0, 1, 0], [0, -0.4, 0, 1]])
        start = Overlaps(START.Q, np.hstack([START.M, np.zeros((2, 2))]), P)
    given = {"times": [0.9, 1.6], "initial": start, "observables": SHOWN}
    chain, ode = simulate(problem, "sgd_chain", seeds=range(64), **given), simulate(problem, "ode", **given)
    for name in SHOWN:
        runs, limit = chain[name].values, ode[name].values[0]
        error = runs.std(axis=0, ddof=1) / 8.0
        assert (abs(runs.mean(axis=0) - limit) <= 4.0 * error + 1e-9).all(), name


@pytest.mark.rest
@pytest.mark.parametrize("replay", [0.0, 0.4])
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain", "ode", "gradient_flow"])
def test_one_task_twice_is_a_plain_run(dynamics, replay):
    """Equal rows and a*: no event at the switch. To the bit in dynamics of steps, if SGD records there."""
    again = dataclasses.replace(TURNS, task_order=(1, 1), replay=replay, **LAYERS)
    plain = dataclasses.replace(PLAIN, **LAYERS)
    given = {"times": [0.5, 1.0, 2.0], "observables": SHOWN, "pair_by": ["d"], "seeds": range(4)}
    one, other = (simulate(problem, dynamics, **given) for problem in (again, plain))
    for name in SHOWN:
        if dynamics in ("sgd", "sgd_chain"):
            np.testing.assert_array_equal(one[name], other[name])
        else:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-8)


def test_tasks_of_one_teacher_are_one_task():
    """v = 1: both teachers have the same row, the risks of both tasks are one, and no switch is seen."""
    same, alone = dataclasses.replace(TURNS, task_overlap=1.0), dataclasses.replace(PLAIN, k=1)
    given = {"times": [0.5, 2.0], "observables": ("risk", "risk_of_task")}
    M = np.array([[0.3, 0.3], [0.1, 0.1]])
    two = simulate(same, "ode", initial=Overlaps(START.Q, M, np.ones((2, 2))), **given)
    one = simulate(alone, "ode", initial=Overlaps(START.Q, M[:, :1], np.eye(1)), **given)
    np.testing.assert_allclose(two.risk, one.risk, rtol=1e-8)
    np.testing.assert_allclose(two.risk_of_task, two.risk.values[..., None].repeat(2, -1), rtol=1e-12)
    drawn = simulate(same, "sgd_chain", observables=("overlap_M", "overlap_P"), times=[0.0, 2.0], seeds=range(2))
    np.testing.assert_array_equal(drawn.overlap_P.values, np.ones((2, 2, 2)))
    np.testing.assert_allclose(drawn.overlap_M[..., 0], drawn.overlap_M[..., 1], atol=1e-12)


@pytest.mark.rest
def test_steps_are_of_replayed_tasks_as_often_as_is_said():
    """Of 40 000 steps; the standard deviation of a share is below .0025."""
    tasks = tasks_of(np.array([0.1, 0.1, 0.4, 1.0]), 7, 40_000, np.uint64(3), np.uint64(11))
    np.testing.assert_allclose(np.bincount(tasks) / 40_000, [0.1, 0.0, 0.3, 0.6], atol=0.01)
    problem = dataclasses.replace(TURNS, k=3, switch_time=(1.0, 2.0, 3.0), task_order=(1, 2, 1, 3), replay=0.2)
    shares = [problem.course.shares(phase) for phase in range(4)]
    np.testing.assert_allclose(shares, [[1, 0, 0], [0.2, 0.8, 0], [0.8, 0.2, 0], [0.1, 0.1, 0.8]])


@pytest.mark.rest
def test_replay_forgets_less():
    """R_1 stays lower, the more so with more of it, where the tasks share a head."""
    problems = [dataclasses.replace(TURNS, replay=share, **LAYERS) for share in (0.0, 0.1, 0.3, 0.5)]
    given = {"times": [4.0], "initial": START, "observables": ("risk_of_task",)}
    risks = [simulate(problem, "ode", **given).risk_of_task.values.ravel() for problem in problems]
    assert all(one[0] > other[0] and one[1] < other[1] for one, other in itertools.pairwise(risks))


def test_a_switch_after_the_end_is_none():
    given = {"times": [0.5, 2.0], "observables": SHOWN, "pair_by": ["d"], "initial": START}
    late, never = (simulate(dataclasses.replace(TURNS, switch_time=t), "ode", **given) for t in (2.0, 9.0))
    for name in SHOWN:
        np.testing.assert_array_equal(late[name], never[name])


def test_weights_have_the_overlap_of_their_tasks():
    problem = dataclasses.replace(TURNS, k=6, switch_time=(1.0, 2.0), task_overlap=-0.5)
    _, W_star = replicas_of([Case(problem, "sgd", 0, Recording((1.0,)))]).weights(0)
    expected = np.eye(6) - 0.5 * np.kron(np.ones((3, 3)) - np.eye(3), np.eye(2))
    np.testing.assert_allclose(W_star @ W_star.T / 40, expected, atol=1e-12)


REFUSED = [
    ("sde", {}, {}, "tasks: sde does not act on tasks"),
    ("dmft", {}, {}, "dmft does not act on tasks"),
    ("mean_field", {}, {}, "mean_field does not act on tasks"),
    ("overlap_map", {}, {}, "overlap_map does not act on tasks"),
    ("ode", {}, {"options": {"finite_d": True}}, "tasks: no equations at finite d"),
    ("sgd", {}, {"thresholds": [0.5]}, "thresholds: no exits of tasks in turn"),
    ("ode", {"schedule": "optimal(3)"}, {}, "schedule: no optimal schedule"),
    ("sgd", {"samples": 50}, {}, "samples: no tasks in turn"),
    ("sgd", {"repeats": 2}, {}, "repeats: no tasks in turn"),
    ("sgd", {"target": "lam1*lam2"}, {}, "target: no tasks in turn"),
    ("sgd_chain", {"replay": 0.1, "batch_size": 2}, {}, "batch_size: no tasks in turn; got 2; expected 1, without"),
    ("ode", {"replay": 0.1, "data": "two_level", "level_ratio": 4.0}, {}, "data: no tasks in turn"),
    ("sgd", {"k": 3}, {}, "k: rows that cannot be shared out; got 3; expected a multiple of 2"),
    ("sgd", {"switch_time": (2.0, 1.0)}, {}, "switch_time: no order of tasks"),
    ("sgd", {"task_order": (1, 3)}, {}, "task_order: no order of tasks"),
    ("sgd", {"task_overlap": -0.6, "k": 3, "switch_time": (1.0, 2.0)}, {}, "task_overlap: no such rows; got -0.6"),
    ("sgd", {"task_overlap": 0.5, "teacher_start": "gaussian"}, {}, "teacher_start: no rows of a given overlap"),
    ("sgd", {"tasks": "single"}, {}, "switch_time: the tasks single does not act on switch_time"),
    ("sgd", {"tasks": "in_turns"}, {}, "tasks: unknown course of tasks"),
    ("sgd", {"switch_time": None}, {}, "switch_time: in_turn needs it"),
]


@pytest.mark.parametrize(("dynamics", "fields", "given", "said"), REFUSED)
def test_what_does_not_fit_is_refused_in_a_line(dynamics, fields, given, said):
    with pytest.raises(InputError) as caught:
        simulate(dataclasses.replace(TURNS, **fields), dynamics, times=[2.0], **given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
