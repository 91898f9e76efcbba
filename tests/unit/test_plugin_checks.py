"""`sweeplib test-plugin`: plugins with one fault each, and the check that finds it."""

import re
import string
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sweeplib.analysis import ANALYSES
from sweeplib.commands.cli import app
from sweeplib.commands.starter import TEMPLATES
from sweeplib.config import load
from sweeplib.config.kinds import FUNCTION, WITH_TEMPLATE
from sweeplib.contracts import observables as levels
from sweeplib.contracts.check import LeftOutError
from sweeplib.contracts.outcomes import CONTRACTS, Outcome, all_outcomes
from sweeplib.engine.base.registry import REGISTRIES
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.pictures.figures import FIGURES
from tests.in_process import InProcess
from tests.plugged import DRAWN, nothing_left, written
from tests.tiers import slow_among

COMMANDS_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"

FAULTS = {
    "wrong derivative": (
        "activation",
        "return SLOPE * (1.0",
        "return 2.0 * SLOPE * (1.0",
        r"derivative is the slope: the derivative at -3.95: .*; expected ",
    ),
    "wrong information exponent": (
        "activation",
        "derivative, 1)",
        "derivative, 2)",
        "information_exponent is 2; the .* have 1",
    ),
    "a form that is not its value": (
        "activation",
        "derivative, 1)",
        "derivative, 1, hermite=(0.0, 1.0))",
        "`hermite` at -3.95: -3.95; expected ",
    ),
    "numpy in an activation": (
        "activation",
        "return math.tanh(SLOPE * field)",
        "return round(field, ndigits=str(2))",
        "TypeError",
    ),
    "an overflow": (
        "activation",
        "return math.tanh(SLOPE * field)",
        "return math.exp(field**3)",
        "OverflowError: math range error",
    ),
    "wrong dimensions": (
        "observable",
        '("student", "teacher")',
        '("student",)',
        r"its shape is \(3, 4, 2\); `dims` says \(replica, student\), here \(3, 4\)",
    ),
    "an unknown dimension": (
        "observable",
        '("student", "teacher")',
        '("unit", "teacher")',
        "has no dimension 'unit'; it has student",
    ),
    "a mean over replicas": ("observable", "= now.M /", "= 0 * now.M + now.M.mean() /", "replica 0 alone"),
    "an observable that writes": (
        "observable",
        "    teacher =",
        "    now.a[:] = 0\n    teacher =",
        "OverlapView it changes a$",
    ),
    "an observable that reads Delta": (
        "observable",
        "= now.M",
        "= now.Delta[:, None, None] * now.M",
        "changes with Delta, which its `reads` does not name",
    ),
    "no units": ("observable", "reads=frozenset()", 'units="", reads=frozenset()', "its units is empty"),
    "global random numbers": (
        "dynamics",
        "self.M = self",
        "self.M = np.random.rand() * self",
        "the same seed gives the same bits: .* of the same seed again",
    ),
    "a field that is not read": (
        "dynamics",
        "self.options.rate *",
        "self.options.rate * (1 + self.replicas.Delta) *",
        r"\w+ changes with Delta, which its `reads` does not name",
    ),
    "a field that is read and does nothing": (
        "dynamics",
        '"teacher_start", "a"',
        '"teacher_start", "a", "target"',
        "its `reads` names target, but its numbers are the same with 'committee' or 'lam1\\*lam2'",
    ),
    "a field that only its claims take": (
        "dynamics",
        "    @classmethod\n    def check",
        "    @classmethod\n    def reads_of(cls, problem, options):\n        return cls.reads | {'schedule'}\n\n"
        "    @classmethod\n    def check",
        "its `reads` names schedule, but its numbers are the same",
    ),
    "another law": (
        "dynamics",
        "    stochastic = False",
        '    stochastic = False\n    law_of = "sgd"',
        "has not the law of sgd: p = ",
    ),
    "a start of its own": (
        "dynamics",
        "self.M = self.replicas.M",
        "self.M = 0.5 * self.replicas.M",
        "overlap_M at time zero",
    ),
    "no covariance": (
        "dynamics",
        "self.M = self.replicas.M",
        "self.Q = -self.replicas.Q; self.M = self.replicas.M",
        "is no covariance|it runs: (noise_trace is not finite|RuntimeWarning)",
    ),
    "wrong shape of M": (
        "dynamics",
        "[:, None, None]",
        "[:, None]",
        "ValueError: operands could not be broadcast together",
    ),
    "not reproduced when recorded once": (
        "dynamics",
        "self.M = self.replicas.M",
        "self.M = 0.9 * self.M if to else self.M; self.M = self.M",
        "recording does not change the run",
    ),
    "stochastic without samples": ("dynamics", "stochastic = False", "stochastic = True", "`stochastic` is True, but"),
    "work that falls": ("dynamics", "return 100.0", "return 1.0 / time", "`work` is 1 to time 1 and 0.1 to time 10"),
    "an outline that fails": (
        "analysis",
        'if "risk" not in',
        'ds.units\n    if "risk" not in',
        "AttributeError: 'Outline' object has no attribute 'units'",
    ),
    "an outline that lies": (
        "analysis",
        'without("seed", "time")',
        'without("time")',
        "`outline` has the axis 'seed'; the result has",
    ),
    "no outline": ("analysis", ", outline=outline", "", None),
    "an analysis without labels": ("analysis", ", keep_attrs=True", ", keep_attrs=False", "risk has no `long_name`"),
    "an analysis that writes": (
        "analysis",
        "    return ds[[",
        "    ds.risk[:] = 1.0\n    return ds[[",
        "it changes the dataset",
    ),
    "an analysis with chance": (
        "analysis",
        "    return ds[",
        "    import numpy\n    ds = ds.assign(risk=ds.risk + numpy.random.rand())\n    return ds[",
        "another result the second time|it is not the same",
    ),
    "an option without a type": ("analysis", "place: int = -1", "place=-1", "the option 'place' has no annotation"),
    "one panel": (
        "figure",
        "for dynamics in",
        "ds.gamma[1]\n    for dynamics in",
        "it fails for gamma, one value and one seed.*IndexError",
    ),
    "one panel, without arrange": (
        "figure",
        'Figure("own", final_risks, "The mean risk at the end of the runs.", arrange=arrange)',
        'Figure("own", lambda ds, analyses: final_risks(ds.isel(gamma=[0, 1]), analyses), "A figure.")',
        "it fails for gamma, one value and one seed: IndexError",
    ),
    "an arrange that refuses too little": (
        "figure",
        'if "risk" not in ds.variables or',
        'if "risk" not in ds.variables and',
        "which `arrange` does not refuse",
    ),
    "a figure that never fits": (
        "figure",
        '{"dynamics", "gamma", "seed", "time"}',
        '{"dynamics"}',
        "it takes none of 10 datasets",
    ),
    "labels of variables": (
        "figure",
        '"learning rate"',
        '"end_steps"',
        "labelled with the name of a variable, 'end_steps'",
    ),
    "no drawing": ("figure", "return drawing", "return axes", "it returns Axes"),
    "a caption that is no sentence": ("figure", "of the runs.", "of the runs", "does not end as a sentence"),
    "wrong expectations": (
        "target",
        'f"hermite(0, {slope!r})"',
        '"erf"',
        "the mean over its labels is",
    ),
    "a number that a law ignores": ("data", "numbers[0] * x", "x", "is the same with another signs"),
    "a number that an observable ignores": ("observable", " ** power[:, None, None]", "", "same with another power"),
    "a number that a start ignores": ("start", "problem.nearness", "0.5", "`reads` names nearness, but its weights"),
    "a number that a target ignores": ("target", "= slope *", "=", "its labels are the same with another slope"),
    "an example that is the default": ("data", "0.5, ge=0, le=1", "1.0, ge=1, le=1", "one value alone"),
    "a start of chance": (
        "start",
        "return share",
        "return np.random.rand() + share",
        "differ when they are drawn again",
    ),
    "not on the sphere": ("start", "weights, par", "weights, on_sphere=True, par", "a squared norm of a row"),
    "a start that reads gamma": (
        "start",
        "return share",
        "return problem.gamma + share",
        "changes with gamma, which its `reads`",
    ),
    "a start that reads nothing of what it names": (
        "start",
        "weights, par",
        'weights, reads=frozenset({"start_scale"}), par',
        "its `reads` names start_scale, but its weights are the same with 0.8",
    ),
    "a target that reads nothing of what it names": (
        "target",
        "of_student, par",
        'of_student, reads=frozenset({"a_star"}), par',
        "its `reads` names a_star, but its labels are the same",
    ),
    "a start with wrong rows": (
        "start",
        "return share * teacher",
        "return normals(1, problem.d) if problem.p else teacher",
        r"its weights have the shape \(1, 30\); expected \(p, d\)",
    ),
    "another law of inputs": ("data", "else -1.0", "else -3.0", "over 4000 samples it is"),
    "no kind": ("cluster", 'Literal["own"] = "own"', 'Literal["other"] = "other"', "its `kind` is 'other'"),
}
"""A template, a part of it, what stands there instead, and what is said; None if all is well."""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with nothing_left():
        yield


