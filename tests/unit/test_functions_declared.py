"""What functions and programs may declare, and which one of several with one name is taken."""

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from sweeplib.config import from_mapping, load
from sweeplib.config.functions import called, file_of
from sweeplib.engine.execution import work
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.simulator import simulator_of_cases
from sweeplib.engine.storage.dataset.finalise import dataset_in_memory
from sweeplib.engine.storage.dataset.outline import outline_of, planned_outline
from sweeplib.errors import InputError
from sweeplib.functions.function import FUNCTIONS, MAIN, Function, TimeUpError, registered
from sweeplib.functions.program import parsed_output, program
from sweeplib.functions.results import Result, checked_results
from sweeplib.functions.simulator import FunctionSimulator
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.report.tables import capital
from sweeplib.pictures.report.write import _caption
from sweeplib.sweeps import _warn_of_failures, sweep_of
from tests.in_process import Here, computed

OWN = "from sweeplib import simulator\n\n@simulator(y='1')\ndef own(x: float = 1.0):\n    return x\n"
LENGTHS = """from sweeplib import Result, simulator

@simulator(y=Result("1", dims={{"k": "x"}}))
def own({}):
    return [1.0]
"""
LONG = """
setsid sleep 60 &
echo $! > $1
sleep 60
"""


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Callable[..., Function]]:
    """Return a function that writes a file with a simulator `own`, and returns it; they are forgotten at the end."""

    def function(text: str, name: str = "own.py") -> Function:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return called(str(tmp_path / name), tmp_path)[0]

    FUNCTIONS.pop("own", None)
    yield function
    FUNCTIONS.pop("own", None)


