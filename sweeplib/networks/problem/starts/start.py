"""Start: a law of the student's initial weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.registry import Registry
from sweeplib.networks.problem.parameters import Part, declare_parameters_of

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem

Normals = Callable[[int, int], Array]
"""A function of numbers of rows and columns that returns N(0, 1) numbers of one replica (rows, columns)."""


def no_statement(problem: "Problem") -> Array:
    """Return NaN (p, k): the law fixes no overlap."""
    return np.full((problem.p, problem.k), np.nan)


@dataclass(frozen=True)
class Start(Part):
    """A law of the student's initial weights.

    weights : function (problem, W_star, normals) that returns W (p, d) and depends on its arguments only. W_star (k, d)
        are the teacher's weights; `normals(rows, columns)` returns N(0, 1) numbers of the replica and the start,
        independent for different shapes.
    reads : the parameters of the problem that it acts on, besides its own, p, k, d and `teacher_start`.
    on_sphere : whether all rows have the norm √d, which spherical students need.
    stated : function (problem) that returns the overlaps M (p, k), with rows of the teacher of the norm √d, which the
        law fixes, NaN for the others. They are taken from here, not from the weights, which have them to rounding only.
    """

    name: str
    weights: Callable[["Problem", Array, Normals], Array]
    on_sphere: bool = False
    stated: Callable[["Problem"], Array] = no_statement


def rows_on_sphere(rows: Array) -> Array:
    """Rows (n, d), each scaled to the norm √d."""
    return rows * (np.sqrt(rows.shape[1]) / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None])


def turned_to(W: Array, w_star: Array, m0: float) -> Array:
    """The rows of W (n, d), of norm √d, each rotated in its plane with w* (d,) so that its cosine with w* is m0."""
    axis = w_star / np.linalg.norm(w_star)
    across = W - np.outer(W @ axis, axis)
    # once more: of rows that were nearly along the axis rounding is left
    across -= np.outer(across @ axis, axis)
    across *= np.sqrt(1.0 - m0**2) / np.linalg.norm(across, axis=1, keepdims=True)
    return np.sqrt(W.shape[1]) * (m0 * axis + across)


STARTS: Registry[Start] = Registry("start", declare_parameters_of("start"))
