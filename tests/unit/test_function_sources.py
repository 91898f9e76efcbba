"""The source and the code of a function: what it reaches in its file, script or notebook, and nothing that is stale."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sweeplib
from sweeplib import InputError
from sweeplib.config.functions import called, file_of
from sweeplib.engine.code import sources
from sweeplib.engine.code.plugins import others_in_plugin
from sweeplib.functions.function import MAIN, Function, Source, registered
from sweeplib.functions.source import code_of, refuse_edits, refuse_other_module, refuse_other_values, source_of
from sweeplib.functions.stored import load_stored, sealed_content, stored
from sweeplib.functions.values import are_same
from tests.plugged import nothing_left

pytestmark = pytest.mark.usefixtures("forgotten_functions")

HEAD = "from sweeplib import simulator\n"
OWN = '@simulator(y="1")\ndef own(x: float = 1.0):\n    return {}\n'


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str | Source], Function]:
    """Return what imports a text as a module, and gives its function `own`."""
    folder, numbers = tmp_path_factory.mktemp("modules"), iter(range(10**6))

    def function(source: str | Source) -> Function:
        name = f"text_{next(numbers)}"
        path = folder / f"{name}.py"
        text, files, _ = (source, {}, None) if isinstance(source, str) else source
        for file, content in files.items():
            (folder / file).write_bytes(content)
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return registered("own")

    return function


def own_of(text: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "written"}
    exec(compile(text, "written", "exec"), names)
    return names["own"].function


@pytest.mark.parametrize(
    ("before", "result"),
    [
        ("n = 3\nn = n * 2", "n"),
        ("n = 'a'\nfirst = len(n)\nn = 'bcd'\nsecond = len(n)", "first + 10 * second"),
        ("n = 2.0\nn: float", "n"),
        ("w = [0, 0]\nw[0] = 1\nw.append(4)", "sum(w)"),
        ("w = [0, 0]\nfor i in range(2):\n    w[i] = i + 3", "sum(w)"),
        ("import math\nn = math.sqrt(4)\ndel math", "n"),
        ("n = 1\nif __name__ == '__main__':\n    n = 5\nelse:\n    n = 7", "n"),
        ("n = 1\nif __name__ != '__main__':\n    n = 5", "n"),
        ("n = 1\ndef given():\n    return n\nm = given()\nn = 2", "m + 10 * n"),
        ("class A:\n    n = 1\nA.n = 4\na = A()\na.m = 3", "A.n + a.m"),
        ("try:\n    from nowhere import n\nexcept ImportError:\n    n = 2", "n"),
        ("from math import *", "sqrt(4.0)"),
        ("import os.path\nimport os", "len(os.path.join('a', 'b'))"),
        ("n = [1]\nn += [2]", "len(n)"),
        ("n = 0\ndef count():\n    global n\n    n += 1", "count() or 2"),
        ("class A:\n    made = []\n    def __init__(self):\n        A.made.append(self)\na = A()", "len(A.made)"),
        ("class A:\n    n = 2\n    def of(self):\n        return self.n\na = A()\nof = a.of\na.n = 5", "of()"),
        ("class A:\n    n = 1\na = A()\nclass A:\n    n = 2", "a.n + 3 * A.n"),
        ("def f(x):\n    return 2 * x\nlaws = {'a': [f, int('3')]}", "laws['a'][0](1) + laws['a'][1]"),
        (
            "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass Box(Generic[T]):\n    n = 2\nbox = Box()",
            "box.n if T else 0",
        ),
        ("k = int('3')\ndef g(x=k):\n    return x", "g() + k"),
        ("def main():\n    return own()\nargs = [main, len('ab')]", "args[1] if callable(args[0]) else 0"),
        ("import math, functools\nlaw = functools.partial(math.pow, float('3'))", "law(2)"),
        ("k = 1\ndel k\ndef f():\n    return k", "2 if callable(f) else 3"),
        ("table = {}\ntable['a'] = lambda: k\nk = 2", "table['a']()"),
        ("table = {'a': 1}\ndel table['a']", "len(table)"),
        ("n = 2\ndef f():\n    return [n for _ in range(2)]", "sum(f())"),
        (
            "from functools import singledispatch\n@singledispatch\ndef area(x):\n    return 0\n"
            "@area.register\ndef of_text(x: str):\n    return 3",
            "area('a')",
        ),
        (
            "class Base:\n    kinds = []\n    def __init_subclass__(cls):\n        Base.kinds.append(cls)\n"
            "class A(Base):\n    pass\nclass B(A):\n    pass",
            "len(Base.kinds)",
        ),
        (
            "class Meta(type):\n    made = []\n    def __init__(cls, *parts):\n        Meta.made.append(cls)\n"
            "class A(metaclass=Meta):\n    pass",
            "len(Meta.made)",
        ),
        (
            "laws = {}\ndef law(f):\n    laws[f.__name__] = f\n    return f\n@law\ndef normal():\n    return 3",
            "laws['normal']()",
        ),
    ],
)
def test_the_source_of_a_function_gives_what_its_file_gives(
    before: str, result: str, imported: Callable[[str | Source], Function]
) -> None:
    """Also with earlier values of a name, changes in place, `del`, and blocks for scripts alone."""
    function = imported(f"{HEAD}{before}\nunused = print\n{OWN.format(result)}")
    source = source_of(function)
    assert imported(source)() == function() and "unused" not in source.text


@pytest.mark.parametrize(
    ("before", "result", "name"),
    [
        ("class A:\n    n = 1\nsetattr(A, 'n', 2)", "A.n", "A"),
        ("class A:\n    def __init__(self):\n        self.n = [1]\na = A()\nn = a.n\nn[0] = 2", "a.n[0]", "a"),
        ("class A:\n    n = 1\nlayers = [A(), A()]\nfor layer in layers:\n    layer.n = 2", "layers[0].n", "layers"),
        ("class A:\n    pass\nclass B(A):\n    pass", "len(A.__subclasses__())", "A"),
        ("import pandas as pd\nd = pd.DataFrame({'a': [1]})\ne = d\ne['a'] = [2]", "d['a'][0]", "d"),
        ("import xarray as xr\nd = xr.DataArray([1.0])\ne = d\ne[0] = 2.0", "d[0]", "d"),
        ("d = {1}\nset.add(d, 2) or d", "len(d)", "d"),
        ("d = [1]\ndef setup(x=d):\n    x[0] = 2\nsetup()", "d[0]", "d"),
        ("def f():\n    return g.n\ndef g():\n    pass\ng.n = 1\nvars(g)['n'] = 2", "f()", "g"),
    ],
)
def test_a_value_that_the_source_does_not_give_is_refused(
    before: str, result: str, name: str, imported: Callable[[str | Source], Function]
) -> None:
    """Whatever has changed it: through another name, by a function, in a loop."""
    function = imported(f"{HEAD}{before}\n{OWN.format(result)}")
    source = source_of(function)
    written = imported(source)
    if written() == function():
        refuse_other_values(function, written, source.compared)
    else:
        with pytest.raises(InputError, match=f"^{name} has another value here"):
            refuse_other_values(function, written, source.compared)


SHARED = """
import threading
import numpy as np
class Model:
    T = 0.0