def test_the_function_that_a_config_names_last_is_the_one_of_its_name(
    written: Callable[..., Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook defines a function again, and undoes edits; stored cases are read with the function that made them."""
    first = written(OWN)
    second = written(OWN.replace("y=", "z="), "other.py")
    third = written(OWN.replace("(x", "(q").replace("return x", "return q"), "third.py")
    assert first.code == second.code != third.code
    assert written(OWN) is first
    script = ModuleType(MAIN)
    monkeypatch.setitem(sys.modules, MAIN, script)
    exec(OWN, vars(script))
    assert registered("own") is registered("own", second.code) is first, "not that of the script"
    for code, function in ((third.code, third), (first.code, first), ("that of another day", first)):
        named = simulator_of_cases({"simulator": "functions.own", "code": code})
        assert named.function is function  # type: ignore[attr-defined]


def test_a_program_that_a_script_or_a_module_declares_can_be_swept(
    written: Callable[..., Function], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"from sweeplib import program\nown = program('{sys.executable} -V {{x}}', name='own', y='1')\n"
    module = written(text)
    assert file_of(module, tmp_path) == tmp_path / "own.py"
    script = ModuleType(MAIN)
    monkeypatch.setitem(sys.modules, MAIN, script)
    exec(text, vars(script))
    path = file_of(script.own, tmp_path)
    assert path.parent == tmp_path / "functions" and called(str(path), tmp_path)[0].code == script.own.code


@pytest.mark.parametrize("kind", ["at=(0, 1)", "at: tuple[float, ...] = (0, 1)", "at: list[int] = [0, 1]", "at=[0, 1]"])
def test_stored_cases_have_the_values_that_ran(kind: str, written: Callable[..., Function], tmp_path: Path) -> None:
    """JSON knows lists alone: defaults, values of a config and stored ones have the type of the default."""
    function = written(OWN.replace("x: float = 1.0", kind).replace("return x", "return float(len(at))"))
    expected = type(function.arguments["at"].default)
    keys = {"name": "own", "simulator": str(tmp_path / "own.py"), "grid": {}}
    for parameters in ({}, {"at": [0, 1]}, {"at": [2, 3]}):
        cases = from_mapping(keys | {"parameters": parameters}, tmp_path).probed("own")
        simulator = cases[0].simulator
        read = simulator.cases(simulator.shared(cases[0]), simulator.index(cases))
        assert read[0] == cases[0] and type(dict(read[0].values)["at"]) is expected
        assert read[0].identity() == cases[0].identity()


@pytest.mark.parametrize("default", ["(0, (1, 2))", "{1: 2.0}", "[(1, 2)]"])
def test_a_default_that_json_changes_is_refused(default: str, written: Callable[..., Function]) -> None:
    with pytest.raises(InputError, match="the default of x is not what a config, and the store, would give for it"):
        written(OWN.replace("x: float = 1.0", f"x={default}"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (OWN.replace("(x", "(rng, /, x"), "calls of a sweep cannot name this parameter; got 'rng'"),
        (OWN.replace("(x", "(*rng, x"), r"calls of a sweep cannot name this parameter; got '\*rng'"),
        (OWN.replace("x: float", "x: 'Lacking'"), "the annotation of x cannot be read.*not below TYPE_CHECKING alone"),
        (OWN.replace("y=", "end_state="), "this name has another meaning; got 'end_state'"),
        (OWN.replace("(x", "(rank: int = 1, x"), "this name has another meaning; got 'rank'"),
        (OWN.replace("y=", f"{'y' * 101}="), "own: too long a name"),
        (LENGTHS.format("x: float = 2.5"), "the default of x is not the length of k; got 2.5; expected a whole number"),
        (LENGTHS.format("x: str = 'two'"), "the default of x is not the length of k; got 'two'"),
        (LENGTHS.format("x: int | None = None"), "the default of x is not the length of k; got None"),
        (LENGTHS.format("x=-1"), "the default of x is not the length of k; got -1"),
    ],
)
def test_a_declaration_that_no_sweep_can_use_is_refused(text: str, says: str, written: Callable[..., Function]) -> None:
    with pytest.raises(InputError, match=says):
        written(text)


def test_a_symbol_of_the_grid_has_no_name_of_a_dataset(written: Callable[..., Function], tmp_path: Path) -> None:
    written(OWN)
    keys = {"name": "own", "simulator": str(tmp_path / "own.py"), "grid": {"x": [1, 2]}}
    with pytest.raises(InputError, match=r"^derive.fraction: this name has another meaning; got 'fraction'"):
        from_mapping(keys | {"derive": {"fraction": "x / 2"}}, tmp_path)


def test_annotations_of_what_is_not_swept_may_be_for_checks_alone(written: Callable[..., Function]) -> None:
    text = OWN.replace("(x: float = 1.0)", "(rng: 'Generator', x: float = 1.0) -> 'Lacking'")
    assert written(text).arguments.keys() == {"x"}
    lengths = [written(LENGTHS.format(default), f"{at}.py") for at, default in enumerate(("x: int", "x=0", "x=2.0"))]
    assert [function.arguments["x"].is_needed for function in lengths] == [True, False, False]


def test_texts_of_a_table_are_values_as_they_stand(written: Callable[..., Function], tmp_path: Path) -> None:
    written(OWN.replace("x: float = 1.0", "x: str, n: float"))
    keys = {"name": "own", "simulator": str(tmp_path / "own.py"), "points": "points.csv"}
    (tmp_path / "points.csv").write_text("x,n\nNA,1\nnan,2\nNone,3\n1e3,4\n")
    cases = from_mapping(keys, tmp_path).probed("own")
    assert {dict(case.values)["x"] for case in cases} == {"NA", "nan", "None", "1e3"}
    for row in (",1", "a,NA", "a,"):
        (tmp_path / "points.csv").write_text(f"x,n\na,1\n{row}\n")
        with pytest.raises(InputError, match=r"points.csv:3: (x|n): no value; expected one a row"):
            from_mapping(keys, tmp_path)


PROGRAM = "from sweeplib import program\nown = program({}, name='own', {})\n"


@pytest.mark.parametrize(
    ("command", "others", "says"),
    [
        ("'true {x:zz}'", "y='1'", "own: not a format of x: Unknown format code 'z'.*; got 'zz'"),
        ("'true {x:{w}}'", "y='1'", "own: not a format of x; got '{w}'; expected one without parameters"),
        ("'true {x:.3f}'", "y='1', parameters={'x': str}", "own: not a format of x: Unknown format code 'f'"),
        ("'true {x}'", "y=2", "own: not the units of y; got 2; expected a text"),
        ("'true {x}'", "y='1', parameters=['x']", "own: not the parameters"),
        ("'true {x}'", "y='1', parameters={'x': []}", "own: no texts that the parameter x may be; got .*such as"),
        ("'true {x}'", "y='1', parameters={'x': {'typ': int}}", "own: not a key of the parameter x; got 'typ'"),
        ("''", "y='1'", "not a command"),
    ],
)
def test_a_declaration_of_a_program_that_is_none_is_refused(
    command: str, others: str, says: str, written: Callable[..., Function]
) -> None:
    with pytest.raises(InputError, match=says):
        written(PROGRAM.format(command, others))
    with pytest.raises(InputError, match="program: not a name; got 'a b'; expected letters, digits and _"):
        program("true", name="a b", y="1")


def test_a_program_is_written_as_it_was_declared(written: Callable[..., Function], tmp_path: Path) -> None:
    (tmp_path / "2sim").write_text("#!/bin/sh\necho y = $1\n")
    (tmp_path / "2sim").chmod(0o755)
    text = (
        "from sweeplib import program\nprogram(['./2sim', '{x:.2f}'], y=1, parameters={'x': {'type': int, 'ge': 2}})\n"
    )
    FUNCTIONS.pop("2sim", None)
    first = written(text)
    second = written(first.source().text, "again.py")
    assert second is not first and second.code == first.code
    assert str(second.arguments) == str(first.arguments) and second(x=3) == {"y": 3.0}
    del FUNCTIONS["2sim"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.5D+02", 150.0), ("-.5d-1", -0.05), ("1.5-103", 1.5e-103), ("2D3", 2000.0), ("1-2", "1-2"), ("1,5", "1,5")],
)
def test_numbers_of_fortran_are_numbers(text: str, number: float | str) -> None:
    results = {"y": Result()}
    assert parsed_output(f"y = 0\nlog\n y : {text} \nend", results) == {"y": number}
    assert parsed_output(f'log\n\nz,y\n0,"{text}"\n\n', results) == {"y": number}


@pytest.mark.parametrize(
    ("text", "lacking"), [('{"m": 1, "x": 2}', "energy"), ("m = 1\nx = 2", "energy"), ("x = 2", "m, energy")]
)
def test_only_results_that_an_output_lacks_are_named(text: str, lacking: str) -> None:
    with pytest.raises(ValueError, match=f"^no {lacking} in the output"):
        parsed_output(text, {"m": Result(), "energy": Result()})


def test_recording_times_are_an_argument_of_a_sweep(written: Callable[..., Function], tmp_path: Path) -> None:
    text = OWN.replace("x: float = 1.0", "times, x: float = 1.0").replace("return x", "return x + times[0]")
    function = written(text)
    design = sweep_of(function, x=[1.0, 2.0], times=[0, 1], results=tmp_path).design
    assert design.recording.times == (0.0, 1.0) and design.grid.names == ("x",)
    with pytest.raises(InputError, match=r"config\.times: not a key of `config` here; .* the argument `times`"):
        sweep_of(function, x=1.0, times=[0, 1], config={"times": [0, 2]}, results=tmp_path)


def test_a_text_in_place_of_a_number_is_shown(written: Callable[..., Function]) -> None:
    with pytest.raises(TypeError, match="own returned y as the text '1,5'; expected real numbers of shape"):
        checked_results(written(OWN), {"y": "1,5"}, {})


def test_a_program_ends_with_what_it_has_started_in_a_session_of_its_own(tmp_path: Path) -> None:
    """Also one that ends by a signal without a name says how it ended."""
    (tmp_path / "long.sh").write_text(LONG)
    late = program(f"sh {tmp_path / 'long.sh'} {tmp_path / 'pid'} {{x}}", name="late", y="1")
    with pytest.raises(TimeUpError):
        late.called(1.0, x=1)
    with suppress(psutil.NoSuchProcess):
        assert psutil.Process(int((tmp_path / "pid").read_text())).status() == psutil.STATUS_ZOMBIE
    with pytest.raises(RuntimeError, match="signal 40: no message"):
        program("sh -c 'kill -40 $$'", name="killed", y="1")()
    for name in ("late", "killed"):
        del FUNCTIONS[name]


def test_dimensions_of_arrays_have_a_coordinate(
    written: Callable[..., Function], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts to the largest length, as the outline says before."""
    monkeypatch.setattr(work, "dispatched", computed)
    written(LENGTHS.format("x: int = 1").replace("[1.0]", "[1.0] * x"))
    keys = {"name": "own", "simulator": str(tmp_path / "own.py"), "grid": {"x": [1, 3]}}
    design = replace(from_mapping(keys, tmp_path), cluster=Here())
    run_sweep(design, tmp_path / "results", progress=False)
    ds = dataset_in_memory(design, tmp_path / "results")
    assert ds["k"].values.tolist() == list(planned_outline(design).axes["k"]) == [0, 1, 2]
    assert ds["k"].attrs["long_name"] == "k" and ds.y.sel(x=1, k=2).isnull().all() and ds.y.sel(x=3).notnull().all()
    assert planned_outline(design).variables == outline_of(ds).variables


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("Literal[1, 2]", 3, "expected one of 1, 2"),
        ("""Literal["it's", "b"]""", "its", "expected one of b, it's"),
        ("Literal['a'] | float", "b", "expected a or a number"),
        ("int | float", "a", "expected a number"),
        ("bool | int", "a", "expected true or false or a whole number"),
    ],
)
def test_a_refused_value_is_told_all_that_its_type_takes(
    kind: str, value: object, says: str, written: Callable[..., Function], tmp_path: Path
) -> None:
    written("from typing import Literal\n" + OWN.replace("x: float = 1.0", f"x: {kind}"))
    keys = {"name": "own", "simulator": str(tmp_path / "own.py"), "grid": {}}
    with pytest.raises(InputError, match=f"not a value of x; got {value!r}; {says}"):
        from_mapping(keys | {"parameters": {"x": value}}, tmp_path)


