"""The initial states of cases, computed on request as weights, overlaps or particles.

i is the number of a case among those of a batch. What is drawn is a function of the law of the start, the widths, the
root seed and the seed, so that all dynamics have the same starts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.maths.overlaps import Overlaps, block_overlaps, matrix_of
from sweeplib.networks.problem import STARTS, Problem
from sweeplib.networks.problem.weights import (
    drawn_M,
    drawn_offsets,
    drawn_overlaps,
    drawn_P,
    drawn_q,
    drawn_weights,
    teacher_overlaps,
    teacher_weights,
    weights_of_overlaps,
)
from sweeplib.networks.simulation.cases import Case

Weights = tuple[Sequence[Sequence[float]] | Array, Sequence[Sequence[float]] | Array]
"""W (p, d) of the student and W* (k, d) of the teacher."""
Initial = Overlaps | Weights | None
"""A start that replaces the random ones of problems; None for these."""

REMEMBERED_WIDTH = 128
"""The largest student width for which initial overlaps are cached; many cases share their start."""


class CaseStarts:
    """The initial states of cases: `initial` or, without it, the random starts of their problems.

    Raises InputError if `initial` does not fit a problem.
    """

    def __init__(self, cases: Sequence[Case], initial: Initial) -> None:
        self._cases = cases
        self._draws: dict[int, _Draw] = {}  # by case, made on first use
        self._initial: Overlaps | tuple[Array, Array] | None = None
        if initial is not None:
            self._initial = initial if isinstance(initial, Overlaps) else _arrays(initial)
            for case in cases:
                _check_fit(self._initial, case.problem)

    def _draw_of(self, i: int) -> "_Draw":
        """The random start of case i, made on first use."""
        if i not in self._draws:
            self._draws[i] = _draw(self._cases[i])
        return self._draws[i]

    def weights(self, i: int) -> tuple[Array, Array]:
        """The initial weights of case i: W (p, d) of the student and W* (k, d) of the teacher."""
        draw = self._draw_of(i)
        if self._initial is None:
            return drawn_weights(draw.problem, root_seed=draw.root_seed, seed=draw.seed)
        if isinstance(self._initial, Overlaps):
            return weights_of_overlaps(self._initial, draw.problem.d, root_seed=draw.root_seed, seed=draw.seed)
        W, W_star = self._initial
        return W.copy(), W_star.copy()

    def overlaps(self, i: int) -> Overlaps:
        """The initial overlaps Q, M, P of case i; exact where the law of the start states them."""
        if isinstance(self._initial, Overlaps):
            return self._initial
        draw = self._draw_of(i)
        if self._initial is not None:
            return Overlaps.from_weights(*self._initial)
        return _random_overlaps(draw) if draw.problem.p <= REMEMBERED_WIDTH else _overlaps(draw)

    def block_overlaps(self, i: int, multiplicities: Array) -> tuple[Array, Array, Array]:
        """Return Q (L, p, p), M (L, p, k), P (L, k, k) of case i by blocks of `multiplicities` (L,) columns."""
        W, W_star = self.weights(i)
        return block_overlaps(W, W_star, multiplicities)

    def teacher_overlaps(self, i: int) -> Array:
        """Return the overlaps P (k, k) of the teacher of case i, without a p x p array for wide students."""
        draw = self._draw_of(i)
        if isinstance(self._initial, Overlaps) or draw.problem.p <= REMEMBERED_WIDTH:
            return self.overlaps(i).P
        if self._initial is None:
            return drawn_P(draw.problem, teacher_weights(draw.problem, root_seed=draw.root_seed, seed=draw.seed))
        _, W_star = self._initial
        return W_star @ W_star.T / W_star.shape[1]

    def particles(self, i: int, count: int | None) -> tuple[Array, Array]:
        """The overlaps m (count, k) with the teacher and squared norms q (count,) of units of case i, over d.

        count : how many; None for the p of the problem, of which other counts are independent draws.
        """
        draw = self._draw_of(i)
        problem = draw.problem
        count = problem.p if count is None else count
        is_other = count != problem.p
        if is_other and self._initial is not None:
            expected = f"{problem.p} units, as the problem has; the dynamics asks for {count}"
            raise InputError("the start does not fit the dynamics", key="initial", expected=expected)
        if isinstance(self._initial, Overlaps):
            return self._initial.M.copy(), np.diag(self._initial.Q).copy()
        if self._initial is not None:
            W, W_star = self._initial
            return W @ W_star.T / problem.d, np.einsum("ij,ij->i", W, W) / problem.d
        if is_other:
            # a second layer of p numbers would not fit
            problem = replace(problem, p=count, a=1.0)
        W, W_star = drawn_weights(problem, root_seed=draw.root_seed, seed=draw.seed)
        return drawn_M(problem, W, W_star), drawn_q(problem, W)

    def offsets(self, i: int, count: int) -> Array:
        """The offsets b (count,) of units of case i: drawn by the problem's law, whatever `initial` is."""
        draw = self._draw_of(i)
        return drawn_offsets(self._cases[i].problem, count, root_seed=draw.root_seed, seed=draw.seed)