class Holder:
    def __init__(self, model):
        self.model = model
class Locked(Holder):
    lock = property(lambda self: threading.Lock())
class Solver:
    def __init__(self):
        self.u = np.zeros(4)
        self.inner = self.u[1:-1]
model = Model()
holder = Holder(model)
locked = [Locked(model), threading.Lock()]
other = [0.0]
by_list = Holder(other)
solver = Solver()
data = np.ones((2, int("3")))
row, column = data[0], data[:, 1]
first, second = np.ones(2), np.ones(2)
def put(model, x):
    model.T = x
"""


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("model.T = x", "holder.model.T"),
        ("put(model, x)", "holder.model.T"),
        ("model.T = x", "locked[0].model.T"),
        ("other[0] = x", "by_list.model[0]"),
        ("solver.inner[:] = x", "solver.u.sum()"),
        ("data[:] = x", "row.sum() + column.sum()"),
        ("row[:] = x", "column.sum()"),
        ("first[:] = x", "second.sum()"),
    ],
)
def test_values_with_parts_in_common_have_them_in_common_elsewhere(
    line: str, result: str, imported: Callable[[str | Source], Function]
) -> None:
    """What a function changes by one name it reads by another."""
    function = imported(f"{HEAD}{SHARED}{OWN.replace('return {}', f'{line}; return {result}')}")
    function(x=2.0)
    assert imported(source_of(function))(x=3.0) == function(x=3.0) != function(x=4.0) or "second" in result


CALLED = """
import functools
from collections import defaultdict
import pandas as pd
import xarray as xr
table = {}
counts = defaultdict(int)
calls = 0
days = pd.Series(pd.date_range("2020", periods=2))
curve = xr.DataArray([1.0, 2.0], dims="x", coords={"x": [0.0, 1.0]})
def counted(f):
    @functools.wraps(f)
    def counting():
        counting.calls += 1
        return f()
    counting.calls = 0
    return counting
