"""A type of numba for vectors of numbers: a rule that is written for numbers is compiled for many at a time too.

The rule computes with entries of arrays, `Q[i, j]`, which are numbers or, in arrays of `vectors`, those of `WIDTH`
lanes. What is done to a vector is done in each lane alone; a number beside vectors is the same in all lanes. The rule
takes its `room` here, and chooses by what is so `everywhere`.

For each of these functions numba is told the type of its result (`type_callable`) and its code (`lower_builtin`). Code
is built by `builder`, LLVM's, with the help of numba's `context`; `sig` has the types, `values` the arguments.
"""

import operator
from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import register_model, type_callable

WIDTH = 16
"""The lanes of a vector: a few of the processor's, which need not wait for one another."""


class _Vector(types.Type):
    """The type of a vector of numbers, or of flags; `code` is the type in LLVM, a vector of WIDTH entries."""

    def __init__(self, name: str, entry: Any) -> None:
        super().__init__(name)
        self.code = ir.VectorType(entry, WIDTH)

    def can_convert_from(self, context: Any, other: types.Type) -> Any:
        """Return that numbers may be given for vectors of numbers: they become vectors of equal numbers."""
        return Conversion.safe if self is _NUMBERS and isinstance(other, types.Float | types.Integer) else None


_NUMBERS, _FLAGS = _Vector("numbers", ir.DoubleType()), _Vector("flags", ir.IntType(1))
"""The types of vectors in registers, of doubles and of truth values."""


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    """A vector in compiled code: the type of LLVM itself."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.code)


@lower_cast(types.Float, _Vector)
@lower_cast(types.Integer, _Vector)
def _equal(context: Any, builder: Any, kind: Any, _: Any, value: Any) -> Any:
    """Convert a number to a vector of equal numbers."""
    number, index = context.cast(builder, value, kind, types.float64), ir.IntType(32)
    first = builder.insert_element(ir.Constant(_NUMBERS.code, ir.Undefined), number, ir.Constant(index, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(index, WIDTH), None))


def _define(function: Any, build: Callable[..., Any], arguments: int = 2, result: Any = _NUMBERS) -> None:
    """Let a function of `arguments` numbers take vectors.

    `build` (builder, *vectors) returns the code of the result.
    """

    class Template(AbstractTemplate):
        """The types that the function takes, of which one at least is a vector."""

        def generic(self, kinds: Any, _: Any) -> Any:
            """Return the signature for these types of arguments; None if the function does not take them."""
            fits = len(kinds) == arguments and _NUMBERS in kinds
            return signature(result, *[_NUMBERS] * arguments) if fits else None

    def code(context: Any, builder: Any, _: Any, values: Any) -> Any:
        return build(builder, *values)

    infer_global(function)(Template)
    lower_builtin(function, *[_NUMBERS] * arguments)(code)


def _instruction(name: str, *first: str) -> Callable[..., Any]:
    """The code of one instruction of LLVM on vectors, for `_define`."""
    return lambda builder, *vectors: getattr(builder, name)(*first, *vectors)


for _name, _code in {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}.items():
    _define(getattr(operator, _name), _instruction(_code))
    _define(getattr(operator, f"i{_name}"), _instruction(_code))
_define(operator.neg, _instruction("fneg"), 1)
_define(operator.eq, _instruction("fcmp_ordered", "=="), result=_FLAGS)


def vectors(array: Any, lane: int) -> Any:
    """In compiled code the array (...) of the vectors in lanes `lane`, `lane` + 1, ... of an array (..., lanes).

    Of an array (lanes,) it is one vector. It refers to the array, which must outlive it.
    """
    raise NotImplementedError("vectors are for compiled code")


def room(shape: tuple[int, ...], number: Any) -> Any:
    """An empty array of this shape, for numbers or, in compiled code, for vectors if `number` is one."""
    return np.empty(shape)


def everywhere(flag: Any) -> Any:
    """Whether a flag is set or, in compiled code, the flags of all lanes of a vector."""
    return flag


@type_callable(vectors)
def _type_of_vectors(_: Any) -> Any:
    """Return how the type of `vectors` follows from the array's type."""
    return lambda array, lane: _entries(array.ndim - 1, "A") if array.ndim > 1 else _NUMBERS


@lower_builtin(vectors, types.Array, types.Integer)
def _vectors(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    """The code of `vectors`."""
    array = context.make_array(sig.args[0])(context, builder, values[0])
    data = builder.bitcast(builder.gep(array.data, [values[1]]), _NUMBERS.code.as_pointer())
    if sig.return_type is _NUMBERS:
        # a row of lanes may begin at any double: LLVM would take its address for a multiple of the vector
        return builder.load(data, align=8)
    shape, strides = (cgutils.unpack_tuple(builder, dims)[:-1] for dims in (array.shape, array.strides))
    return _array(context, builder, sig.return_type, data, shape, strides, None)


@type_callable(room)
def _type_of_room(_: Any) -> Any:
    """Return how the type of a room follows from the types of its shape and of its numbers."""
    return lambda shape, number: (
        _entries(len(shape), "C") if number is _NUMBERS else types.Array(number, len(shape), "C")
    )


@lower_builtin(room, types.UniTuple, _Vector)  # type: ignore[attr-defined]
def _room(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    """The code of `room` for vectors: an array whose entries are aligned as vectors."""
    lengths, strides = cgutils.unpack_tuple(builder, values[0]), [context.get_constant(types.intp, 8 * WIDTH)]
    for length in reversed(lengths):
        strides.insert(0, builder.mul(strides[0], length))
    meminfo = context.nrt.meminfo_alloc_aligned(builder, strides[0], 8 * WIDTH)
    data = builder.bitcast(context.nrt.meminfo_data(builder, meminfo), _NUMBERS.code.as_pointer())
    return _array(context, builder, sig.return_type, data, lengths, strides[1:], meminfo)


@lower_builtin(room, types.UniTuple, types.Float)  # type: ignore[attr-defined]
def _room_for_numbers(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    """The code of `room` for numbers: an array like numpy's."""
    return context.compile_internal(builder, lambda shape, number: np.empty(shape), sig, values)


def _entries(dimensions: int, layout: Literal["A", "C"]) -> Any:
    """The type of an array of vectors with these dimensions; it is not aligned, as lanes may begin anywhere."""
    return types.Array(cast("types.Type", _NUMBERS), dimensions, layout, aligned=False)


def _array(context: Any, builder: Any, kind: Any, data: Any, shape: Any, strides: Any, meminfo: Any) -> Any:
    """The code of an array of vectors at the address `data`, with these lengths and strides.

    `meminfo` owns the memory.
    """
    from numba.np.arrayobj import populate_array  # .03 s, which a command without kernels need not spend

    array = context.make_array(kind)(context, builder)
    populate_array(array, data, shape, strides, 8 * WIDTH, meminfo)
    return array._getvalue()


@type_callable(everywhere)
def _type_of_everywhere(_: Any) -> Any:
    """Return that `everywhere` is a flag."""
    return lambda flag: types.boolean


@lower_builtin(everywhere, _Vector)
def _everywhere(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    """The code of `everywhere` for the flags of all lanes."""
    bits = builder.bitcast(values[0], ir.IntType(WIDTH))
    return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, -1))


@lower_builtin(everywhere, types.Boolean)
def _itself(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    """The code of `everywhere` for one flag: the flag."""
    return values[0]