def template(kind: str, name: str = "own") -> str:
    text = string.Template((TEMPLATES / f"{kind}.py.txt").read_text())
    return text.substitute(name=name, file=f"{name}.py", sweep=f"{name}.yaml")


def failed(plugin: str) -> list[Outcome]:
    return [outcome for outcome in all_outcomes([plugin]) if outcome.status == "failed"]


PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "plugins.md").read_text()
RELAXATION = PAGE.partition("# relaxation.py\n")[2].partition("```")[0]
"""A dynamics of the overlaps, in which there is less to compute than in that of the template."""


FIRST_OF_EACH = {FAULTS[fault][0]: fault for fault in reversed(FAULTS)}.values()
"""The first fault of each kind of plugin."""
DEAR = [
    fault for fault in FAULTS if FAULTS[fault][0] in ("analysis", "dynamics", "figure") and fault not in FIRST_OF_EACH
]
"""Each is looked for on datasets of ten kinds of sweeps, or in dozens of runs."""


@pytest.mark.parametrize("fault", slow_among(FAULTS, "another law", *DEAR))
def test_a_fault_is_found(fault: str) -> None:
    kind, part, instead, said = FAULTS[fault]
    text = {"dynamics": RELAXATION, "figure": DRAWN}.get(kind) or template(kind)
    assert text.count(part) == 1, text.count(part)
    found = [str(each) for each in failed(written(Path("own.py"), text.replace(part, instead)))]

    assert bool(found) == (said is not None), found
    assert said is None or any(re.search(said, each) for each in found), found
    assert not any("\n" in each for each in found)


