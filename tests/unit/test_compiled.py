"""Specialised kernels: each has its own code, independent of other kernels compiled from the same template."""

import gc
import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numba
import numpy as np
import pytest
from filelock import FileLock
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import TypingError

from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import inlined, pointer, specialised
from sweeplib.networks.numerics.inner_functions import LINKS


def first(x):
    return x + 1.0


def second(x):
    return 10.0 * x


def _unbound(x):
    raise NotImplementedError


inner = outer = part = _unbound
scale = 1.0
table = (1.0,)


def part_of(x):
    return inner(x)


def whole(x):
    return scale * outer(part(x)) + table[0]


def composed(one, other):
    """Return the template with `one` two levels down and `other` one level down."""
    return specialised(whole, outer=bound(part_of, inner=inlined(other)), part=bound(part_of, inner=inlined(one)))


@pytest.mark.rest
def test_functions_bound_at_different_depths_are_told_apart():
    """Both have the same set of (name, function) pairs at different depths."""
    kernels = composed(first, second), composed(second, first)
    assert kernels[0].__name__ != kernels[1].__name__
    assert [kernel(3.0) for kernel in kernels] == [41.0, 32.0]


@pytest.mark.rest
def test_constants_count():
    plain = {"outer": first, "part": second}
    kernels = [
        specialised(whole, **plain, scale=scale, table=table) for scale, table in ((1.0, (1.0,)), (2.0, (1.0, 5.0)))
    ]
    assert len({kernel.__name__ for kernel in kernels}) == 2
    assert [kernel(1.0) for kernel in kernels] == [12.0, 23.0]


def test_the_same_arguments_give_the_same_kernel():
    assert specialised(whole, outer=first, part=second) is specialised(whole, part=second, outer=first)


def test_a_pointer_is_called_as_the_function_is():
    address = pointer(whole, numba.float64(numba.float64), outer=first, part=second)

    @numba.njit
    def twice(function, x):
        return function(x) + function(x)

    assert twice(address, 1.0) == 24.0


MODULE = """
import json, sys
import numpy as np
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import inlined, over_arrays, specialised

factor, fill, once = 1.0, None, None

def scaled(x):
    for _ in range(2):  # no function so small that it is inlined, and its name lost
        x = x * factor if x > 0.0 else x - factor
    return x

def kernel(x, out):
    fill(x, out)
    for n in range(len(out)):
        out[n] += 100.0 * once(x[n])

def value(number):
    function = bound(scaled, factor=number)
    out = np.empty(1)
    specialised(kernel, fill=over_arrays(function), once=inlined(function))(np.ones(1), out)
    return out[0]

print(json.dumps([value(float(number)) for number in sys.argv[1:]]))
"""


def printed_together(tmp_path: Path, code: str, arguments: list[list[str]], **environment: str) -> list[str]:
    """Return what processes with these arguments print that run the code at the same time, with one cache."""
    path = tmp_path / "kernels.py"
    path.write_text(code)
    environment |= os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    commands = [[sys.executable, str(path), *given] for given in arguments]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for command in commands]
    return [process.communicate()[0] for process in started]


@pytest.mark.slow
def test_kernels_from_the_cache_do_not_take_each_others_functions(tmp_path: Path) -> None:
    """Two kernels compiled in separate processes, whose compilers count alike, then loaded in one process."""

    def values(*numbers: str) -> list[float]:
        return json.loads(*printed_together(tmp_path, MODULE, [[*numbers]]))

    assert [values("2"), values("3")] == [[404.0], [909.0]]
    assert values("2", "3") == [404.0, 909.0]
    assert values("3", "2") == [909.0, 404.0]


@inlined
def calling(x):
    return called(x) + 1.0


@inlined
def called(x):
    return 3.0 * x


def calls(x):
    return calling(x)


def test_what_an_inlined_function_calls_may_be_defined_after_it():
    assert specialised(calls)(2.0) == 7.0


@inlined
def fewest(x):
    values = np.empty(3)
    values[:] = x
    return values


@inlined
def some(x):
    if x < 0.0:
        raise ValueError("negative")
    return fewest(x).sum()


def most(x):
    return some(x) + some(2.0 * x)


def test_a_function_for_kernels_cannot_be_called_from_python():
    with pytest.raises(KeyError, match=r"calling.* is compiled for kernels alone and cannot be called from Python"):
        calling(2.0)


@pytest.mark.rest
def test_parts_are_translated_to_machine_code_in_their_callers_alone(monkeypatch, tmp_path):
    """They may allocate, raise and call each other."""
    translated = []
    finalize = JITCodeLibrary._finalize_specific

    def counted(library):
        translated.append(library.name)
        finalize(library)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", counted)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    kernel = specialised(most)
    assert kernel(2.0) == 18.0
    assert [name for name in translated if "__" in name] == [kernel.__name__]
    with pytest.raises(ValueError, match="negative"):
        kernel(-1.0)
    assert LINKS


@inlined
def power(x, exponent):
    result = 1.0
    for _ in range(exponent):
        result *= x
    return result


