"""Functions that yield their results: one recording time after the other, with a state from which they go on."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib import InputError
from sweeplib.commands.upkeep.prune import delete_stale, stale
from sweeplib.commands.upkeep.verify import verify
from sweeplib.config import load
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DAMAGED
from sweeplib.engine.storage.store import checkpoints
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.outcomes import first_outcomes
from sweeplib.functions.function import TimeUpError, registered
from sweeplib.functions.global_generators import BYTES, global_states_kept, seed_globals, states_since
from sweeplib.functions.simulator import FunctionSimulator
from sweeplib.functions.states import state_bytes, state_in

WALK = """
import os
from sweeplib import Result, simulator

@simulator(x=Result("m", dims={"time": "times"}), path=Result("m", dims={"part": 2, "time": "times"}), most="m")
def walk(rng, times, drift: float = 0.0, state=None):
    x, most, done = state or (0.0, 0.0, 0)
    mark = "." if state is None else "+"
    for time in times:
        while done < time:
            x, done = x + drift + rng.standard_normal(), done + 1
            with open(os.environ["STEPS"], "a") as steps:
                steps.write(mark)
        most = max(most, x)
        yield {"x": x, "path": [x, most], "most": most}, (x, most, done)
"""
KEYS = "grid: {drift: [0, 0.5]}\nseeds: 2\nfigures: []\ntimes: {linspace: [0, 40, 11]}\n"
Written = Callable[..., Path]


pytestmark = pytest.mark.usefixtures("forgotten_functions")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Return what writes a function and a config beside it; the steps of the function are counted in a file."""
    monkeypatch.setenv("STEPS", str(tmp_path / "steps"))
    (tmp_path / "steps").touch()

    def write(keys: str, code: str = WALK, name: str = "own") -> Path:
        (tmp_path / f"{name}_courses.py").write_text(code, encoding="utf-8")
        (tmp_path / f"{name}.yaml").write_text(f"simulator: {name}_courses.py\n{keys}", encoding="utf-8")
        return tmp_path / f"{name}.yaml"

    return write


def ran(config: Path, *overrides: str) -> xr.Dataset:
    return sweeplib.Sweep.from_yaml(config, *overrides, results=config.parent / "results").run(progress=False).load()


@pytest.mark.rest
def test_a_function_yields_its_results_at_each_time(written: Written) -> None:
    """Along the dimension of times wherever it stands; of the other results the last value counts."""
    ds = ran(written(KEYS))
    assert ds.x.sizes["time"] == 11 and (ds.x.sel(time=0) == 0).all()
    np.testing.assert_array_equal(ds.path.isel(part=0).transpose(*ds.x.dims), ds.x)
    np.testing.assert_array_equal(ds.most, ds.x.max("time"))
    assert not (Path(written(KEYS)).parent / "results" / "own" / "checkpoints").exists()


@pytest.mark.rest
def test_a_longer_sweep_goes_on_from_the_ends_that_were_kept(written: Written) -> None:
    """The bits are those of a whole run, the cost is that of what is added; without the ends all is computed again."""
    config, steps = written(KEYS), Path(written(KEYS)).parent / "steps"
    ran(config, "keep=ends", "times.linspace=[0, 20, 6]")
    longer = ran(config, "keep=ends")
    assert steps.read_text().count("+") == 4 * 20, "pilots are no cases that go on"
    assert len(list((config.parent / "results" / "own" / "checkpoints").iterdir())) == 4
    whole = ran(written(KEYS, name="whole"))
    for name in ("x", "path", "most"):
        assert longer[name].values.tobytes() == whole[name].values.tobytes()


def _results(folder: Path, seconds: float, timeout: float | None = None, name: str = "walk") -> dict[str, np.ndarray]:
    """Return the results of a case of a function that keeps its states in a folder."""
    [case] = load(folder.parent / "own.yaml").probed(name).at(np.array([0]))
    return FunctionSimulator(registered(name)).results(case, timeout, CheckpointFolder(str(folder), seconds))


