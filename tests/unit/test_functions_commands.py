"""Programs that a config declares as a command: their parameters and results, what goes wrong in them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

import sweeplib
from sweeplib import InputError
from sweeplib.config import load
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.outcomes import first_outcomes
from sweeplib.functions import program
from sweeplib.functions.function import registered
from tests.plugged import nothing_left

MODEL = """
import json, sys
T, L, law, seed = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
print("T =", T)
print(json.dumps({"energy": T * L, "passed": seed % 2, "profile": [T] * L}))
"""
COMMAND = f"""
simulator:
  command: {sys.executable} model.py {{T}} {{L}} {{law}} {{seed}}
  results: {{energy: {{units: J, label: energy of all}}, passed: {{units: 1}}, profile: {{dims: {{site: L}}}}}}
  parameters: {{L: {{type: int, ge: 2, default: 3, units: m, label: side}}, law: [normal, signs]}}
"""
GRID = "grid: {T: [0.5, 1], law: [normal, signs]}\nfigures: []\n"
Written = Callable[..., Path]


pytestmark = pytest.mark.usefixtures("forgotten_functions")


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Return what writes a program and a config beside it."""

    def write(keys: str, code: str = MODEL) -> Path:
        (tmp_path / "model.py").write_text(code, encoding="utf-8")
        (tmp_path / "own.yaml").write_text(keys, encoding="utf-8")
        return tmp_path / "own.yaml"

    return write


