"""Work arrays that are declared: their shapes, what they begin with, and what their machine code is kept by."""

import inspect
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.code.numerical_code import numerical_code
from sweeplib.networks.kernels.weights import Room
from sweeplib.networks.numerics.work_arrays import allocator, array

FOUR = 4


class Work(NamedTuple):
    """Three arrays."""

    lam: Array = array("np.zeros((p, lanes))")
    draws: Array = array("np.ones(FOUR * ((p + 3) // FOUR))")
    broken: Array = array("np.zeros(lanes, np.bool_)")


def test_arrays_are_those_that_are_declared():
    work = allocator(Work, "p, lanes")(5, 3)
    assert isinstance(work, Work)
    assert [array.shape for array in work] == [(5, 3), (8,), (3,)]
    assert work.lam.sum() == 0.0
    assert (work.draws == 1.0).all()
    assert work.broken.dtype == np.bool_


def test_machine_code_is_kept_by_the_file_of_the_declaration():
    assert inspect.getfile(allocator(Work, "p, lanes")) == __file__


def test_what_is_declared_is_a_part_of_the_code_that_makes_numbers():
    source = inspect.getsource(Room)
    other = source.replace("np.zeros((2, BLOCK, padded))", "np.empty((2, BLOCK, padded))")
    assert source != other
    assert numerical_code(source)[0] != numerical_code(other)[0]
