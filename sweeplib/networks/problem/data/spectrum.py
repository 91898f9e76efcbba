"""Gaussian inputs x ~ N(0, Σ/d) with the labels of a target; Σ has blocks of equal eigenvalues, and the trace d.

Coordinates are the eigenvectors of Σ, in the order of the blocks: block b has the eigenvalue λ_b and d_b coordinates.
A data law of this kind is the eigenvalues and the multiplicities of a problem; `law_of` makes it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.problem.data.data import DATA, Blocks, DataLaw
from sweeplib.networks.problem.data.teacher_student import expectations
from sweeplib.networks.problem.parameters import Parameters, parameter

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem

Positive = Annotated[float, Field(gt=0, le=1e100)]
"""A number in proportion to others, whose sums are finite."""
Proportions = Annotated[tuple[Positive, ...], Field(min_length=1)]
Block = Annotated[int, Field(ge=1)]


class TeacherBlocks(Parameters):
    """Where the rows of the teacher are."""

    teacher_block: Block | tuple[Block, ...] | None = parameter(None, "block of the teacher's rows", r"b^*", 1)
    """number of the block of eigenvalues in which the teacher's rows are, the first is 1; one for all rows, or one a
    row. By default rows have all coordinates."""


class Levels(TeacherBlocks):
    """The eigenvalues λ_b of the blocks, and the parts d_b/d of the coordinates."""

    eigenvalues: Proportions = parameter(..., "eigenvalues of the inputs", r"\lambda_b", [2.0, 0.5])
    """eigenvalues λ_b > 0 of `spectrum`, one a block. They are scaled so that E‖x‖² = 1."""
    fractions: Proportions = parameter(..., "parts of the coordinates", "d_b/d", [1.0, 2.0])
    """parts of the coordinates that have the eigenvalues of `spectrum`, in proportion; d_b are the nearest whole
    numbers."""


def inputs(numbers: Array, key: object, seed: object, number: object, x: Array) -> float:
    """Multiply each of the N(0, 1) numbers x (d,) by the root of its eigenvalue, in `numbers` (d,).

    Return 0: no part of the label comes with the inputs. It needs no further random numbers.
    """
    for j in range(x.shape[0]):
        x[j] *= numbers[j]
    return 0.0


def normalised(eigenvalues: Sequence[float] | Array, sizes: Sequence[int]) -> Blocks:
    """The eigenvalues (L,), scaled so that their mean over all coordinates is one, and the multiplicities `sizes`."""
    values = np.asarray(eigenvalues, dtype=float)
    return tuple((values * (sum(sizes) / (values @ np.asarray(sizes)))).tolist()), tuple(sizes)


def multiplicities(fractions: Sequence[float], d: int, key: str, value: object) -> tuple[int, ...]:
    """Whole numbers of the sum d, near d times the fractions, which need not add up to one.

    InputError if one is zero, with the parameter `key` and its `value`, of which the fractions are made.
    """
    ends = np.rint(np.cumsum(fractions) * (d / sum(fractions))).astype(int)
    sizes = tuple(np.diff(ends, prepend=0).tolist())
    if min(sizes) < 1:
        raise InputError("a block without coordinates", key=key, value=value, expected=f"parts of at least 1/d = 1/{d}")
    return sizes


def check_teacher(problem: "Problem") -> None:
    """Raise InputError for rows of the teacher in blocks that do not exist, or with fewer coordinates than it needs."""
    chosen, (_, sizes) = problem.teacher_block, problem.blocks
    if chosen is None:
        return
    rows = chosen if isinstance(chosen, tuple) else (chosen,) * problem.k
    if len(rows) != problem.k or max(rows, default=1) > len(sizes):
        expected = f"a block of {len(sizes)}, 1 to {len(sizes)}; or k = {problem.k} of them, one a row"
        raise InputError("no such block", key="teacher_block", value=chosen, expected=expected)
    for block in rows:
        if problem.teacher_start == "orthogonal" and rows.count(block) > sizes[block - 1]:
            expected = f"at most {sizes[block - 1]} orthogonal rows in block {block}, the number of its coordinates"
            raise InputError("no orthogonal teacher", key="teacher_block", value=chosen, expected=expected)


def law_of(name: str, label: str, parameters: type[Parameters], blocks: "Callable[[Problem], Blocks]") -> DataLaw:
    """The data law of Gaussian inputs with a spectrum, from its name, its label (LaTeX) and its own parameters.

    blocks : function of a problem that returns eigenvalues and multiplicities, or raises InputError.
    """
    return DataLaw(name, label, inputs, expectations, blocks=blocks, parameters=parameters, check=check_teacher)


def levels(problem: "Problem") -> Blocks:
    """The eigenvalues of a problem, scaled, and their multiplicities, by its fractions of the coordinates."""
    if len(problem.eigenvalues) != len(problem.fractions):
        expected = f"{len(problem.eigenvalues)} numbers, one an eigenvalue"
        raise InputError("wrong length", key="fractions", value=list(problem.fractions), expected=expected)
    sizes = multiplicities(problem.fractions, problem.d, "fractions", list(problem.fractions))
    return normalised(problem.eigenvalues, sizes)


DATA.add(law_of("spectrum", r"x \sim \mathcal{N}(0, \Sigma/d)", Levels, levels))