@pytest.mark.rest
@pytest.mark.parametrize("after", [1, 7, 23])
def test_a_call_that_ends_in_the_middle_goes_on_from_its_last_state(
    after: int, written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the generator as it was; a state of which a bit has flipped is not used."""
    load(written(KEYS))
    (tmp_path / "kept").mkdir()
    whole = _results(tmp_path / "whole", np.inf)
    assert not (tmp_path / "whole" / "checkpoints").exists()
    function = registered("walk")
    original = function.function

    def ended(*arguments: Any, **named: Any) -> Iterator[Any]:
        for number, entry in enumerate(original(*arguments, **named)):
            yield entry
            if number == after // 4:
                raise RuntimeError

    monkeypatch.setattr(function, "function", ended)
    with pytest.raises(RuntimeError):
        _results(tmp_path / "kept", 0.0)
    monkeypatch.setattr(function, "function", original)
    steps = (tmp_path / "steps").stat().st_size
    again = _results(tmp_path / "kept", 0.0)
    assert (tmp_path / "steps").stat().st_size - steps == 40 - 4 * (after // 4)
    assert all(again[name].tobytes() == whole[name].tobytes() for name in whole)
    [file] = (tmp_path / "kept" / "checkpoints").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    steps = (tmp_path / "steps").stat().st_size
    damaged = _results(tmp_path / "kept", 0.0)
    assert (tmp_path / "steps").stat().st_size - steps == 40
    assert all(damaged[name].tobytes() == whole[name].tobytes() for name in whole)


def test_a_case_whose_time_is_up_goes_on_from_there(written: Written, tmp_path: Path) -> None:
    """Its state is kept then, however seldom states are; each call reaches at least one time more."""
    load(written(KEYS))
    (tmp_path / "kept").mkdir()
    whole = _results(tmp_path / "whole", np.inf)
    for reached in range(3):
        with pytest.raises(TimeUpError):
            _results(tmp_path / "kept", np.inf, timeout=0.0)
        assert (tmp_path / "steps").stat().st_size == 40 + 4 * reached
    again = _results(tmp_path / "kept", np.inf)
    assert (tmp_path / "steps").stat().st_size == 80
    assert all(again[name].tobytes() == whole[name].tobytes() for name in whole)


def test_a_call_goes_on_with_the_global_generators_as_they_were(written: Written, tmp_path: Path) -> None:
    """Numbers of before, again, would be steps that are not independent."""
    code = "import numpy as np\nimport random\n" + WALK.replace(
        "rng.standard_normal()", "np.random.standard_normal() + random.gauss()"
    )
    load(written(KEYS, code))
    (tmp_path / "kept").mkdir()
    whole = _results(tmp_path / "whole", np.inf)
    for _ in range(2):
        with pytest.raises(TimeUpError):
            _results(tmp_path / "kept", np.inf, timeout=0.0)
    again = _results(tmp_path / "kept", np.inf)
    assert all(again[name].tobytes() == whole[name].tobytes() for name in whole)
    with global_states_kept():
        seed_globals(stream := bytes(range(BYTES)))
        assert states_since(stream) == {}, "other checkpoints do not grow"


def test_a_result_on_the_way_is_not_the_last_one(written: Written, tmp_path: Path) -> None:
    """A function without times may yield results before its end; the kept one of a call that ended is not its own."""
    load(written("grid: {n: [4]}\nfigures: []\n", WITHOUT_TIMES.replace("yield None,", "yield value,")))
    (tmp_path / "kept").mkdir()
    for _ in range(3):
        with pytest.raises(TimeUpError):
            _results(tmp_path / "kept", np.inf, timeout=0.0, name="total")
    whole = _results(tmp_path / "whole", np.inf, name="total")
    assert _results(tmp_path / "kept", np.inf, name="total") == whole


@pytest.mark.rest
def test_states_of_other_code_are_stale(written: Written) -> None:
    """Those that the sweep goes on from are not; what is no state stays too."""
    config = written(KEYS + "keep: ends\n")
    ran(config)
    folder = config.parent / "results" / "own"
    sweep = load(config)
    assert not [item for item in stale(sweep, folder) if "states" in item.title]
    (folder / "checkpoints" / "notes").write_text("mine", encoding="utf-8")
    others = load(config, ["grid.drift=[0]"])
    [item] = [item for item in stale(others, folder) if "states" in item.title]
    assert len(item.files) == 2 and "notes" not in {file.name for file in item.files}


@pytest.mark.rest
def test_a_damaged_state_is_found_and_deleted(written: Written) -> None:
    """Those that are whole stay, and so does what is no state; the repair computes nothing."""
    config = written(KEYS + "keep: ends\n")
    ran(config)
    folder = config.parent / "results" / "own"
    sweep = load(config)
    assert verify(sweep, config, folder, sample=0, progress=False).findings == []
    first, *others = sorted((folder / "checkpoints").iterdir())
    (folder / "checkpoints" / "notes").write_text("mine", encoding="utf-8")
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    [finding] = verify(sweep, config, folder, sample=0, progress=False).findings
    assert (finding.path, finding.problem) == (first, DAMAGED)
    steps = (config.parent / "steps").stat().st_size
    assert verify(sweep, config, folder, sample=0, repaired=True, progress=False).remaining == []
    assert {*(folder / "checkpoints").iterdir()} == {*others, folder / "checkpoints" / "notes"}
    assert (config.parent / "steps").stat().st_size == steps


def test_a_state_has_its_types_and_bits_again() -> None:
    rng = np.random.Generator(np.random.MT19937(3))
    rng.random(5)
    state = {
        "array": np.arange(6, dtype=np.int8).reshape(2, 3).T, "scalar": np.float32(0.1), "number": 0.1, "none": None,
        "texts": ["a", ("b", 2**70, True)], 3: np.array([1j, np.nan]), "inf": float("inf"), "rng": rng,
    }  # fmt: skip
    again = state_in(state_bytes(state))
    assert again["array"].dtype == np.int8 and again["array"].flags.f_contiguous
    np.testing.assert_array_equal(again["array"], state["array"])
    assert type(again["scalar"]) is np.float32 and again["scalar"] == np.float32(0.1)
    assert again["texts"] == ["a", ("b", 2**70, True)] and again["number"] == 0.1 and again["none"] is None
    np.testing.assert_array_equal(again[3], state[3])
    assert again["rng"].random(3).tobytes() == rng.random(3).tobytes()
    assert again["rng"].spawn(1)[0].random() == rng.spawn(1)[0].random()
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for wrong in (object(), {"a": {1, 2}}, np.array([None]), masked, Counter("ab"), OrderedDict(a=1)):
        with pytest.raises(TypeError, match="a state has a"):
            state_bytes(wrong)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (", (x, most, done)\n", "\n", "expected its results and its state, a pair"),
        ("(x, most, done)\n", "open\n", "a state has a builtin_function_or_method"),
        ('"most": most}, ', "}, ", "its results differ in most"),
        ("for time in times:", "for time in list(times)[:3]:", "yielded 3 times; expected 11"),
        ("for time in times:", "for time in [*times, 50]:", "yielded 12 times; expected 11"),
        ("for time in times:", "for time in range(times[-1]):", "not subscriptable"),
    ],
)
def test_what_such_a_function_does_wrong_is_a_reason(old: str, new: str, says: str, written: Written) -> None:
    """It gets the times one by one: what depends on later ones would not go on as it began."""
    config = written("grid: {}\nfigures: []\ntimes: {linspace: [0, 40, 11]}\n", WALK.replace(old, new))
    assert ran(config).status.item() == Status.failed
    [line] = first_outcomes(config.parent / "results" / "own", "walk", 9)
    assert says in line["exception"]


WITHOUT_TIMES = """
from sweeplib import simulator

@simulator(total="1")
def total(rng, n: int = 10, state=None):
    value, done = state or (0.0, 0)
    while done < n:
        value, done = value + rng.random(), done + 1
        yield None, (value, done)
    yield value, (value, done)
"""
WITHOUT_STATE = """
import numpy as np
from sweeplib import Result, simulator

@simulator(x=Result("m", dims={"time": "times"}))
def decay(times, rate: float = 1.0):
    for time in times:
        yield np.exp(-rate * time) if len(times) == 3 else 0.0
"""


@pytest.mark.rest
def test_a_function_may_yield_without_times_and_without_a_state(written: Written) -> None:
    """What it yields with no results is a state on the way; without a state it has all times at once."""
    ds = ran(written("grid: {n: [3, 300]}\nfigures: []\ncheckpoint: 0\n", WITHOUT_TIMES))
    assert 0.0 < ds.total.sel(n=3).item() < 3.0 and 120 < ds.total.sel(n=300).item() < 180
    other = ran(written("grid: {rate: [1, 2]}\nfigures: []\ntimes: [0, 1, 2]\n", WITHOUT_STATE, "other"))
    np.testing.assert_allclose(other.x.sel(rate=2).squeeze(), np.exp([0.0, -2.0, -4.0]))


@pytest.mark.parametrize(
    ("code", "keys", "says"),
    [
        (WITHOUT_STATE, "times: [0, 1, 2]\ncheckpoint: 1 min\n", "checkpoint: decay cannot go on"),
        (WITHOUT_STATE, "times: [0, 1, 2]\nkeep: ends\n", "keep: decay cannot go on"),
        (WITHOUT_TIMES, "checkpoint: often\n", "checkpoint: not a time; got 'often'"),
        (WITHOUT_TIMES, "checkpoint: -3\n", "checkpoint: not a time"),
        (WITHOUT_TIMES, "keep: all\n", "keep"),
        (WITHOUT_TIMES, "keep: ends\n", "keep: total cannot go on; .*arguments `times` and `state`"),
        (WITHOUT_TIMES, "parameters: {state: 1}\n", "state"),
    ],
)
def test_keys_of_states_are_refused_where_there_are_none(code: str, keys: str, says: str, written: Written) -> None:
    with pytest.raises(InputError, match=says):
        load(written(f"grid: {{}}\n{keys}", code))


def test_how_often_a_state_is_kept(written: Written) -> None:
    config = written("grid: {n: [3]}\n", WITHOUT_TIMES)
    assert load(config).checkpoint == 300.0
    times = {"2 h": 7200.0, "1.5min": 90.0, "30 s": 30.0, "12": 12.0}
    assert {text: load(config, [f"checkpoint={text}"]).checkpoint for text in times} == times


@pytest.mark.rest
def test_a_deletion_in_one_sweep_leaves_what_another_has_taken_from_it(written: Written) -> None:
    """Both link the same segments; the path of the function is relative to the folder of the results."""
    first, other = written(KEYS, name="first"), written(KEYS, name="other")
    other.write_text(first.read_text(), encoding="utf-8")
    steps, results = first.parent / "steps", first.parent / "results"
    ran(first)
    ran(first, "seeds=4")
    before, computed = ran(other, "seeds=4"), steps.read_text()
    sweep = sweeplib.Sweep.from_yaml(first, results=results)
    with pytest.raises(InputError, match="the present results are of another config"):
        delete_stale(sweep.design, results / "first")
    sweep.run(progress=False)
    assert sum(each.cases or 0 for each in delete_stale(sweep.design, results / "first")) == 4
    assert stale(sweep.design, results / "first") == []
    grown = sweeplib.Sweep.from_yaml(other, "seeds=4", results=results).design
    assert verify(grown, other, results / "other", sample=0, progress=False).exit_status == 0
    xr.testing.assert_identical(ran(other, "seeds=4").drop_attrs(), before.drop_attrs())
    assert steps.read_text() == computed, "all was taken, and nothing is lost"


def test_a_state_is_kept_although_another_worker_removes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, write = CheckpointFolder(str(tmp_path)), checkpoints.write_bytes
    gone = iter([True, True, False])

    def written_unless_gone(path: Path, content: bytes) -> None:
        if next(gone):
            raise FileNotFoundError(path)
        write(path, content)

    monkeypatch.setattr(checkpoints, "write_bytes", written_unless_gone)
    folder.write("0" * 32, b"state")
    assert folder.read("0" * 32) == b"state"
