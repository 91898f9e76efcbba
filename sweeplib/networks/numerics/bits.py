"""The bits of floating-point numbers, for compiled code: intrinsics, for which numba is given the code."""

import llvmlite.ir as llvm
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def float_of_bits(context, bits):  # type: ignore[no-untyped-def]
    """The float64 that has these 64 bits."""
    return types.float64(types.uint64), lambda ctx, build, sig, args: build.bitcast(args[0], llvm.DoubleType())


@intrinsic
def bits_of_float(context, number):  # type: ignore[no-untyped-def]
    """The 64 bits of a float64."""
    return types.uint64(types.float64), lambda ctx, build, sig, args: build.bitcast(args[0], llvm.IntType(64))