@counted
def law():
    return 1.0
"""
LINES = (
    "if x not in table: table[x] = x",
    "table.setdefault(x, x)",
    "counts[x] += 1",
    "global calls; calls += 1",
    "days.diff().max()",
    "curve.interp(x=0.5)",
    "law()",
)


@pytest.mark.parametrize("line", LINES)
def test_a_call_before_a_sweep_does_not_change_the_code(
    line: str, imported: Callable[[str | Source], Function]
) -> None:
    """What a call leaves in a cache, or pandas and xarray in their values, is no reason to compute cases again."""
    function = imported(f"{HEAD}{CALLED}{OWN.replace('return {}', f'{line}; return 1.0')}")
    before = source_of(function)
    function(x=7.0)
    after = source_of(function)
    assert after.text == before.text
    refuse_other_values(function, imported(after), after.compared)


def test_what_others_set_in_a_cache_counts(imported: Callable[[str | Source], Function]) -> None:
    lines = "counts = {'calls': 0, 'scale': 1.0}\ndef tune():\n    counts['scale'] = 3.0\ntune()\n"
    body = "counts['calls'] += 1; return counts['scale']"
    function = imported(f"{HEAD}{lines}{OWN.replace('return {}', body)}")
    assert imported(source_of(function))() == function() == 3.0


def test_a_call_that_sets_up_and_changes_a_value_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imported: Callable[[str | Source], Function]
) -> None:
    """The value is as it is now, and would be changed once more."""
    (tmp_path / "own_counter.py").write_text("def count(values):\n    values['n'] += 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = "import own_counter\nvalues = {'n': 1}\nown_counter.count(values)\n"
    body = "return values['n'] + (own_counter is None)"
    function = imported(f"{HEAD}{before}{OWN.replace('return {}', body)}")
    source = source_of(function)
    written = imported(source)
    with pytest.raises(InputError, match="values has another value here"):
        refuse_other_values(function, written, source.compared)


@pytest.mark.parametrize("argument", ["k", "args.k", "args.words['k']", "float(k)"])
def test_a_module_that_a_call_sets_up_is_set_up_elsewhere(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imported: Callable[[str | Source], Function]
) -> None:
    """With a number or a text; a call with the results of a sweep shows them."""
    (tmp_path / "own_settings.py").write_text("K = 1\ndef setup(k):\n    global K\n    K = k\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = (
        "import types, sweeplib, own_settings\nk = len('abcd')\nargs = types.SimpleNamespace(k=k, words={'k': k})\n"
        f"own_settings.setup({argument})\nshown = 3.0 or sweeplib.sweep()\nown_settings.setup(shown)\n"
    )
    source = source_of(imported(f"{HEAD}{before}{OWN.format('own_settings.K')}"))
    assert f"own_settings.setup({argument})" in source.text and "shown" not in source.text
    assert imported(source)() == 4


def test_a_file_of_a_package_is_imported_as_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may import relatively, and is one module with what a script imports from the package."""
    folder = tmp_path / "own_package" / "inner"
    folder.mkdir(parents=True)
    for name in ("own_package", "own_package/inner"):
        (tmp_path / name / "__init__.py").touch()
    (folder.parent / "const.py").write_text("C = 4\n")
    (folder / "sim.py").write_text(f"{HEAD}from ..const import C\n{OWN.format('C * x')}")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with nothing_left():
        function, _, _ = called("sim.py", folder)
        assert function(x=2.0) == 8.0 and function.module == "own_package.inner.sim"
        assert file_of(function, tmp_path) == folder / "sim.py"


