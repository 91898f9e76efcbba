"""The product of two fields, f* = λ*_1 λ*_2, for students with any activation.

With u, v = (λ*_1 ± λ*_2)/√2 it is (u² − v²)/2: a committee of two squares with a* = (1, −1) on rotated fields. Its
expectations are therefore those of the student and a teacher of squares, at the rotated M and P; Ψ^M is rotated
back. The rotation O = [[1, 1], [1, −1]]/√2 is its own inverse.
"""

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.numerics.binding import bound
from sweeplib.problem.targets.target import TARGETS, Target

if TYPE_CHECKING:
    from sweeplib.maths.expectations import Expectations
    from sweeplib.maths.expectations.system import Drifts, Pair, System

Array = NDArray[np.float64]

HALF = 0.5**0.5
"""1/√2."""


def fill(lam_star: Array, a_star: Array, out: Array) -> None:
    """Fill out (n,) with λ*_1 λ*_2 of lam_star (2, n); a_star is not used."""
    for i in range(out.shape[0]):
        out[i] = lam_star[0, i] * lam_star[1, i]


def labels(teacher_activation: str) -> Any:
    """`fill`, whatever the teacher's activation."""
    return fill


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by `expectations`")


squares_risk = squares_drifts = squares_in_lanes = rotated_M = rotated_P = signs = rotated = made = _unbound


def _rotated_M(M: Array) -> Array:
    """M O, M (p, 2, ...)."""
    out = np.empty_like(M)
    out[:, 0] = HALF * (M[:, 0] + M[:, 1])
    out[:, 1] = HALF * (M[:, 0] - M[:, 1])
    return out


def _rotated_P(P: Array) -> Array:
    """O P O, P (2, 2, ...) symmetric."""
    out = np.empty_like(P)
    mean = 0.5 * (P[0, 0] + P[1, 1])
    out[0, 0] = mean + P[0, 1]
    out[1, 1] = mean - P[0, 1]
    out[0, 1] = 0.5 * (P[0, 0] - P[1, 1])
    out[1, 0] = out[0, 1]
    return out


def _signs(a_star: Array) -> Array:
    """The second layer (1, −1) of the squares, in the shape of a_star (2, ...)."""
    out = np.ones_like(a_star)
    out[1] = -out[1]
    return out


def _risk(pair: "Pair", Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """See `Expectations.risk`."""
    squares_risk(pair, Q, rotated_M(M), rotated_P(P), a, signs(a_star), out)


def _rotated(system: "System") -> "System":
    """The system of the squares."""
    M, P, a_star = rotated_M(system.M), rotated_P(system.P), signs(system.a_star)
    return made(system.Q, M, P, system.a, a_star, system.Delta, system.stretch, system.pair)


def _drifts(system: "System", out: "Drifts") -> None:
    """See `Expectations.drifts`."""
    squares_drifts(rotated(system), out)
    out.M[:] = rotated_M(out.M)


def _in_lanes(filled: int, system: "System", out: "Drifts") -> None:
    """See `Expectations.in_lanes`."""
    squares_in_lanes(filled, rotated(system), out)
    out.M[:] = rotated_M(out.M)


@cache
def _of_student(activation: str) -> "Expectations":
    from sweeplib.maths.expectations import Expectations, expectations
    from sweeplib.maths.expectations.system import System
    from sweeplib.numerics.compiled import inlined

    rotations = {"rotated_M": inlined(_rotated_M), "rotated_P": inlined(_rotated_P), "signs": inlined(_signs)}
    rotations["rotated"] = inlined(bound(_rotated, made=System, **rotations))

    def of_one(rule: Any) -> Any:
        return bound(_drifts, squares_drifts=inlined(rule), **rotations)

    def of_many(rule: Any) -> Any:
        return bound(_in_lanes, squares_in_lanes=inlined(rule), **rotations)

    def of_pair(pair: Expectations) -> Expectations:
        return replace(
            pair,
            name=f"{activation}|lam1*lam2",
            risk=bound(_risk, squares_risk=inlined(pair.risk), **rotations),
            drifts=of_one(pair.drifts),
            in_lanes=of_many(pair.in_lanes),
            finer=None if pair.finer is None else of_pair(pair.finer),
            in_turn=None if pair.in_turn is None else of_many(pair.in_turn),
        )

    return of_pair(expectations(activation, "square"))


def expectations(activation: str, teacher_activation: str) -> "Expectations":
    """The expectations for a student with this activation; the teacher's activation is not used."""
    return _of_student(activation)


TARGETS.register("lam1*lam2", Target("lam1*lam2", r"\lambda^*_1 \lambda^*_2", labels, expectations, k=2))
