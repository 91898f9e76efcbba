"""Arguments of functions with an address, sealed in an array: of one type for the callers, whatever they contain.

A kernel that passes a NamedTuple on to a function by its address is compiled once for each class of it, with all its
arrays written out at each call. Given an array of numbers instead, it is compiled once, in a third of the time.

An intrinsic is a function for which numba is given the code: its outer function returns the signature for these types
of arguments and a function that builds the code (context, builder: numba's and LLVM's). `kind` is a type of numba.
"""

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

from sweeplib.engine.files.regular_files import file_text
from sweeplib.networks.numerics.compiled import OneSignature

Words = NDArray[np.int64]
"""The bytes of a value in memory, as whole numbers of 8 bytes."""
PACKED = numba.types.Array(numba.types.int64, 1, "C")
"""The type of what `packed` returns."""


def packed(value: Any, kind: numba.types.Type) -> Words:
    """An array with the fields of a tuple of arrays, numbers, addresses and such tuples, of this numba type.

    Arrays are not copied: what is written to them is seen, and they must live as long as the result is used. TypeError
    for a value of another type, of which compiled code would take one field for another.
    """
    if (actual := numba.typeof(value)) != kind:
        raise TypeError(f"expected a value of the type {kind}; got {actual}")
    out = np.zeros(-(-_data_size(kind) // 8), np.int64)
    _packer(kind)(value, out)
    return out


@cache
def unpacker(kind: numba.types.Type) -> Any:
    """A function for compiled code that returns the value, of the numba type `kind`, from an array of `packed`."""

    def opened(context, where):  # type: ignore[no-untyped-def]
        """Return the signature and the code of the intrinsic, as numba asks for it."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            """Return the code that loads the value at the data of an array."""
            value = context.unpack_value(
                builder, kind, _address(context, builder, kind, signature.args[0], arguments[0])
            )
            # the arrays in it are those that were packed: nobody counts references to them here
            return impl_ret_borrowed(context, builder, kind, _without_references(context, builder, kind, value))

        return kind(where), generate

    return _with_digest(intrinsic(opened), kind)


@cache
def _packer(kind: numba.types.Type) -> OneSignature:
    """The compiled function that writes a value of this numba type to an array."""
    return OneSignature(_pack, store=_store_intrinsic(kind))


def _store_intrinsic(kind: numba.types.Type) -> Any:
    """An intrinsic that stores a value of this numba type at the data of an array."""

    def stored_at(context, value, where):  # type: ignore[no-untyped-def]
        """Return the signature of the intrinsic, to which numba casts the value, and what makes its code."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            """Return the code that stores the value at the data of an array."""
            place = _address(context, builder, kind, signature.args[1], arguments[1])
            context.pack_value(builder, kind, arguments[0], place)
            return context.get_dummy_value()

        return numba.types.none(kind, where), generate

    return _with_digest(intrinsic(stored_at), kind)


def store(value, where):  # type: ignore[no-untyped-def]
    """Stand for the intrinsic that stores a value in an array; `_packer` binds the one of its type to this name."""
    raise NotImplementedError("bound by `packed`")


def _pack(value, out):  # type: ignore[no-untyped-def]
    """Write a value to an array (words,)."""
    store(value, out)


@cache
def _data_size(kind: numba.types.Type) -> int:
    """The bytes in memory of a value of the numba type `kind`."""
    context = cpu_target.target_context
    return context.get_abi_sizeof(context.get_data_type(kind))


def _address(context, builder, kind, array_type, array):  # type: ignore[no-untyped-def]
    """The code of the address of an array's data, as the address of a value of the type `kind`."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(data, context.get_data_type(kind).as_pointer())


def _without_references(context, builder, kind, value):  # type: ignore[no-untyped-def]
    """The code of the value with its arrays marked as those that nobody counts references to: counting costs time.

    The arrays live as long as those that were packed.
    """
    if isinstance(kind, numba.types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, numba.types.BaseTuple):
        for place, field in enumerate(kind.types):
            inner = _without_references(context, builder, field, builder.extract_value(value, place))
            value = builder.insert_value(value, inner, place)
    return value


def _with_digest(function: Any, kind: numba.types.Type) -> Any:
    """The function with a `digest` of the type and of its classes' files, on which cached machine code depends."""
    words = [str(kind), *sorted(file_text(inspect.getfile(kind_of_tuple)) for kind_of_tuple in _classes(kind))]
    function.digest = hashlib.blake2b("\n".join(words).encode(), digest_size=8).hexdigest()
    return function


def _classes(kind: Any) -> set[Callable[..., Any]]:
    """The classes of the NamedTuples in a type of numba, also of those within tuples."""
    classes = {kind.instance_class} if isinstance(kind, numba.types.BaseNamedTuple) else set()
    return classes.union(*map(_classes, kind.types)) if isinstance(kind, numba.types.BaseTuple) else classes
