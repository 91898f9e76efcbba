"""Compilation of functions that only compiled code calls: once, as a part of their callers.

numba optimises a function together with all that it calls and translates it to machine code, before it does the same
with the caller: the function at the end of a chain of n calls is optimised and translated n times, although only the
code of the last caller runs. With the options `FOR_KERNELS` a function is translated to LLVM's intermediate code alone;
with `OPTIMISED_APART` that code is optimised too. The first compilation of a kernel takes 20 to 45 % less time, and the
results have the same bits.

A library is numba's object for the code of a function. Its private methods are replaced here (`_REPLACED`); in a
version of numba without them the options say nothing of libraries, and compilation takes longer.
"""

from collections.abc import Callable
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _UntranslatedLibrary(JITCodeLibrary):
    """Intermediate code that is optimised, linked into the code of callers, and not translated before."""

    def _finalize_final_module(self) -> None:
        """Do as numba does, but add no module to those that are translated."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _UnoptimisedLibrary(_UntranslatedLibrary):
    """Intermediate code that is linked into the code of callers, and neither optimised nor translated before."""

    def _optimize_final_module(self) -> None:
        """Leave the optimisation to the library of the caller."""


class _LoopCompiler(Compiler):
    """numba's compiler, for a library that is optimised and not translated."""

    library: type[JITCodeLibrary] = _UntranslatedLibrary

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Return the compiled function. Kernels find it by its entry point, which raises a KeyError if Python calls it.

        numba needs a built-in function that takes any arguments: here `str.format` of a text with a field that is not
        given.
        """
        state = self.state
        state.library = self.library(state.targetctx.codegen(), func.__qualname__)
        state.flags.no_compile = True
        done = super().compile_extra(func)
        entry = f"{{{func.__name__} is compiled for kernels alone and cannot be called from Python}}".format
        state.targetctx.insert_user_function(entry, done.fndesc, [done.library])
        return done._replace(entry_point=entry)


class _InnerCompiler(_LoopCompiler):
    """numba's compiler, for a library that is not optimised either."""

    library = _UnoptimisedLibrary


_REPLACED = (
    "_optimize_final_module",
    "_finalize_final_module",
    "_finalize_dynamic_globals",
    "_verify_declare_only_symbols",
)
"""The private methods of numba's libraries that the classes above replace or call."""
LINKS = all(hasattr(JITCodeLibrary, method) for method in _REPLACED)
"""Whether this version of numba has the private methods that the classes above need."""

_WITHOUT_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Python does not call these functions, which therefore need no entry for it."""

OPTIMISED_APART = _WITHOUT_WRAPPERS | ({"pipeline_class": _LoopCompiler} if LINKS else {})
"""Options of numba for long loops that only compiled code calls, and which run faster if they are optimised apart."""

FOR_KERNELS = _WITHOUT_WRAPPERS | ({"pipeline_class": _InnerCompiler} if LINKS else {})
"""Options of numba for functions that only compiled code calls."""
