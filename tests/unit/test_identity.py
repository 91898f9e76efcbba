"""A case's identity contains everything that can change one of its numbers, and nothing else."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import sweeplib
from sweeplib import InputError, Problem
from sweeplib.engine.code.numerical_code import LABELS, numerical_code
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.observables import Observable
from sweeplib.networks.problem import PARAMETERS
from sweeplib.networks.rows import cases_of, index_of, shared_fields
from sweeplib.networks.simulation import Case, Cases, Recording, run_cases
from sweeplib.networks.simulation.cases import shared_values

CASES = ("chain of square", "ode of erf", "sde of he3")
CHAIN, ODE, SDE = CASES
ALL = set(CASES)
NONE: set[str] = set()


class Edit(NamedTuple):
    """A file below `networks`, a replacement of a text in it, and the cases whose identity this changes."""

    path: str
    old: str
    new: str
    changes: set[str]
    imported: bool = False
    """Whether the edit must be there when the package is imported, as the identity holds the value that it changes."""


EDITS = {
    "comment": Edit("kernels/chain.py", "import math\n", "import math  # of Python\n", NONE),
    "docstring of a kernel": Edit("kernels/chain.py", "Replace the labels in", "Change the labels in", NONE),
    "docstring of a constant": Edit("kernels/lanes.py", "A larger displacement", "Larger displacement", NONE),
    "annotation": Edit("problem/starts/start.py", "m0: float)", "m0: float | int)", NONE),
    "annotation of a result": Edit("observables/risk.py", "-> Array:", "-> 'Array':", NONE),
    "message of a refusal": Edit("maths/overlaps.py", "overlaps of no weights", "no weights have these", NONE),
    "message of a failure": Edit("dynamics/ode.py", "the ODE needs more than", "it takes more than", NONE),
    "message of a problem": Edit("problem/combinations.py", "start on the sphere", "begin on the sphere", NONE),
    "words of all errors": Edit("../errors.py", "did you mean", "perhaps", NONE),
    "check of a problem": Edit("problem/combinations.py", "> problem.d", "> 2 * problem.d", NONE, True),
    "check of a dynamics": Edit("dynamics/sgd_chain.py", "> LARGEST_REUSED", ">= LARGEST_REUSED", NONE, True),
    "bound of an option": Edit("dynamics/sde.py", "le=1e6", "le=1e7", NONE, True),
    "label of a dynamics": Edit("dynamics/sgd_chain.py", "SGD (overlap chain)", "overlap chain", NONE, True),
    "label of an activation": Edit("maths/activations/square.py", r"\lambda^2", r"\lambda^{2}", NONE, True),
    "label of a form": Edit("maths/activations/hermite.py", r"(\lambda)/\sqrt", r"(\lambda) / \sqrt", NONE, True),
    "name of an observable": Edit("observables/risk.py", "population risk", "excess risk", NONE, True),
    "label of the steps": Edit("simulation/labels.py", "SGD steps", "steps of SGD", NONE, True),
    "operator": Edit("kernels/rotations.py", "along + across * across", "along - across * across", {CHAIN}),
    "formula shared by kernels": Edit("kernels/lanes.py", "factor * weights", "factor + weights", {CHAIN, SDE}),
    "constant": Edit("kernels/lanes.py", "OVERFLOW = 1e100", "OVERFLOW = 1e99", {CHAIN, SDE}),
    "condition of a failure": Edit("dynamics/ode.py", "if spent.size", "if not spent.size", {ODE}),
    "activation": Edit("maths/activations/square.py", "return field * field", "return field**3", {CHAIN}),
    "coefficients of a series": Edit("maths/activations/hermite.py", "result * field +", "result * field -", {SDE}),
    "expectation": Edit("maths/expectations/error_functions.py", "import math\n", "import math\n\nHALF = 0.5\n", {ODE}),
    "elementary function": Edit("numerics/elementary.py", "-708.0 if x < -708.0", "-700.0 if x < -708.0", ALL),
    "start": Edit("problem/starts/start.py", "(m0 * axis + across)", "(m0 * axis - across)", ALL),
    "default law of the start": Edit("problem/problem.py", 'else "gaussian"', 'else "sphere"', {ODE, SDE}, True),
    "default of a field": Edit("problem/base_parameters.py", '"orthogonal", "law', '"sphere", "law', ALL, True),
    "default of a part": Edit("problem/starts/gaussian.py", '1.0, "stand', '2.0, "stand', {ODE, SDE}, True),
    "meaning of a part's number": Edit("problem/starts/gaussian.py", "s > 0 of a", "s of a", NONE, True),
    "bound of a part's number": Edit("problem/starts/gaussian.py", "gt=0, allow", "ge=0, allow", NONE, True),
    "random numbers": Edit("numerics/random.py", "0xD2511F53", "0xD2511F55", ALL),
    "random stream": Edit("simulation/sample_keys.py", "\"samples\", _stream_of(", "\"steps\", _stream_of(", ALL),
    "default of an option": Edit("dynamics/sde.py", "Field(default=2, ge", "Field(default=3, ge", {SDE}, True),
    "observable": Edit("observables/student_norm.py", "/ now.q.shape[1]", "/ now.q.shape[0]", {ODE}),
    "driver": Edit("simulation/driver.py", "reached & ~beyond", "reached & beyond", ALL),
}  # fmt: skip

SCRIPT = """
import functools, json, os, pathlib, sys
import numba, numpy, pydantic, pydantic.dataclasses
import sweeplib.engine.code.module_content

