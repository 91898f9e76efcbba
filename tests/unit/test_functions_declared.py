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
    """JSON knows lists alone: a default, a value of a config and one that is read again have the type of the default."""
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
