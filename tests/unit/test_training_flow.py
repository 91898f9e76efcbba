"""Gradient flow on a training set: against NumPy and SciPy, full-batch SGD, DMFT, the population flow; refusals."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import erf

from sweeplib import InputError, Problem, simulate
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of

FIELDS = {"gamma": 0.6, "p": 3, "k": 2, "d": 20, "Delta": 0.1, "activation": "erf", "samples": 60, "batch_size": 60}
TIMES = (0.0, 0.5, 1.0, 2.0)
NAMES = ("risk", "training_risk", "overlap_Q", "overlap_M", "second_layer")
VARIANTS = {
    "plain": {},
    "spherical": {"spherical": True, "activation": "square", "second_layer_rate": 0.7},
    "decays": {"weight_decay": 0.3, "second_layer_rate": 1.0, "second_layer_decay": 0.2, "activation": "tanh"},
    "schedule": {"schedule": "1/(1 + t)", "second_layer_rate": 0.5},
    "offsets": {"offset_scale": 0.5, "offset_rate": 1.0, "activation": "tanh", "teacher_activation": "tanh", "k": 1},
    "logistic": {"loss": "logistic", "labels": "sign", "activation": "tanh"},
    "spectrum": {"data": "power_law", "exponent": 1.2},
    "underdetermined": {"samples": 10, "batch_size": 10, "weight_decay": 0.3, "second_layer_rate": 1.0},
}


def runs(dynamics: str, fields: dict, **more):
    settings = {"times": TIMES, "seeds": (0, 1), "observables": NAMES, "pair_by": ("d", "samples")} | more
    return simulate(Problem(**fields), dynamics, **settings)


@pytest.mark.parametrize("name", VARIANTS)
def test_full_batches_come_to_it_as_their_steps_become_short(name: str) -> None:
    """Their distance to the flow, on the same training sets, is of first order in γ; extrapolated it is of second."""
    fields = FIELDS | VARIANTS[name]
    flow = runs("training_flow", fields)
    one, half = (runs("sgd", fields | {"gamma": factor * fields["gamma"]}) for factor in (1.0, 0.5))
    for item in NAMES:
        far, near = (float(np.abs(run[item] - flow[item]).max()) for run in (one, half))
        extrapolated = float(np.abs(2.0 * half[item] - one[item] - flow[item]).max())
        if far > 1e-9:  # else it does not change
            assert near == pytest.approx(0.5 * far, rel=0.05), item
            assert extrapolated < 0.06 * far, item


def test_it_is_the_solution_of_its_equation_by_scipy() -> None:
    """With a second layer, both decays and relu units, from the same training set."""
    fields = FIELDS | {"second_layer_rate": 0.6, "weight_decay": 0.2, "second_layer_decay": 0.1}
    case = Case(Problem(**fields), "training_flow", 4, Recording(TIMES, (), NAMES))
    state = DYNAMICS["training_flow"](replicas_of([case]), case.numerical_options())
    data, (W, W_star) = state._training_set(0), state._weights[0]
    x, y, (p, d) = data.x / np.sqrt(fields["d"]), data.y, W.shape

    def slope(_, flat):
        w, a = flat[: p * d].reshape(p, d), flat[p * d :]
        lam = x @ w.T
        value = erf(lam / np.sqrt(2.0))
        E = y - value @ a / p
        c = a * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * lam**2) * E[:, None]
        of_w = d * c.T @ x / len(y) - 0.2 * w
        return np.concatenate([of_w.ravel(), 0.6 * (value.T @ E / len(y) - 0.1 * a)])

    start = np.concatenate([W.ravel(), np.ones(p)])
    at = solve_ivp(slope, (0.0, TIMES[-1]), start, t_eval=TIMES, rtol=1e-11, atol=1e-12, method="LSODA").y
    for place in range(len(TIMES)):
        state.advance(place)
        expected = at[: p * d, place].reshape(p, d)
        np.testing.assert_allclose(state.look()[0][1].M[0], expected @ W_star.T / d, atol=2e-8)
        np.testing.assert_allclose(state.a[0], at[p * d :, place], atol=2e-8)


def test_a_linear_unit_has_the_closed_solution() -> None:
    """w(t) − w∞ = e^{−d C t} (w(0) − w∞) with C = XᵀX/n: the training risk without noise of labels falls to zero."""
    fields = FIELDS | {"activation": "linear", "p": 1, "k": 1, "samples": 15, "batch_size": 15, "Delta": 0.0}
    case = Case(Problem(**fields), "training_flow", 2, Recording((0.0, 3.0), (), NAMES))
    state = DYNAMICS["training_flow"](replicas_of([case]), case.numerical_options())
    data, (W, W_star) = state._training_set(0), state._weights[0]
    x, d, n = data.x / np.sqrt(fields["d"]), fields["d"], 15
    rates, vectors = np.linalg.eigh(d * x.T @ x / n)
    start = vectors.T @ (W[0] - W_star[0])
    state.advance(1)
    left = start * np.exp(-3.0 * rates)
    np.testing.assert_allclose(vectors.T @ (W[0] - W_star[0]), left, atol=1e-7)
    view = state.look()[0][1]
    assert view.training_risk[0] == pytest.approx(0.5 * np.mean((x @ (vectors @ left)) ** 2), rel=1e-6)
    # five directions without samples stay where they are
    assert np.sum(np.abs(left - start) < 1e-9) == 5


def test_more_samples_come_to_the_flow_on_the_population() -> None:
    """Its mean distance falls as 1/√n."""
    fields = {name: value for name, value in FIELDS.items() if name not in ("samples", "batch_size")}
    population = simulate(Problem(**fields), "gradient_flow", times=TIMES, seeds=range(6), observables=("overlap_M",))
    distances = []
    for n in (400, 6400):
        run = runs(
            "training_flow", fields | {"samples": n, "batch_size": n}, seeds=range(6), observables=("overlap_M",)
        )
        distances.append(float(np.sqrt(((run.overlap_M - population.overlap_M)[:, -1] ** 2).mean())))
    assert distances[0] / distances[1] == pytest.approx(4.0, rel=0.3)


@pytest.mark.slow
def test_dmft_with_short_steps_is_its_limit_of_many_dimensions() -> None:
    """DMFT, extrapolated to steps of no length, has its means; by longer steps it is as far off as full-batch SGD."""
    d, n, times, seeds, names = 400, 600, (0.0, 0.5, 1.0, 1.5), range(12), ("risk", "training_risk")
    fields = {"p": 1, "k": 1, "d": d, "Delta": 0.2, "activation": "erf"}
    of_set = fields | {"samples": n, "batch_size": n}

    def mean_risks(dynamics, length, problem=of_set, observables=names, **options):
        settings = {"times": times, "seeds": seeds, "observables": observables, "options": options}
        return simulate(Problem(gamma=d * length, **problem), dynamics, **settings).isel(time=slice(1, None))

    flow, sgd = mean_risks("training_flow", 0.25), mean_risks("sgd", 0.25)
    far, near = (mean_risks("dmft", length, paths=2**15) for length in (0.5, 0.25))
    for item in names:
        limit = (2.0 * near[item] - far[item]).mean("seed")
        error = flow[item].std("seed", ddof=1) / np.sqrt(len(seeds))
        assert bool((np.abs(flow[item].mean("seed") - limit) < 4.0 * error).all()), item
    of_sgd, of_dmft = (sgd - flow).training_risk.mean("seed"), near.training_risk.mean("seed") - limit
    # at the first time, where terms of second order do not count yet
    assert float(np.abs(of_sgd - of_dmft)[0]) < 0.2 * float(np.abs(of_sgd)[0])
    population = mean_risks("gradient_flow", 0.25, fields, ("risk",))
    apart = (flow.risk - population.risk).isel(time=-1)
    assert float(apart.mean()) > 10.0 * float(apart.std() / np.sqrt(len(seeds))), "a training set is not the population"


def test_exits_are_off_by_no_more_than_they_say() -> None:
    """Compared with a tolerance a thousand times as small."""
    thresholds = (0.2, 0.5)
    loose, tight = (
        runs(
            "training_flow", FIELDS, thresholds=thresholds, observables=("risk",), options={"rtol": rtol, "atol": atol}
        )
        for rtol, atol in ((1e-6, 1e-8), (1e-9, 1e-12))
    )
    assert bool(np.isfinite(loose.exit_time).all())
    off = np.abs(loose.exit_time - tight.exit_time)
    assert bool((off <= loose.exit_time_error).all())
    assert bool((loose.exit_time_error < 1e-4).all())
    assert bool((np.abs(loose.risk - tight.risk) <= loose.risk_error).all())
    assert (loose.risk.isel(time=-1) < 0.6 * loose.risk.isel(time=0)).all()


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"samples": None, "batch_size": 1}, "samples"),
        ({"batch_size": 10}, "batch_size"),
        ({"update": "heavy_ball"}, "update"),
        ({"repeats": 2}, "repeats"),
    ],
)
def test_what_no_flow_has_is_refused(changes: dict, key: str) -> None:
    case = Case(Problem(**(FIELDS | changes)), "training_flow", 0, Recording(TIMES, (), ("risk",)))
    with pytest.raises(InputError) as refusal:
        case.check()
    assert refusal.value.key == key, json.dumps(str(refusal.value))


def test_exits_of_units_with_offsets_are_refused() -> None:
    """Its level is the risk of overlaps, which these units do not have; particles find such exits."""
    problem = Problem(**(FIELDS | VARIANTS["offsets"]))
    with pytest.raises(InputError, match="training_flow finds no exits of units with offsets") as refusal:
        Case(problem, "training_flow", 0, Recording(TIMES, (0.1,), ("risk",))).check()
    assert "training_flow" not in str(refusal.value).partition("that finds them")[2]


def test_exits_on_another_observable_are_those_of_short_steps() -> None:
    """On the misalignment, to three steps of full batches at a tenth of the rate."""
    exits = {"thresholds": (0.1,), "exit_on": "misalignment", "observables": ("risk",)}
    flow = runs("training_flow", FIELDS, **exits).exit_time
    steps = runs("sgd", FIELDS | {"gamma": 0.06}, **exits).exit_time
    assert bool(np.isfinite(flow).all())
    np.testing.assert_allclose(steps, flow, atol=3 * 0.001)


def test_a_wide_network_counts_the_stages_of_its_integration() -> None:
    wide = Problem(**(FIELDS | {"p": 100, "d": 1000}))
    kind = DYNAMICS["training_flow"]
    assert kind.memory(wide, kind.Options()) > 8 * 40 * 100 * 1000