root, edits = pathlib.Path(sys.argv[1]) / "sweeplib", json.load(sys.stdin)
# Each text is parsed once for all children.
sweeplib.engine.code.module_content.numerical_code = functools.cache(sweeplib.engine.code.module_content.numerical_code)
for file in [*(root / "networks").rglob("*.py"), *(root / "engine" / "language").rglob("*.py")]:
    sweeplib.engine.code.module_content.numerical_code(file.read_text(), of_library=True)

def identities():
    from sweeplib.networks.problem import Problem
    from sweeplib.networks.simulation import Case, Recording
    common = {"gamma": 0.1, "k": 1, "d": 50, "Delta": 0.5}
    cases = [
        Case(Problem(p=1, activation="square", spherical=True, **common), "sgd_chain", 3, Recording((1.0,), (0.1,))),
        Case(Problem(p=2, activation="erf", **common), "ode", 3, Recording((1.0,), (), ("student_norm",))),
        Case(Problem(p=2, activation="he3", **common), "sde", 3, Recording((1.0,))),
    ]
    return [case.identity().hex() for case in cases]

def in_a_child():
    reading, writing = os.pipe()
    if not os.fork():
        try:
            os.write(writing, json.dumps(identities()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.wait()
    return json.loads(os.read(reading, 10000))

def edited(*names):
    files = {root / "networks" / edits[name][0] for name in names}
    texts = {file: file.read_text() for file in files}
    for name in names:
        path, old, new, *_ = edits[name]
        text = (root / "networks" / path).read_text()
        assert text.count(old) >= 1, (name, old)
        (root / "networks" / path).write_text(text.replace(old, new))
    found.update(dict.fromkeys(names, in_a_child()))
    for file, text in texts.items():
        file.write_text(text)

found = {"": in_a_child()}
before = [name for name, (*_, imported, changes) in edits.items() if imported]
edited(*(name for name in before if not edits[name][-1]))  # together, as each import takes long
for name in (name for name in before if edits[name][-1]):
    edited(name)
import sweeplib.networks.simulation
for name in (name for name in edits if name not in before):
    edited(name)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the identities of the cases after each edit of a copy of the package, from processes that import it."""
    root = tmp_path_factory.mktemp("edited")
    shutil.copytree(Path(sweeplib.__file__).parent, root / "sweeplib", ignore=shutil.ignore_patterns("*.nb?"))
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    edits = {name: (*edit[:3], edit.imported, bool(edit.changes)) for name, edit in EDITS.items()}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(root)],
        input=json.dumps(edits),
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_changes_the_identity_of_the_cases_whose_numbers_it_may_change(
    identities: dict[str, list[str]], name: str
) -> None:
    pairs = zip(CASES, identities[""], identities[name], strict=True)
    assert {case for case, before, after in pairs if before != after} == EDITS[name].changes


def counted(text: str, *, of_library: bool = True) -> str:
    return numerical_code(text, of_library=of_library)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x: int = 1"),
        ("def f(x): return x", "def f(x: float) -> float:\n    'Doubled.'\n    return x"),
        ("from sweeplib.errors import InputError", ""),
        ("if x > 3:\n    text = 'no'\n    raise InputError(text)", ""),
        ("raise ValueError('one')", "raise ValueError(f'another {x}') from error"),
        ("if TYPE_CHECKING:\n    from a import B", ""),
        ("assert x, 'why'", "assert x"),
        ("class A(B): label = 'one'", "class A(B): label = 'another'"),
        ("class A(NumericalOptions): x: int = Field(default=2, le=3)", "class A(NumericalOptions): y: float = 3"),
    ],
)
def test_what_does_not_count(one: str, other: str) -> None:
    assert counted(one) == counted(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("from math import sin as f", "from math import cos as f"),
        ("label = f + noise", "label = f - noise"),  # a kernel's label is a number
        ("label = 'one'", "label = 'another'"),  # a name that kernels might look at
        ("f(x, label='one')", "f(x, label='another')"),
        ("if x > 3:\n    raise ArithmeticError", "if x > 4:\n    raise ArithmeticError"),
        (
            "if x > 3:\n    x = 3\nelse:\n    raise InputError('')",
            "if x > 4:\n    x = 3\nelse:\n    raise InputError('')",
        ),
        ("if x > 3:\n    if x < 5: return 1\n    raise InputError('')", "if x > 3:\n    raise InputError('')"),
        ("if (y := x) > 3:\n    raise InputError('')", "if (y := 2 * x) > 3:\n    raise InputError('')"),
        ("raise ValueError('one')", "raise TypeError('one')"),
        ("raise Converged(1.0)", "raise Converged(2.0)"),
        ("raise Converged('one', at=x)", "raise Converged('one', at=2 * x)"),
        ("class A(NumericalOptions): x: ClassVar[float] = 1.0", "class A(NumericalOptions): x: ClassVar[float] = 2.0"),
        ("class A(NumericalOptions): _x: float = 1.0", "class A(NumericalOptions): _x: float = 2.0"),
        ("class A: x: int = 2", "class A: x: int = 3"),
        ("a['x'] = 'one'", "a['x'] = 'another'"),
    ],
)
def test_what_counts(one: str, other: str) -> None:
    assert counted(one) != counted(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x: int = 1", "x = 1"),
        ("def f(x: float): return x", "def f(x):\n    'Itself.'\n    return x"),
        ("raise ValueError('one')", "raise ValueError('another')"),
        (
            "from sweeplib import InputError\nraise InputError('one')",
            "from sweeplib import InputError\nraise InputError()",
        ),
        (
            "from sweeplib.plugins import Dynamics as D\nclass A(D): limits = (Limit(1),); label = 'one'",
            "from sweeplib.plugins import Dynamics as D\nclass A(D): limits = (Limit(2),); label = 'another'",
        ),
        (
            "from sweeplib.plugins import NumericalOptions\nclass A(NumericalOptions): x: int = 2",
            "from sweeplib.plugins import NumericalOptions\nclass A(NumericalOptions): x: int = 3",
        ),
    ],
)
def test_what_does_not_count_in_a_file_of_a_user(one: str, other: str) -> None:
    assert counted(one, of_library=False) == counted(other, of_library=False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("class A: limits = (0, 1)", "class A: limits = (0, 2)"),
        ("class A(B): label = 'one'", "class A(B): label = 'another'"),
        ("x = Limit(1.0)", "x = Limit(2.0)"),
        ("raise InputError(1.0)", "raise InputError(2.0)"),
        ("x = Activation(f, 'one')", "x = Activation(f, 'another')"),
        ("class A(Parameters): x: float = 1.0", "class A(Parameters): x: float = 2.0"),
        ("class A: x: int = 2", "class A: x: ClassVar[int] = 2"),
        ("class A: x: int", "class A: x: float"),
        (
            "from sweeplib import InputError\nif x > 3:\n    raise InputError('no')",
            "from sweeplib import InputError\nif x > 4:\n    raise InputError('no')",
        ),
    ],
)
def test_what_counts_in_a_file_of_a_user(one: str, other: str) -> None:
    """There a name means what this package means by it only if it is imported from here."""
    assert counted(one, of_library=False) != counted(other, of_library=False)


@pytest.mark.parametrize("kind", [Activation, Observable])
def test_labels_are_arguments_at_their_places(kind: Any) -> None:
    names = [field.name for field in dataclasses.fields(kind) if not field.kw_only]
    assert {name: names.index(name) for name in LABELS[kind.__name__]} == LABELS[kind.__name__]


COMMON = {"gamma": 0.1, "k": 1, "d": 50, "Delta": 0.5}


@pytest.mark.parametrize(
    "problem",
    [
        Problem(p=2, activation="square", a=(1.0, -1.0), m0=0.2, **COMMON),
        Problem(p=2, activation="erf", teacher_activation="erf", start="sphere", **COMMON),
    ],
    ids=["square", "erf"],
)
@pytest.mark.parametrize("pair_by", [None, ("d", "gamma")])
def test_the_driver_takes_nothing_from_a_case_but_what_its_identity_holds(
    problem: Problem, pair_by: tuple[str, ...] | None
) -> None:
    """A row has the text of the problem, clock, seed and what its layout shares: identities are made from these."""
    recording = Recording((0.0, 1.0), (0.01,), ("risk", "test_error"))
    cases = Cases.of([Case(problem, "sgd_chain", seed, recording, 0.5, pair_by=pair_by) for seed in range(3)])
    whole, held = run_cases(cases), cases_of(shared_fields(cases[0]), index_of(cases))
    assert held.fields == list(problem.canonical())
    for name, values in run_cases(held).data.items():
        np.testing.assert_array_equal(whole.data[name], values)


@pytest.mark.parametrize(("dynamics", "observables"), [("sgd", ("risk", "test_loss")), ("ode", ("risk",))])
def test_an_identity_does_not_depend_on_the_case_identified_before(dynamics: str, observables: tuple[str, ...]) -> None:
    """Of a plain problem, and of each that differs from it in one parameter; their digests share a memory."""

    def identities(order: list[Case]) -> dict[Case, bytes]:
        shared_values.cache_clear()
        return {case: case.identity() for case in order}

    plain, recording = Problem(p=2, activation="erf", **COMMON), Recording((0.0, 1.0), observables=observables)
    compared = 0
    for name, parameter in PARAMETERS.items():
        try:
            problems = [plain, dataclasses.replace(plain, **{name: parameter.example})]
            cases = [Case(problem, dynamics, 0, recording) for problem in problems]
            for case in cases:
                case.check()
        except InputError:
            continue
        assert identities(cases) == identities(cases[::-1]), name
        compared += 1
    assert compared > 5
