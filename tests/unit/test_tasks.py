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
from sweeplib.networks.problem import TASKS
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.simulation.driver import replicas_of
from tests.losses import with_loss
from tests.numpy_sgd import iterates_by_numpy, steps_by_numpy
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


@pytest.mark.parametrize("later", [(6001.0,), ()])
def test_a_record_at_the_switch_in_steps_is_of_the_task_that_ends(later):
    """6000 steps of the time .1/300 are behind t = 2 by a rounding error; a last record begins no task."""
    problem = Problem(gamma=0.1, p=1, k=2, d=300, Delta=0.0, activation="erf", tasks="in_turn", switch_time=2.0)
    recording = Recording((0.0, 6000.0, *later), (), ("risk", "risk_of_task"))
    case = Case(problem, "ode", 0, recording, clock=problem.step_time())
    assert case.clock * 6000.0 > 2.0
    data = run_cases([case]).data
    tasks = [0, 0, 1][: 2 + len(later)]
    np.testing.assert_array_equal(data["risk"][0], [data["risk_of_task"][0, at, task] for at, task in enumerate(tasks)])


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
ONE_UNIT = {"p": 1, "a": 1.0}
STEPS = {
    "annealed labels, replay": {"noise_schedule": "4*exp(-t)", "replay": 0.3, "heads": "separate"} | LAYERS,
    "correlation, sphere": {"loss": "correlation", "spherical": True, "task_overlap": 0.6},
    "signs, logistic, separate heads": with_loss("logistic", "sign") | ONE_UNIT | LAYERS | {"heads": "separate"},
    "huber, replay": with_loss("huber") | ONE_UNIT | LAYERS | {"replay": 0.3},
    "normalised": {"update": "normalised", "gamma": 0.5, "switch_time": 0.4, **ONE_UNIT},
    "clipped, replay": {"update": "clipped", "clip_norm": 0.3, "replay": 0.3, **ONE_UNIT, **LAYERS},
    "adagrad_norm": {"update": "adagrad_norm", "adagrad_start": 0.3, **LAYERS},
    "adagrad_norm, replay": {"update": "adagrad_norm", "adagrad_start": 0.3, "replay": 0.3, "heads": "separate"}
    | LAYERS,
    "momentum": {
        "update": "heavy_ball",
        "momentum": 0.6,
        "gamma": 0.5,
        "switch_time": 0.4,
        "heads": "separate",
        **LAYERS,
    },
    "momentum, replay": {
        "update": "heavy_ball",
        "momentum": 0.6,
        "gamma": 0.5,
        "switch_time": 0.4,
        "replay": 0.3,
        **LAYERS,
    },
    "tangent": {"update": "tangent", "spherical": True, "task_overlap": 0.6},
    "a spectrum": {"data": "two_level", "level_ratio": 4.0, "heads": "separate", **LAYERS},
    "a spectrum, replay": {"data": "two_level", "level_ratio": 4.0, "replay": 0.3, "task_overlap": 0.6},
    "offsets, replay": {"offset_scale": 0.7, "offset_rate": 1.5, "replay": 0.3, **LAYERS},
    "batches, replay": {"batch_size": 6, "replay": 0.3, "heads": "separate", "weight_decay": 0.3, **LAYERS},
    "batches, replay, offsets": {"batch_size": 3, "replay": 0.3, "offset_scale": 0.7, "offset_rate": 1.5, **LAYERS},
    "batches, replay, shared head, dropout": {"batch_size": 3, "replay": 0.5, "keep_probability": 0.7, **LAYERS},
    "muon, batches": {"update": "muon", "momentum": 0.8, "batch_size": 3, "gamma": 0.5, "switch_time": 0.4},
}
"""Tasks with other losses, labels, noise and rules of steps: velocities and memories go on at a switch."""
OF_THE_CHAIN = [
    kind for kind in STEPS if kind not in ("a spectrum, replay", "offsets, replay") and "batches, r" not in kind
]
OF_THE_ODE = [kind for kind in OF_THE_CHAIN if "muon" not in kind]


@pytest.mark.rest
@pytest.mark.parametrize("kind", KINDS | STEPS)
def test_sgd_takes_the_steps_of_several_tasks(kind):
    problem = dataclasses.replace(TURNS, **(KINDS | STEPS)[kind])
    expected = steps_by_numpy(Case(problem, "sgd", 3, Recording((0.0,))), 110)
    ds = simulate(problem, "sgd", times=[110 * problem.step_time()], seeds=[3], observables=SHOWN)
    for name, value in zip(SHOWN, expected, strict=False):
        np.testing.assert_allclose(ds[name][0, -1], value, rtol=1e-9, atol=1e-11)