def test_the_template_of_a_figure_has_no_fault() -> None:
    """With one learning rate and several panels too, its law has a place in the interactive plot."""
    assert [str(each) for each in failed(written(Path("own.py"), template("figure")))] == []


def test_every_kind_has_checks_or_says_that_it_has_none() -> None:
    assert {registry.kind for registry in REGISTRIES} - set(CONTRACTS) == {
        "family of expectations",
        "form of activations",
    }


@pytest.fixture
def templates() -> Path:
    """Return a folder with a new plugin of each kind, as the command writes it, with its sweep."""
    for kind in WITH_TEMPLATE:
        assert invoked("new", kind, f"own_{kind}.py") == f"own_{kind}.py\nown_{kind}.yaml\n"
    return Path.cwd()


def invoked(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == status, result.output
    return result.output


def test_the_kinds_of_templates_are_those_that_are_said() -> None:
    [row] = [line for line in COMMANDS_PAGE.read_text("utf-8").splitlines() if "sweeplib new KIND FILE" in line]
    assert re.findall(r"`(\w+)`", row) == [FUNCTION, *WITH_TEMPLATE]
    assert {path.name for path in TEMPLATES.iterdir()} == {
        f"{kind}.{end}.txt" for kind in (FUNCTION, *WITH_TEMPLATE) for end in ("py", "yaml")
    }


@pytest.mark.slow
def test_every_template_passes_its_checks_and_runs_as_it_is(templates: Path) -> None:
    said = invoked("test-plugin", *(f"own_{kind}.py" for kind in WITH_TEMPLATE))
    lines = said.splitlines()
    assert {line.split()[0] for line in lines[:-1]} == {"ok"}
    assert lines[-1] == f"{len(lines) - 1} checks: {len(lines) - 1} ok, 0 failed, 0 left out"
    for kind in WITH_TEMPLATE:
        sweep = load(templates / f"own_{kind}.yaml")
        directory = templates / "results" / sweep.name
        assert f"own_{kind}" in sweep.source
        cluster = sweep.cluster if kind == "cluster" else InProcess()
        run_sweep(replace(sweep, cluster=cluster.model_copy(update={"block_size": 9})), directory, progress=False)
        with open_dataset(finalise(sweep, directory)) as ds:
            assert (ds.status == 1).all()
            for name, options in sweep.analyses.items():
                if name == f"own_{kind}":
                    assert ANALYSES[name](ds, **options).data_vars
            for name, options in sweep.figures.items():
                if name == f"own_{kind}":
                    assert FIGURES[name](ds, {}, **options).axes


@pytest.mark.long
@pytest.mark.parametrize("kind", WITH_TEMPLATE)
def test_every_template_is_a_sweep(kind: str, templates: Path) -> None:
    command = [str(Path(sys.executable).with_name("sweeplib")), "sweep", f"own_{kind}.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cases ended ok" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("activatoin", "own.py"), "not a kind of file to start from; got 'activatoin'; .*did you mean 'activation'"),
        (("activation", "own.yaml"), "not the name of a plugin's file; got 'own.yaml'; expected a new file, NAME.py"),
        (("activation", "erf.py"), "activation 'erf' is one of sweeplib's"),
        (("activation", "my-own.py"), "no name of a plugin; got 'my-own'; expected letters, digits"),
        (("start", "class.py"), "no name of a plugin; got 'class'"),
        (("start", "null.py"), "no name of a plugin; got 'null'; expected .* no word of Python or YAML"),
        (("start",), "no file to write; got 'start'; expected `sweeplib new start NAME.py`"),
        (("sweep",), "no file to write; got 'sweep'; expected `sweeplib new sweep NAME.yaml`"),
        (("start", "there.py"), "there.yaml: there is such a file; expected a new file"),
        (("sweep", "there.yaml"), "there.yaml: there is such a file"),
    ],
)
def test_a_new_file_is_refused_before_anything_is_written(arguments: tuple[str, ...], said: str) -> None:
    Path("there.yaml").write_text("mine\n")
    assert re.search(said, " ".join(invoked("new", *arguments, status=2).split()))
    assert [path.name for path in Path.cwd().iterdir()] == ["there.yaml"]
    assert Path("there.yaml").read_text() == "mine\n"