@dataclass(frozen=True)
class _Draw:
    """A random start: its overlaps are a function of `key`, so that two with the same key are equal and cached once."""

    key: tuple[Any, ...]
    problem: Problem = field(compare=False)
    root_seed: int = field(compare=False)
    seed: int = field(compare=False)


def _draw(case: Case) -> _Draw:
    """Return the random start of a case, with a key that cases of the same start share."""
    problem = case.problem
    law = problem.student_start
    values = tuple(getattr(problem, name) for name in sorted(STARTS[law].acts_on))
    blocks = None if problem.teacher_block is None else (problem.teacher_block, problem.blocks[1])
    widths, P = (problem.p, problem.k, problem.d), teacher_overlaps(problem)
    stated = None if P is None else P.tobytes()
    key = (law, values, problem.teacher_start, blocks, stated, *widths, case.root_seed, case.seed)
    return _Draw(key, problem, case.root_seed, case.seed)


def _overlaps(draw: _Draw) -> Overlaps:
    """The overlaps Q, M, P of the weights of a random start."""
    return drawn_overlaps(draw.problem, *drawn_weights(draw.problem, root_seed=draw.root_seed, seed=draw.seed))


_random_overlaps = lru_cache(maxsize=8192)(_overlaps)
"""`_overlaps`, remembered by the key of a draw."""


def _arrays(weights: Weights) -> tuple[Array, Array]:
    """W and W* as arrays; InputError for what are no two matrices of finite numbers."""
    try:
        W, W_star = weights
    except (TypeError, ValueError):
        expected = "`Overlaps`, or weights (W, W*)"
        raise InputError("not a start", key="initial", value=weights, expected=expected) from None
    return matrix_of("W", W, "not weights"), matrix_of("W_star", W_star, "not weights")


def _check_fit(initial: Overlaps | tuple[Array, Array], problem: Problem) -> None:
    """Raise InputError for a given start whose widths, dimensions or norms are not those of a problem."""
    if isinstance(initial, Overlaps):
        widths, squares = (initial.p, initial.k), np.diag(initial.Q)
    else:
        W, W_star = initial
        if W.shape != (problem.p, problem.d):
            expected = f"W of shape (p, d) = {(problem.p, problem.d)}"
            raise InputError("the start does not fit the problem", key="initial", value=W.shape, expected=expected)
        if W_star.shape[1] != problem.d:
            raise InputError("shapes do not fit", key="W_star", value=W_star.shape, expected="as many columns as W")
        widths, squares = (len(W), len(W_star)), np.einsum("ij,ij->i", W, W) / problem.d
    if widths != (problem.p, problem.k):
        expected = f"(p, k) = {(problem.p, problem.k)}"
        raise InputError("the start does not fit the problem", key="initial", value=widths, expected=expected)
    if problem.spherical and not np.allclose(squares, 1.0, rtol=0, atol=1e-9):
        raise InputError("spherical students start on the sphere", key="initial", expected="Q_ii = 1")