@pytest.mark.rest
@pytest.mark.parametrize("kind", ["offsets", "a spectrum"])
def test_risks_of_tasks_are_means_over_samples(kind):
    """With the head of each task, of 10⁵ samples: within 1 per cent, some four standard errors."""
    fields = {"offset_scale": 0.7, "offset_rate": 1.5, **LAYERS} if kind == "offsets" else STEPS[kind]
    problem = dataclasses.replace(TURNS, **fields | {"switch_time": 0.4, "heads": "separate"})
    steps, (values, sizes) = [31, 60], problem.blocks
    iterates, W_star = weights_and_heads(problem, max(steps))
    x = np.random.default_rng(0).standard_normal((100_000, 40)) * np.repeat(np.sqrt(values), np.array(sizes, int))
    times = np.array(steps) * problem.step_time()
    ds = simulate(problem, "sgd", times=times, seeds=[3], observables=("risk_of_task",))
    heads = [iterates[step - 1][1] for step in steps]
    for place, step in enumerate(steps):
        W, _, b = iterates[step - 1]
        values_of_units = erf((x @ W.T / np.sqrt(40) + b) / np.sqrt(2))
        # the first head has one more step of its task, for less than a tenth of a per cent, and none after that
        for task, head in enumerate(heads[: place + 1]):
            error = erf(x @ W_star[task] / np.sqrt(80)) - values_of_units @ head / 2
            assert ds.risk_of_task[0, place, task] == pytest.approx(0.5 * (error**2).mean(), rel=0.01)


def weights_and_heads(problem, count):
    """W, the head of the present task, and b after each of some steps of SGD in NumPy; and W*."""
    case = Case(problem, "sgd", 3, Recording((0.0,)))
    return list(iterates_by_numpy(case, count)), replicas_of([case]).weights(0)[1]


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
    "kind", slow_but(["shared head", "separate heads", "sphere", "batches", *REPLAYS, *OF_THE_CHAIN], "separate heads")
)
def test_the_chain_has_the_law_of_the_weights(kind):
    """p = k = 2, d = 30, before and after the switch: Kolmogorov-Smirnov at 1e-4; 16 numbers a kind and time."""
    problem = dataclasses.replace(TURNS, **({"d": 30, "switch_time": 0.5} | (KINDS | STEPS)[kind]))
    common = {"times": [0.5, 1.0], "observables": SHOWN, "root_seed": 5}
    weights = simulate(problem, "sgd", seeds=range(1000), **common)
    chain = simulate(problem, "sgd_chain", seeds=range(1000, 2000), **common)
    for name in SHOWN:
        for x, y in zip(*(run[name].values.reshape(1000, -1).T for run in (weights, chain)), strict=True):
            if np.ptp(x) > 1e-9:
                assert stats.ks_2samp(x, y).pvalue > 1e-4


@pytest.mark.rest
@pytest.mark.parametrize("kind", [*KINDS, *slow_but(OF_THE_ODE, "momentum, replay")])
def test_means_of_the_chain_are_those_of_the_ode(kind):
    """At d = 4000, of both risks and all overlaps: |z| < 4, some 20 numbers a kind."""
    problem = dataclasses.replace(TURNS, **({"d": 4000} | (KINDS | STEPS)[kind]))
    start = START
    if problem.spherical:
        start = Overlaps([[1.0, 0.2], [0.2, 1.0]], START.M, [[1.0, 0.6], [0.6, 1.0]])
    if problem.k == 3:
        start = Overlaps(START.Q, np.hstack([START.M, [[0.1], [0.2]]]), np.eye(3))
    if problem.k == 4:
        P = np.array([[1, 0, -0.4, 0], [0, 1, 0, -0.4], [-0.4, 0, 1, 0], [0, -0.4, 0, 1]])
        start = Overlaps(START.Q, np.hstack([START.M, np.zeros((2, 2))]), P)
    if problem.p == 1:
        start = Overlaps(START.Q[:1, :1], START.M[:1], START.P)
    given = {"times": [0.9, 1.6], "initial": start, "observables": SHOWN}
    # each seed shares out overlaps among blocks of inputs in another way
    seeds = range(64 if problem.has_spectrum else 1)
    chain, ode = (simulate(problem, name, seeds=n, **given) for name, n in (("sgd_chain", range(64)), ("ode", seeds)))
    for name in SHOWN:
        apart = chain[name].values - ode[name].values
        error = apart.std(axis=0, ddof=1) / 8.0
        assert (abs(apart.mean(axis=0)) <= 4.0 * error + 1e-9).all(), name