def commanded(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return how `sweeplib` ended in the folder of a config."""
    environment = {**os.environ, "PYTHONPATH": str(Path(sweeplib.__file__).parents[1])}
    command = [sys.executable, "-m", "sweeplib", *words]
    return subprocess.run(command, cwd=config.parent, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_command_of_a_config_is_swept_on_workers_and_again_when_the_program_changes(written: Written) -> None:
    """By the command of a user: types, defaults, units, arrays; what is done stays until the program is another."""
    config = written(f"{COMMAND}{GRID}seeds: 3\ncluster: {{workers: 2, block_size: 2}}\n")
    done = commanded(config, "sweep", "own.yaml")
    assert done.returncode == 0, done.stderr
    ds = sweeplib.open(config.parent / "results" / "own").load()
    assert ds.energy.attrs["units"] == "J" and ds.energy.attrs["long_name"] == "energy of all"
    assert ds.attrs["L"] == 3 and ds.profile.sizes["site"] == 3
    np.testing.assert_array_equal(ds.energy.sel(T=0.5), 1.5)
    assert set(ds.passed.values.ravel()) == {0.0, 1.0}
    assert "nothing to compute" in commanded(config, "sweep", "own.yaml").stderr
    status = commanded(config, "status", "results/own")
    assert status.returncode == 0 and "12" in status.stdout, "the folder alone is enough"
    written(config.read_text(), MODEL.replace("T * L", "T * L + 1"))
    assert commanded(config, "sweep", "own.yaml").returncode == 0
    assert (sweeplib.open(config.parent / "results" / "own").energy.sel(T=0.5) == 2.5).all()


@pytest.mark.rest
def test_the_complete_config_of_a_command_describes_the_same_cases(written: Written) -> None:
    """Paths are relative to the folder of results, as those of plugins are; a word that is no file stays."""
    config = written(COMMAND.replace("{seed}", "{seed} ./out /no/such") + GRID)
    sweep = sweeplib.Sweep.from_yaml(config, results=config.parent / "results")
    sweep.run(progress=False)
    folder = config.parent / "results" / "own"
    command = parsed((folder / "config.yaml").read_text())["simulator"]["command"]
    assert command.endswith(" ../../model.py {T} {L} {law} {seed} ./out /no/such")
    assert load(folder / "config.yaml").numerics("model") == sweep.design.numerics("model")
    (config.parent / "below").mkdir()
    based = config.parent / "below" / "based.yaml"
    based.write_text("from: ../own.yaml\nname: based\n", encoding="utf-8")
    assert load(based).numerics("model") == sweep.design.numerics("model")


@pytest.mark.rest
def test_a_command_may_be_a_list_and_a_config_may_start_from_one_with_a_program(written: Written) -> None:
    """Words with blanks stay one; files beside the other config are found, under the names that they have there."""
    config = written("simulator: {command: [run it, '{T}', model.py], results: {x: 1}}\ngrid: {T: [0.5]}\n")
    script = config.with_name("real")
    script.write_text('#!/bin/sh\necho "x = $1"\n', encoding="utf-8")
    script.chmod(0o755)
    config.with_name("run it").symlink_to(script)
    (config.parent / "below").mkdir()
    based = config.parent / "below" / "based.yaml"
    based.write_text("from: ../own.yaml\n", encoding="utf-8")
    for path in (config, based):
        ds = sweeplib.Sweep.from_yaml(path, results=path.parent / "results").run(progress=False)
        assert ds.x.item() == 0.5 and ds.attrs["function"] == "run_it"
    assert load(based).numerics("run_it") == load(config).numerics("run_it")
    assert {file.name for file in load(based).files()} >= {"run it", "model.py"}, "an edit runs the sweep again"


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (COMMAND.replace("results:", "result:"), "simulator.result: unknown key.*did you mean 'results'"),
        (COMMAND.replace("ge: 2", "gee: 2"), "simulator.parameters.L.gee: unknown key.*did you mean 'ge'"),
        (COMMAND.replace("units: J", "unit: J"), "simulator.results.energy.unit: unknown key.*did you mean 'units'"),
        (COMMAND.replace("type: int", "type: integer"), "simulator.parameters.L.type"),
        (COMMAND.replace("default: 3", "default: 1"), "the default of L is no value of it"),
        (COMMAND.replace("{L}", ""), "the command has no such parameter"),
        (COMMAND.replace("{seed}", "{rng}"), "{seed}, a number"),
        (COMMAND.replace("{seed}", "{seed} {times}"), "has argument `times`"),
        ("simulator: {command: no-such-program, results: {x: 1}}\n", "simulator: .*no such program"),
        ("simulator: {command: '', results: {x: 1}}\n", "simulator: .*not a command"),
        ("simulator: {command: [], results: {x: 1}}\n", "simulator: .*not a command"),
        ("simulator: {command: 3, results: {x: 1}}\n", "simulator.command: .*expected a text"),
        (COMMAND.replace("{seed}", "{seed"), "simulator: .*not a command"),
        ("simulator: {command: 'true'}\n", "simulator.results: this key is needed"),
        ("simulator: {command: 'true', results: {}}\n", "has no results"),
        ("simulator: [1]\n", "simulator: not a valid value"),
    ],
)
def test_a_command_that_is_none_is_refused_with_its_key(keys: str, says: str, written: Written) -> None:
    with pytest.raises(InputError, match=says):
        load(written(keys + GRID))


@pytest.mark.parametrize(
    ("changes", "says"),
    [("L: [1]", "not a value of L"), ("law: [cauchy]", "not a value of law"), ("t: [1]", "no parameter")],
)
def test_values_of_a_command_are_checked(changes: str, says: str, written: Written) -> None:
    with pytest.raises(InputError, match=says):
        load(written(f"{COMMAND}grid: {{T: [1], law: [signs], {changes}}}\n".replace("law: [signs], law", "law")))


@pytest.mark.rest
def test_a_program_gets_the_times(written: Written) -> None:
    code = "import json, sys\nprint(json.dumps({'x': [2 * float(t) for t in sys.argv[1].split(',')]}))"
    keys = f"simulator: {{command: '{sys.executable} model.py {{times}}', results: {{x: {{dims: {{time: times}}}}}}}}\n"
    config = written(f"{keys}times: [0, 0.1, 3]\ngrid: {{}}\nfigures: []\n", code)
    ds = sweeplib.Sweep.from_yaml(config, results=config.parent / "results").run(progress=False)
    np.testing.assert_array_equal(ds.x.squeeze(), [0.0, 0.2, 6.0])


WRONG = """
import os, subprocess, sys, time
what = sys.argv[1]
if what == "much":
    while True:
        sys.stdout.write("x" * 2**20)
elif what == "loud":
    sys.stderr.write("x" * 2**27)
elif what == "asks":
    print("x =", len(sys.stdin.read()))
elif what == "children":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    open(os.path.join(os.path.dirname(__file__), "child"), "w").write(str(child.pid))
    print("x = 1")
elif what == "hangs":
    time.sleep(1000)
else:
    print("x = 2")
"""


@pytest.mark.slow
def test_a_program_that_writes_without_end_asks_leaves_children_or_hangs_is_bounded(written: Written) -> None:
    """Nothing waits for it: output has a limit, there is no input, children end, a time limit is a status."""
    left = Path(written("", WRONG)).with_name("child")
    what = "much, loud, asks, children, fine, hangs"
    config = written(
        f"simulator: {{command: '{sys.executable} model.py {{what}}', results: {{x: 1}}, "
        f"parameters: {{what: str}}}}\ngrid: {{what: [{what}]}}\nfigures: []\ntimeout: 2\n",
        WRONG,
    )
    begun = time.monotonic()
    ds = sweeplib.Sweep.from_yaml(config, results=config.parent / "results").run(progress=False)
    assert time.monotonic() - begun < 90
    status = {str(name): Status(int(ds.status.sel(what=name).item())).name for name in ds.what.values}
    assert status == {
        "much": "failed", "loud": "failed", "asks": "ok", "children": "ok", "fine": "ok", "hangs": "timeout",
    }  # fmt: skip
    assert ds.x.sel(what=["asks", "children", "fine"]).values.ravel().tolist() == [0.0, 1.0, 2.0]
    reasons = {
        line["what"]: line["exception"] for line in first_outcomes(config.parent / "results" / "own", "model", 9)
    }
    assert f"over {program.MOST_OUTPUT} bytes of output" in reasons["much"]
    assert f"over {program.MOST_OUTPUT} bytes of output" in reasons["loud"]
    assert not psutil.pid_exists(int(left.read_text())) or psutil.Process(int(left.read_text())).status() == "zombie"


LOGS = """
import sys, time
time.sleep(0.2)
open(sys.argv[2], "a").write(sys.argv[1])
print("x = 1")
"""
OWN = """
import slopes
from sweeplib import simulator

@simulator(y="1")
def line(x: float):
    return slopes.SLOPE * x
"""


@pytest.mark.slow
def test_a_run_whose_program_writes_a_file_of_its_command_names_the_file(written: Written) -> None:
    """Of cases that are long enough for workers, which read the file after the driver."""
    config = written(
        f"simulator: {{command: '{sys.executable} model.py {{n}} runs.log', results: {{x: 1}}}}\n"
        "grid: {n: {range: [0, 40]}}\nfigures: []\ncluster: {kind: local, workers: 1}\n",
        LOGS,
    )
    (log := config.with_name("runs.log")).touch()
    done = commanded(config, "run", "own.yaml", "--no-progress")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"{log}: model has another code here than where the run began; of its files this one was" in done.stderr
    assert "expected no edit during a run, and a command that names no file it writes" in done.stderr


@pytest.mark.parametrize("edited", ["model.py", "slopes.py", "data.csv", "own.py"])
def test_an_edit_during_a_run_is_named_by_its_file(
    edited: str, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a program, of a file that its command names, of a function, of a module that this imports."""
    is_program = edited in ("model.py", "data.csv")
    command = f"{{command: '{sys.executable} model.py {{x}} data.csv', results: {{y: 1}}, name: line}}"
    config = written(f"simulator: {command if is_program else 'own.py'}\ngrid: {{x: [1, 2]}}\nfigures: []\n")
    monkeypatch.syspath_prepend(config.parent)
    for name, text in {"own.py": OWN, "slopes.py": "SLOPE = 2\n", "data.csv": "x\n1\n"}.items():
        config.with_name(name).write_text(text, encoding="utf-8")
    with nothing_left():
        load(config)
        os.utime(config.with_name(edited), (later := time.time() + 60,) * 2)
        with pytest.raises(InputError, match="another code here than where the run began") as raised:
            registered("line", "that of before")
    assert raised.value.file == config.with_name(edited)
    assert f"written last, at {time.strftime('%H:%M:%S', time.localtime(later))};" in str(raised.value)


@pytest.mark.rest
@pytest.mark.skipif(not program._with_parent(), reason="needs setpriv of util-linux")
def test_a_program_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """A killed sweep leaves no program that goes on."""
    code = "import os, sys, time\nopen(sys.argv[1], 'w').write(str(os.getpid()))\ntime.sleep(1000)\n"
    (tmp_path / "model.py").write_text(code, encoding="utf-8")
    place = tmp_path / "pid"
    starts = (
        "from sweeplib import program\n"
        f"program({f'{sys.executable} {tmp_path}/model.py {place}'!r}, name='own', x='1')()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(sweeplib.__file__).parents[1])}
    process = subprocess.Popen([sys.executable, "-c", starts], env=environment)
    until = time.monotonic() + 60
    while not (place.exists() and place.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    number = int(place.read_text())
    process.kill()
    process.wait()
    while psutil.pid_exists(number) and psutil.Process(number).status() != "zombie" and time.monotonic() < until:
        time.sleep(0.02)
    assert not psutil.pid_exists(number) or psutil.Process(number).status() == "zombie"


def test_the_name_of_a_command_is_that_of_its_script(written: Written) -> None:
    load(written(COMMAND + GRID))
    assert registered("model").arguments.keys() == {"T", "L", "law"}
    load(written(COMMAND.replace("results:", "name: spins\n  results:", 1) + GRID))
    assert registered("spins").name == "spins"