def polynomial(x):
    return 1.0 + 2.0 * power(x, 1) + power(x, 2)


def test_constants_do_not_compile_a_function_again(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))  # code that is cached is not compiled
    assert specialised(polynomial)(2.0) == 9.0
    assert [tuple(map(str, types)) for types in power.overloads] == [("float64", "int64")]


class Collections(event.Listener):
    """Whether garbage was collected at the start of each compilation."""

    def __init__(self):
        self.seen = []

    def on_start(self, event):
        self.seen.append(gc.isenabled())

    def on_end(self, event):
        pass


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_after_a_compilation_as_before(collects, tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    listener = Collections()
    try:
        if not collects:
            gc.disable()
        with event.install_listener("numba:compile", listener):
            kernel = specialised(whole, outer=first, part=second, scale=0.5 if collects else 0.25)
            assert kernel(1.0) == (6.5 if collects else 3.75)
            with pytest.raises(TypingError):
                kernel("one")
        assert listener.seen
        assert not any(listener.seen)
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_an_unbound_name_is_an_error():
    with pytest.raises(NotImplementedError):
        whole(1.0)


SAVED_SLOWLY = """
import sys, time
from numba.core.caching import IndexDataCacheFile
from sweeplib.networks.numerics.compiled import specialised

load_index = IndexDataCacheFile._load_index

def slowly(self):
    found = load_index(self)
    time.sleep(0.2)
    return found

IndexDataCacheFile._load_index = slowly

def twice(x):
    return 2 * x

print([specialised(twice)(eval(number)) for number in sys.argv[1:]])
"""


@pytest.mark.slow
def test_processes_that_save_at_once_keep_their_own_code(tmp_path: Path) -> None:
    """Two processes compile one kernel for two types and save it slowly; a third loads both."""
    assert printed_together(tmp_path, SAVED_SLOWLY, [["3"], ["1.5"]]) == ["[6]\n", "[3.0]\n"]
    assert printed_together(tmp_path, SAVED_SLOWLY, [["3", "1.5"]]) == ["[6, 3.0]\n"]


@pytest.mark.slow
def test_processes_that_start_together_compile_a_kernel_once(tmp_path: Path) -> None:
    printed = printed_together(tmp_path, SAVED_SLOWLY, [["2"]] * 3, NUMBA_DEBUG_CACHE="1")
    assert all(lines.splitlines()[-1] == "[4]" for lines in printed)
    assert sorted(lines.count("data saved to") for lines in printed) == [0, 0, 1]


@pytest.mark.slow
def test_a_kernel_in_the_cache_is_loaded_while_another_process_compiles(tmp_path: Path) -> None:
    """It compiles another signature, say: its lock is held."""
    assert printed_together(tmp_path, SAVED_SLOWLY, [["3"]]) == ["[6]\n"]
    [lock] = (tmp_path / "cache").rglob("*.lock")
    with FileLock(lock):
        assert printed_together(tmp_path, SAVED_SLOWLY, [["3"]]) == ["[6]\n"]


def times(factor):
    """Return a function that holds its factor in a closure."""

    def value(x):
        return factor * x

    return value


@pytest.mark.rest
@pytest.mark.parametrize("factors", [(2.0, 5.0), (5.0, 2.0), (5.0, 5.0)])
def test_closures_of_one_function_are_told_apart(factors):
    """The functions have the same source file and code; only their closures differ."""
    one, other = map(times, factors)
    assert specialised(whole, outer=one, part=other)(1.0) == factors[0] * factors[1] + 1.0


kind = None


def named(row):
    return kind(row[0], row[1])


def test_machine_code_is_told_apart_by_the_fields_of_a_tuple():
    """The first field of one is the last of the other; the code that fills them is the same."""
    one, other = namedtuple("Kind", ("x", "y")), namedtuple("Kind", ("y", "x"))
    names = {specialised(named, kind=each).py_func.__name__ for each in (one, other)}
    assert len(names) == 2


BESIDE = """
import constants
from constants import FACTOR, TABLE

def of_a_module(x):
    return constants.FACTOR * x

def of_a_default(x, factor=FACTOR):
    return factor * x

def of_an_array(x):
    return TABLE[1] * x
"""
RUN = """
import beside, kernels
from sweeplib.networks.numerics.compiled import specialised
functions = beside.of_a_module, beside.of_a_default, beside.of_an_array
print(*(specialised(kernels.kernel, inner=function)(1.0) for function in functions))
"""


@pytest.mark.slow
def test_machine_code_is_not_older_than_the_constants_of_another_file(tmp_path):
    """The compiler treats constants of an imported file as constants."""
    (tmp_path / "beside.py").write_text(BESIDE)
    (tmp_path / "kernels.py").write_text("inner = None\n\ndef kernel(x):\n    return inner(x) + 1.0\n")
    for factor in (2.0, 31.0):
        (tmp_path / "constants.py").write_text(
            f"import numpy as np\nFACTOR = {factor}\nTABLE = np.array([0.0, FACTOR])\n"
        )
        done = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(factor + 1.0)] * 3