@pytest.mark.slow
def test_means_of_batches_with_replay_are_those_of_the_ode():
    """Of SGD at d = 1000, whose batches have samples of both tasks: |z| < 4."""
    kind = {"batch_size": 4, "replay": 0.4, "heads": "separate", "switch_time": 0.3, **LAYERS}
    problem = dataclasses.replace(TURNS, **{"d": 1000} | kind)
    given = {"times": [0.9], "initial": START, "observables": SHOWN}
    sgd, ode = simulate(problem, "sgd", seeds=range(48), **given), simulate(problem, "ode", **given)
    for name in SHOWN:
        runs, limit = sgd[name].values, ode[name].values[0]
        error = runs.std(axis=0, ddof=1) / np.sqrt(48)
        assert (abs(runs.mean(axis=0) - limit) <= 4.0 * error + 1e-9).all(), name


@pytest.mark.rest
@pytest.mark.parametrize("more", [{}, {"replay": 0.4}, {"data": "two_level", "level_ratio": 4.0}], ids=str)
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain", "ode", "gradient_flow"])
def test_one_task_twice_is_a_plain_run(dynamics, more):
    """Equal rows and a*: no event at the switch. To the bit in dynamics of steps, if SGD records there."""
    again = dataclasses.replace(TURNS, task_order=(1, 1), **LAYERS, **more)
    plain = dataclasses.replace(PLAIN, **LAYERS, **{name: more[name] for name in more if name != "replay"})
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


def test_rounding_of_a_risk_is_by_the_terms_of_the_present_task():
    """A teacher of the second task that is ten times as large has a hundred times the risk."""
    problem = dataclasses.replace(TURNS, a_star=(1.0, 10.0), a=0.0)
    first = replicas_of([Case(problem, "ode", 0, Recording((2.0,)))])
    scale = first.risk_scales
    np.testing.assert_allclose(first.at_phase(1, first.a, None).risk_scales, 100.0 * scale, rtol=1e-9)


def test_gradient_flow_with_replay_may_raise_the_risk_of_the_present_task():
    """It descends the mean over tasks: a risk that rises is no inaccuracy."""
    more = {"replay": 0.9, "switch_time": (5.0, 10.0), "task_order": (1, 2, 1), "start": "warm", "m0": 0.3}
    problem = dataclasses.replace(TURNS, gamma=0.1, d=1000, Delta=0.0, **more)
    ds = simulate(problem, "gradient_flow", times=[0.0, 5.0, 9.9, 10.0, 10.5])
    assert ds.status == 1
    assert ds.risk[0, 3] > ds.risk[0, 2] + 1e-5


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
    ("sgd", {"samples": 50}, {}, "samples: labels of a training set are drawn once, for one task"),
    ("sgd", {"repeats": 2}, {}, "repeats: tasks may change between two uses of a batch"),
    ("sgd", {"target": "lam1*lam2"}, {}, "target: a task is a committee of its rows of the teacher"),
    ("sgd", {"data": "two_gaussians", "contrast": 0.4, "k": 0}, {}, "data: tasks are rows of a teacher; got 'two_g"),
    (
        "sgd_chain",
        {"replay": 0.1, "batch_size": 2},
        {},
        "batch_size: samples of a batch may be of several tasks; got 2; expected 1, or `replay",
    ),
    *(
        (name, {"replay": 0.1, "data": "two_level", "level_ratio": 4.0}, {}, f"data: no {reason}")
        for name, reason in (("ode", "equations of blocks"), ("gradient_flow", "equations"))
    ),
    (
        "sgd_chain",
        {"replay": 0.1, "update": "muon"},
        {},
        "update: its steps are known of one task; got 'muon'; expected plain with",
    ),
    ("sgd", {"k": 3}, {}, "k: rows that cannot be shared out; got 3; expected a multiple of 2"),
    ("sgd", {"switch_time": (2.0, 1.0)}, {}, "switch_time: no order of tasks"),
    ("sgd", {"task_order": (1, 3)}, {}, "task_order: no order of tasks"),
    ("sgd", {"task_order": (1, 10**12)}, {}, "task_order: no order of tasks"),
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
