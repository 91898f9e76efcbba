"""Right-hand sides and complete solutions of the overlaps' ODE."""

import math

import numba
import numpy as np

from benchmarks.timing import Benchmark, Work
from sweeplib import Overlaps, Problem, simulate
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.expectations.addresses import drifts_address, no_functions
from sweeplib.networks.maths.expectations.system import System, empty_drifts


def committee(p: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Q, M, P of random weights at d = 2000."""
    stream = np.random.RandomState(0)
    W = stream.randn(p, 2000)
    W *= math.sqrt(2000) / np.linalg.norm(W, axis=1, keepdims=True)
    start = Overlaps.from_weights(W, stream.randn(k, 2000))
    return start.Q, start.M, start.P


@numba.njit(error_model="numpy")
def called(drifts, calls, system, out):  # type: ignore[no-untyped-def]
    """Call the drifts from compiled code, as an integrator does."""
    for _ in range(calls):
        drifts(system, out)


def right_hand_side(p: int, k: int, calls: int, activation: str = "erf") -> Work:
    """Return the compiled drifts."""
    drifts = drifts_address(expectations(activation).drifts)
    Q, M, P = (np.array(part, order="C") for part in committee(p, k))
    system, out = System(Q, M, P, np.ones(p), np.ones(k), 1e-3, 1.0, no_functions()), empty_drifts(p, k)

    def work() -> float:
        called(drifts, calls, system, out)
        return calls

    return work


def numpy_slope(P: np.ndarray, p: int, k: int, gamma: float, Delta: float):  # type: ignore[no-untyped-def]
    """Return the right-hand side of an erf committee in plain NumPy: all I3 and I4 by broadcasting."""
    b = np.concatenate([np.full(p, -1 / p), np.full(k, 1 / k)])

    def slope(_: float, state: np.ndarray) -> np.ndarray:
        Q, M = state[: p * p].reshape(p, p), state[p * p :].reshape(p, k)
        C = np.block([[Q, M], [M.T, P]])
        v = 1 + np.diag(C)
        root = np.sqrt(np.outer(v[:p], v) - C[:p] ** 2)
        I3 = 2 / np.pi * (C[None] * v[:p, None, None] - C[:p, :, None] * C[:p, None, :]) / (v[:p, None] * root)[:, None]
        flow = I3 @ b
        L4 = np.outer(v[:p], v[:p]) - Q**2
        i, j = C[:p, None, :, None], C[None, :p, :, None]
        m, n = np.swapaxes(i, -1, -2), np.swapaxes(j, -1, -2)
        vi, vj, cij = v[:p, None, None, None], v[None, :p, None, None], Q[:, :, None, None]
        L = L4[:, :, None, None]
        L0 = L * C - j * n * vi - i * m * vj + cij * (i * n + j * m)
        own = np.einsum("ijmm->ijm", L0) + L4[:, :, None]
        angles = np.arcsin(L0 / np.sqrt(own[:, :, :, None] * own[:, :, None, :]))
        variance = 4 / np.pi**2 / np.sqrt(L4) * (angles @ b @ b) + 2 / np.pi * Delta / np.sqrt(L4)
        drift_Q = flow[:, :p] + flow[:, :p].T + gamma / p * variance
        return np.concatenate([drift_Q.ravel(), flow[:, p:].ravel()])

    return slope


def numpy_right_hand_side(p: int, k: int, calls: int) -> Work:
    """Return the drifts computed by NumPy."""
    Q, M, P = committee(p, k)
    slope, state = numpy_slope(P, p, k, 8.0, 1e-3), np.concatenate([Q.ravel(), M.ravel()])

    def work() -> float:
        for _ in range(calls):
            slope(0.0, state)
        return calls

    return work


def _ours(to: float) -> Work:
    problem = Problem(gamma=8.0, p=8, k=4, d=2000, Delta=1e-3, activation="erf", teacher_start="gaussian")
    start = Overlaps(*committee(8, 4))

    def work() -> float:
        simulate(problem, "ode", times=(to,), initial=start, options={"rtol": 1e-8, "atol": 1e-10})
        return 1.0

    return work


def _scipy(to: float) -> Work:
    from scipy.integrate import solve_ivp

    Q, M, P = committee(8, 4)
    slope, state = numpy_slope(P, 8, 4, 8.0, 1e-3), np.concatenate([Q.ravel(), M.ravel()])

    def work() -> float:
        solve_ivp(slope, (0.0, to), state, method="DOP853", rtol=1e-8, atol=1e-10)
        return 1.0

    return work


BENCHMARKS = [
    Benchmark(
        "erf right-hand side, p = 8, k = 4",
        "a call",
        right_hand_side(8, 4, 500),
        numpy_right_hand_side(8, 4, 50),
        "NumPy, broadcast",
        reach=8e-6,
    ),
    Benchmark("erf right-hand side, p = 64, k = 4", "a call", right_hand_side(64, 4, 2), reach=25e-3),
    Benchmark("Saad-Solla to t = 10⁴, rtol 1e-8", "a run", _ours(1e4), _scipy(1e4), "scipy DOP853, NumPy", reach=0.12),
]