def test_what_other_processes_compute_of_another_command_line_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is in no file: it has code."""
    script = ModuleType(MAIN)
    text = f"import sys\n{HEAD}laws = [lambda: 1, len(sys.argv)]\n{OWN.format('laws[1]')}"
    vars(script)["In"] = [text, ""]
    monkeypatch.setitem(sys.modules, MAIN, script)
    monkeypatch.setattr(sys, "argv", ["script.py", "3"])
    exec(text, vars(script))
    with pytest.raises(InputError, match="laws has another value here than the statements give it"):
        file_of(script.own, tmp_path)
    assert sys.argv == ["script.py", "3"]


def test_the_file_of_a_value_is_that_of_its_digest(tmp_path: Path) -> None:
    """One that is damaged, or away, is written anew; others may not write what is executed."""
    value = stored("w", np.arange(3), "builtins")
    assert value is not None and value.file is not None
    name, content = value.file
    path = tmp_path / "functions" / name
    path.parent.mkdir()
    path.with_name("own.py").touch()
    names = {"__file__": str(path.with_name("own.py"))}
    for damaged in (None, content[:-1] + b"x", content[:20]):
        if damaged is not None:
            path.write_bytes(damaged)
        assert sealed_content(path) is None
        with pytest.raises(InputError, match="a value of a function is not there, or damaged"):
            load_stored(dict(names), "w", path.stem)
    path.write_bytes(content)
    assert load_stored(names, "w", path.stem).tolist() == [0, 1, 2]
    path.chmod(0o666)
    why = others_in_plugin(names["__file__"])
    assert why is not None and str(path) in why


OF_LIBRARIES = """
import logging, re, threading
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from functools import cache, cached_property
import random
import numba
import numpy as np
import pandas as pd
import scipy.interpolate
import scipy.stats
import xarray as xr

@dataclass
class Own:
    n: int = 1
    @cached_property
    def f(self):
        return self.n

@cache
def f(x=1):
    return x

@numba.njit
def g(x):
    return x