def test_a_warning_names_the_line_of_the_caller(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="f: of 2 cases 1 failed") as warned:
        _warn_of_failures(tmp_path, "f", {"ok": 1, "failed": 1})
    assert warned[0].filename == __file__


FORK = """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    {}
"""


@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("end", ["return x", "raise ValueError", "sys.exit(2)"])
def test_a_child_that_a_function_forks_ends_with_its_call(
    end: str, written: Callable[..., Function], tmp_path: Path
) -> None:
    function = written("import os, sys\n" + OWN.replace("    return x\n", FORK.format(end)))
    keys = {"name": "own", "simulator": str(tmp_path / "own.py"), "grid": {"x": [1]}}
    [case], here = from_mapping(keys, tmp_path).probed("own"), os.getpid()
    try:
        results = FunctionSimulator(function).results(case)
    finally:
        if os.getpid() != here:
            os._exit(3)
    assert results["y"] == 0.0, "the exit status of the child"


def test_the_words_of_a_function_are_its_own(written: Callable[..., Function], tmp_path: Path) -> None:
    """Names of one letter keep it, captions speak of no exits, and own names are told where they may stand."""
    written(OWN)
    keys = {"name": "own", "simulator": str(tmp_path / "own.py"), "grid": {"x": [1]}}
    caption = _caption(from_mapping(keys, tmp_path), FIGURES["distribution"].caption, "")
    assert "at most the value" in caption and "xits" not in caption and caption.endswith("are left out.")
    words = ("n", "N", "x (m)", "mean", "n_steps", "\N{GREEK SMALL LETTER GAMMA}", "")
    assert [capital(text) for text in words] == [*words[:3], "Mean", *words[4:]]
    with pytest.raises(InputError, match=r"^analyses.peak: unknown analysis; expected one .*names of your own"):
        from_mapping(keys | {"analyses": {"peak": {"of": "y"}}}, tmp_path)


def test_an_apostrophe_in_a_list_of_texts_is_no_quote(written: Callable[..., Function], tmp_path: Path) -> None:
    written(OWN.replace("x: float = 1.0", "x: str"))
    (tmp_path / "own.yaml").write_text("simulator: own.py\ngrid: {x: [a]}\n")
    for text in ("grid.x=it's,b", """grid.x="it's",'b'""", 'grid.x=["it\'s", b]'):
        assert load(tmp_path / "own.yaml", [text]).grid.axes[0].values == ("it's", "b")
    assert load(tmp_path / "own.yaml", ["grid.x='a, b',b"]).grid.axes[0].values == ("a, b", "b")


def test_an_axis_has_nan_once(written: Callable[..., Function], tmp_path: Path) -> None:
    written(OWN.replace("x: float = 1.0", "x: float | None"))
    keys = {"name": "own", "simulator": str(tmp_path / "own.py")}
    assert len(from_mapping(keys | {"grid": {"x": [math.nan, 1.0]}}, tmp_path).grid.axes[0].values) == 2
    with pytest.raises(InputError, match=r"^grid.x\[2\]: value given twice; got nan"):
        from_mapping(keys | {"grid": {"x": [math.nan, 1.0, float("nan")]}}, tmp_path)