def test_the_command_says_what_failed_and_ends_with_its_status() -> None:
    written(Path("own.py"), template("activation").replace("return SLOPE * (1.0", "return (1.0"))
    said = invoked("test-plugin", "own.py", status=1).splitlines()
    assert said[1].startswith("failed    activation own: derivative is the slope: the derivative at -3.95: ")
    assert said[-1] == "6 checks: 5 ok, 1 failed, 0 left out"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "plugins: no such file"),
        ("", "/own.py: it registers nothing; expected a call such as ACTIVATIONS.register"),
        ("def (:", "plugins: cannot be imported: SyntaxError"),
        ("\x00", "plugins: cannot be imported: SyntaxError"),
        (
            "from sweeplib.plugins import Activatoin\n",
            "cannot be imported: ImportError: cannot import name 'Activatoin'",
        ),
    ],
)
def test_a_file_that_is_no_plugin_is_refused_in_one_line(text: str | None, said: str) -> None:
    if text is not None:
        written(Path("own.py"), text)
    output = invoked("test-plugin", "own.py", status=2)
    assert re.search(said, output) and output.count("\n") == 1


def test_exits_on_a_level_are_tried_at_a_threshold_that_runs_reach() -> None:
    """Half of the largest fall of a replica, where none falls by the least of the usual thresholds."""
    assert levels._thresholds(np.array([[1.0, 0.5], [2.0, 2.0]])) == levels.EXITS
    least, *others = levels._thresholds(np.array([[1.0, 0.9999, 1.0], [4.0, 4.0, 3.9998]]))
    assert least == pytest.approx(5e-5) and tuple(others) == levels.EXITS
    for values, words in ((np.full((2, 3), np.nan), "NaN on the test's dataset"), (np.ones((2, 3)), "never falls")):
        with pytest.raises(LeftOutError, match=words):
            levels._thresholds(values)