f()
r = [random.Random(1), np.random.RandomState(1), np.random.default_rng(3)]
a = [threading.Lock(), logging.getLogger("x"), re.compile("a"), OrderedDict(x=1), defaultdict(list, x=[1]), deque([1])]
b = [scipy.stats.norm(0, 1), scipy.interpolate.CubicSpline([0, 1, 2], [1, 2, 4]), {1, "x"}]
c = {"t": pd.DataFrame({"x": [1.0], "y": ["b"]}), "d": xr.Dataset({"x": ("k", [np.nan])}), "o": np.array([b], object)}
d = [Own(2)]
d.append(d)
"""
CALLS = "d[0].f", "r[0].random()", "r[1].random()", "r[2].random()", "f(2)", "g(1)"


def test_values_that_the_source_gives_are_taken(imported: Callable[[str | Source], Function]) -> None:
    """Of any library: what cannot be looked into is no reason to refuse."""
    function = imported(f"{HEAD}{OF_LIBRARIES}{OWN.format('[a, b, c, d, r, f(), g(1)]')}")
    for call in CALLS:
        eval(call, vars(sys.modules[function.module]))
    source = source_of(function)
    refuse_other_values(function, imported(source), source.compared)


def test_a_value_may_say_where_it_is_defined() -> None:
    """As a cached property does from Python 3.13 on: the file that was written is another module."""
    assert are_same({"__module__": "script", "n": [1]}, {"__module__": "written", "n": [1]}, ("script", "written"))
    assert not are_same(["script", 1], ["written", 2], ("script", "written"))
    assert not are_same(["script"], ["other"], ("script", "written"))


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ("module.N = 5", "N has another value here than the file of own gives it; got 5; expected a parameter of own"),
        ("module.M = 5", "M has another value here"),
        ("module.rule = lambda: 1", "rule has another value here"),
        ("module.Law.k = 5", "Law has another value here"),
        ("module.own(x=1.0)", None),
        ("module.TABLE['a'] = 5", "TABLE has another value here"),
        ("module.CACHE['b'] = module.LEVEL = module.UNUSED = 7", None),
        ("path.write_text(path.read_text() + '# edited')", "own_module.py: changed since it was imported"),
        ("path.with_name('own_beside.py').write_text('B = 2')", "own_beside.py: changed since it was imported"),
    ],
)
def test_a_module_that_is_another_in_other_processes_is_refused(
    edit: str, says: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They import its file; a script that has changed it, or an edit since, would count in one of the two alone."""
    before = (
        "from functools import cache\nfrom own_beside import B\n"
        "N = 1\nM: int = 2 * N\nUNUSED = 2\nTABLE = {'a': 1}\nCACHE = {}\nLEVEL = float(3)\n"
        "@cache\ndef rule():\n    return CACHE.setdefault('c', 2)\nclass Law:\n    k = 2\n"
    )
    path = tmp_path / "own_module.py"
    (tmp_path / "own_beside.py").write_text("B = 1\n")
    body = "CACHE[x] = x\n    return B + N + M + rule() + Law.k + TABLE['a'] + LEVEL"
    path.write_text(f"{HEAD}{before}{OWN.replace('return {}', body)}", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("own_module")
    try:
        refuse_other_module(module.own)
        exec(edit, {"module": module, "path": path})
        with pytest.raises(InputError, match=says) if says else nullcontext():
            refuse_edits(module.own)
            refuse_other_module(module.own)
    finally:
        del sys.modules["own_module"], sys.modules["own_beside"]


def test_what_changes_a_package_counts_for_all_that_is_imported_from_it(
    imported: Callable[[str | Source], Function],
) -> None:
    lines = ("import email", "import email.message as message", "from email import policy", "email.level = 3")
    for result in ("email", "message", "policy"):
        text = source_of(imported("\n".join([HEAD, *lines, OWN.format(f"{result} and 1.0")]))).text
        assert "email.level = 3" in text


@pytest.mark.parametrize(
    ("before", "after", "is_other"),
    [
        ("n = 3\nn = n * 2", "n = 5\nn = n * 2", True),
        ("n = 1", "n = 1\nn = 1", False),
        ("n = 1", "n = 1\nm = 2\nimport sys\ndef f(): return m", False),
        ("n = 1", "n = 1\nif __name__ == '__main__':\n    n = 5", False),
        ("n = 1\nif __name__ == '__main__':\n    n = 5", "n = 2\nif __name__ == '__main__':\n    n = 5", True),
        ("n = 1\nif __name__ == '__main__':\n    pass\nelse:\n    n = 5", "n = 1", True),
        ("n = [1]\nn[0] = 2", "n = [1]\nn[0] = 3", True),
        ("n = [1]\nm = n\nm[0] = 2", "n = [1]\nm = n\nm[0] = 3", True),
        ("n = [1]\nlist.append(n, 2)", "n = [1]\nlist.append(n, 3)", True),
        (
            "n = {}\ndef add(f):\n    n[f.__name__] = f\n    return f\n@add\ndef a():\n    return 1",
            "n = {}\ndef add(f):\n    n[f.__name__] = f\n    return f\n@add\ndef a():\n    return 2",
            True,
        ),
        (
            "n = []\nclass Base:\n    def __init_subclass__(cls):\n        n.append(cls)\nclass A(Base):\n    k = 1",
            "n = []\nclass Base:\n    def __init_subclass__(cls):\n        n.append(cls)\nclass A(Base):\n    k = 2",
            True,
        ),
        (
            "n = 1\ndef put():\n    global n\n    n = 2\nput()",
            "n = 1\ndef put():\n    global n\n    n = 3\nput()",
            True,
        ),
        ("n = 1\nimport os\nos.environ['A'] = '1'", "n = 1\nimport os\nos.environ['A'] = '2'", True),
    ],
)
def test_the_code_of_a_function_is_all_that_may_change_what_it_gives(
    before: str, after: str, is_other: bool, imported: Callable[[str | Source], Function]
) -> None:
    """A case that is computed once too often costs time; one that is stale is wrong."""
    codes = [code_of(imported(f"{HEAD}{text}\n{OWN.format('n')}")) for text in (before, after)]
    assert (codes[0] != codes[1]) == is_other


@pytest.mark.parametrize(
    "line", ["from .helpers import n", "from . import helpers", "from .helpers import *", "import inner.helpers"]
)
def test_the_code_of_a_function_covers_the_modules_beside_it(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of its package, and those that are imported for what they do."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "__init__.py").touch()
    (tmp_path / "inner" / "own_model.py").write_text(f"{HEAD}{line}\n{OWN.format(1)}", encoding="utf-8")
    codes = []
    for number in (1, 2):
        (tmp_path / "inner" / "helpers.py").write_text(f"n = {number}\n", encoding="utf-8")
        sources._content_of.cache_clear()
        module = importlib.import_module("inner.own_model")
        codes.append(code_of(module.own))
    for name in [name for name in sys.modules if name.partition(".")[0] == "inner"]:
        del sys.modules[name]
    sources._content_of.cache_clear()
    assert codes[0] != codes[1]


NAMES, NUMBERS = st.sampled_from("abc"), st.integers(0, 9).map(str)
STATEMENTS = st.sampled_from(
    [
        *(
            "A = [N]",
            "A = B",
            "A = B + [N]",
            "A = list(B)",
            "A += [N]",
            "A[0] = N",
            "A.append(N)",
            "A.sort()",
            "A, B = B, A",
        ),
        *(
            "A = [B, N]",
            "C = A.pop()",
            "del A[0]",
            "if len(A) > 1:\n    B = [N]",
            "for i in range(2):\n    A.append(N)",
        ),
        *("def f():\n    return [A, N]", "A = f()", "f()", "def g():\n    A.append(N)", "g()", "B = [f]", "A = [f, N]"),
        *("def f():\n    global A\n    A = A + [N]\n    return [N]", "def g(x=A):\n    x.append(N)", "A = [*B, N]"),
        *("try:\n    A = B[5]\nexcept IndexError:\n    A = [N]", "class K:\n    k = A", "A = K.k", "A = (lambda: B)()"),
        *(
            "if __name__ == '__main__':\n    A = [N]",
            "[B.append(N) for A in [[1]]]",
            "A: list",
            "del A",
            "A = lambda: B",
        ),
    ]
)


@st.composite
def statement(draw: st.DrawFn) -> str:
    """Draw a statement in which `A`, `B` and `C` are names and `N` is a number."""
    text = draw(STATEMENTS)
    for mark in "ABC":
        text = text.replace(mark, draw(NAMES)) if mark in text else text
    return text.replace("N", draw(NUMBERS))


SHOWN = """def shown(value, depth=4):
    if callable(value):
        return shown(value(), depth - 1) if depth else 0
    return [shown(entry, depth) for entry in value] if isinstance(value, list) else value
"""


@pytest.mark.rest
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(
    st.lists(statement(), min_size=2, max_size=9),
    st.integers(0, 8),
    NUMBERS,
    st.sampled_from(["[a, b]", "a", "[c, f]"]),
)
def test_any_file_has_a_source_that_gives_the_same_or_is_refused(
    imported: Callable[[str | Source], Function], texts: list[str], at: int, number: str, result: str
) -> None:
    """And what gives another result has another code."""
    start = "a, b, c = [1], [2], [3]\nclass K:\n    k = [4]\ndef f():\n    return [5]\ndef g():\n    return [6]\n"

    def module(texts: list[str]) -> str:
        return "\n".join([HEAD + start + SHOWN, *texts, OWN.format(f"repr(shown({result}))")])

    edited = [*texts]
    place = at % len(texts)
    edited[place] = "".join(number if letter.isdigit() else letter for letter in texts[place])
    functions, values = [], []
    for each in (texts, edited):
        try:
            functions.append(imported(module(each)))
            code_of(functions[-1]), source_of(functions[-1])
            values.append(own_of(module(each))())
        except (InputError, AttributeError, IndexError, NameError, RecursionError, TypeError):
            assume(False)
    assert values[0] == values[1] or code_of(functions[0]) != code_of(functions[1])
    for function, text in zip(functions, (texts, edited), strict=True):
        source, fresh = source_of(function), own_of(module(text))
        written = imported(source)
        try:
            refuse_other_values(function, written, source.compared)
        except InputError:
            continue
        # what changes at each call, as a count of calls does, is no result of a function
        value = fresh()
        assert written() == value or fresh() != value


def test_what_is_computed_once_is_written_out(
    imported: Callable[[str | Source], Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the command line or the environment no other process has the same; of a file the code has a digest."""
    monkeypatch.setenv("N_OF_TEST", "3")
    lines = "import os, sys\nimport numpy as np\nn = int(os.environ['N_OF_TEST'])\nm = 2.0 * n\nk = m\nk += 1\n"
    function = imported(f"{HEAD}{lines}w = np.arange(n)\n{OWN.format('n + m + k + w.sum()')}")
    source = source_of(function)
    assert "n = 3" in source.text and "m = 6.0" in source.text and "environ" not in source.text
    monkeypatch.setenv("N_OF_TEST", "4")
    assert imported(source)() == function() == 19.0
    other = imported(f"{HEAD}{lines}w = np.arange(n)\n{OWN.format('w.sum()')}")
    vars(sys.modules[other.module])["w"] = np.arange(5)
    assert source_of(other) != source_of(imported(f"{HEAD}{lines}w = np.arange(n)\n{OWN.format('w.sum()')}"))


SCRIPT = """
import argparse, sys
from dataclasses import dataclass
import numpy as np
import pandas as pd
import sweeplib
from sweeplib import simulator

parser = argparse.ArgumentParser()
parser.add_argument("k", type=float)
def main():
    pass
parser.set_defaults(main=main)
args = parser.parse_args()

@dataclass
class Law:
    scale: float
    width: float = 0.0

    def of(self, x):
        return self.scale * x

law = Law(args.k)
law.width = args.k
sizes = [float(word) for word in sys.argv[1:]]
first: float = float(sys.argv[1])
second, third = (float(sys.argv[1]) + n for n in (1, 2))
table = pd.read_csv("table.csv")

@simulator(y="1")
def own(x: float = 1.0):
    return args.k + law.of(x) + law.width + sum(sizes) + first + second + third + table["a"].sum()

print(own(x=1.0), *sweeplib.sweep(own, x=[1.0]).y.values.ravel())
"""


@pytest.mark.rest
def test_what_a_script_takes_from_elsewhere_is_the_same_in_its_sweep(tmp_path: Path) -> None:
    """From its command line and from a file, as values of any class; with others the cases are computed again."""
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(sweeplib.__file__).parents[1])}
    for number, result in (("1", "12.0 12.0\n"), ("2", "21.0 21.0\n")):
        (tmp_path / "table.csv").write_text(f"a\n{number}\n{number}\n")
        command = [sys.executable, "script.py", number]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout == result, done.stderr


IN_PACKAGE = """
from pathlib import Path
import sweeplib
from sweeplib import simulator
from . import const
from .const import C

HERE = Path(__file__).parent

@simulator(y="1")
def own(x: float = 1.0):
    return C * x + const.C + float((HERE / "data.txt").read_text()) + len(Path(__file__).name)

if __name__ == "__main__":
    print(own(x=1.0), *sweeplib.sweep(own, x=[1.0, 2.0]).y.values.ravel())
"""


@pytest.mark.rest
def test_a_module_of_a_package_that_runs_as_a_script_is_swept(tmp_path: Path) -> None:
    """What depends on the place of its file is written out: relative imports, and the name of the file."""
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "const.py").write_text("C = 4\n")
    (folder / "data.txt").write_text("100\n")
    (folder / "mod.py").write_text(IN_PACKAGE)
    environment = {**os.environ, "PYTHONPATH": str(Path(sweeplib.__file__).parents[1])}
    command = [sys.executable, "-m", "pkg.mod"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "114.0 114.0 118.0\n", done.stderr


def test_a_cell_that_is_timed_counts_as_the_statements_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition in it replaces one before."""
    bodies = "def helper():\n    return 1", OWN.format("helper() + n"), "def helper():\n    return 5", "n = int('2')"
    magics = "run_cell_magic('time', '', {!r})", "run_line_magic('time', {!r})"
    cells = [
        *bodies[:2],
        *(f"get_ipython().{magic.format(body)}" for magic, body in zip(magics, bodies[2:], strict=True)),
    ]
    module = ModuleType("cells")
    vars(module)["In"] = ["", HEAD, *cells, ""]
    monkeypatch.setitem(sys.modules, "cells", module)
    for text in (HEAD, *bodies):
        exec(text, vars(module))
    source = source_of(registered("own"))
    assert own_of(source.text)() == 7 and "get_ipython" not in source.text


NOTEBOOK = """
In = []

def run(*cells):
    for cell in cells:
        In.append(cell)
        exec(compile(cell, "cell", "exec"), globals())

def refused(cell):
    try:
        run(cell)
    except sweeplib.InputError as error:
        print(error)

HEAD = "import numpy as np\\nimport sweeplib\\nfrom sweeplib import simulator\\nbeta = 1.0"
OWN = "@simulator(y='1')\\ndef own(rng, x: float = 1.0):\\n    return float(np.sum(beta)) * x + 0 * rng.random()"
SHOW = "print(ds.y.values[0, :, 0], ds.y.attrs.get('units'))"
SWEEP = "ds = sweeplib.sweep(own, x=[1, 2], seeds=2, results='res')\\n" + SHOW
run(HEAD, OWN, SWEEP, OWN, SWEEP, HEAD, SWEEP)
run(OWN.replace("'1'", "'J'"), SWEEP)
run("beta = 2.0\\n" + SWEEP + "\\nbeta = 3.0")
run("beta = float(ds.y.mean())\\n" + SWEEP)
run("for beta in (4.0,):\\n    " + SWEEP.partition("\\n")[0] + "\\n    " + SHOW)
run("beta = [1.0]\\nbeta.append(2.0)\\nprint('not in the file')", SWEEP)
run("list.reverse(other := beta)\\nbeta.reverse()\\nother[0] = 5.0\\n" + SWEEP)
DRAWS = OWN.replace("np.sum(beta)", "beta.normal()") + "\\n"
refused("beta = np.random.default_rng(int(ds.y.mean()))\\n" + DRAWS + SWEEP)
"""


@pytest.mark.rest
def test_a_notebook_sweeps_what_has_run(tmp_path: Path) -> None:
    """Cells that run again change nothing, labels and values are those of now, also after other sweeps."""
    environment = {**os.environ, "PYTHONPATH": str(Path(sweeplib.__file__).parents[1])}
    command = [sys.executable, "-c", NOTEBOOK]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *lines, refused = done.stdout.splitlines()
    assert lines == [
        *["[1. 2.] None"] * 3,
        *("[1. 2.] J", "[2. 4.] J", "[3. 6.] J", "[4. 8.] J"),
        *("not in the file", "[3. 6.] J", "[ 7. 14.] J"),
    ]
    assert refused.startswith("own depends on a statement that runs a sweep; got 'ds'")
    files = [path.read_text(encoding="utf-8") for path in (tmp_path / "res" / "own" / "functions").glob("*.py")]
    assert len(files) == 7 and not any("print" in text for text in files)
