"""What functions and programs may declare, and which one of several with one name is taken."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from sweeplib.config import from_mapping
from sweeplib.config.functions import called, file_of
from sweeplib.engine.simulator import simulator_of_cases
from sweeplib.errors import InputError
from sweeplib.functions.function import FUNCTIONS, MAIN, Function, registered

OWN = "from sweeplib import simulator\n\n@simulator(y='1')\ndef own(x: float = 1.0):\n    return x\n"
LENGTH = """from sweeplib import Result, simulator

@simulator(y=Result("1", dims={{"k": "x"}}))
def own({}):
    return [1.0]
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
        (LENGTH.format("x: float = 2.5"), "the default of x is not the length of k; got 2.5; expected a whole number"),
        (LENGTH.format("x: str = 'two'"), "the default of x is not the length of k; got 'two'"),
        (LENGTH.format("x: int | None = None"), "the default of x is not the length of k; got None"),
        (LENGTH.format("x=-1"), "the default of x is not the length of k; got -1"),
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
    lengths = [written(LENGTH.format(default), f"{at}.py") for at, default in enumerate(("x: int", "x=0", "x=2.0"))]
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
