"""Whatever a run meets, it ends true; the next ones finish it, with the numbers of a run that met nothing.

A failing seed is a test: `simulated_run(SEED, ...)` replays it, and `World.story` says what happened.
"""

import errno
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sweeplib.config import from_mapping
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.stage_records import stage_record
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.other_stores import COMPUTE_ALL
from sweeplib.engine.storage.store.outcomes import cases_without_reason
from sweeplib.engine.storage.store.run_store import RunStore, whole
from sweeplib.errors import SweeplibError
from tests.faults.simulated import FAULTS, KilledError, SimulatedCluster, World, simulated
from tests.faults.walks import FAILS

DRIVERS = 12
"""After so many drivers the world has no more faults."""
SEEDS = [
    pytest.param(range(40), marks=pytest.mark.rest, id="40"),
    pytest.param(range(40, 1000), marks=pytest.mark.slow, id="1000"),
    pytest.param(range(1000, 100_000), marks=pytest.mark.long, id="100000"),
]
AGAIN = range(12)
"""The seeds of runs that are made a second time."""
Numbers = dict[str, tuple[int, dict[str, bytes]]]
"""The status and the bits of all variables of each case."""

CONFIG: dict[str, Any] = {
    "name": "a",
    "simulator": str(Path(__file__).with_name("walks.py")),
    "grid": {"drift": [0.0, 0.5, FAILS]},
    "seeds": 10,
    "times": [1, 3, 6],
    "figures": [],
}
SWEEP = replace(from_mapping(CONFIG), checkpoint=0.0)
"""States are kept whenever they are yielded: less than one part of a case is lost by a death."""


def numbers(directory: Path) -> Numbers:
    """Return the status and the bits of all variables of each case."""
    found: Numbers = {}
    for segment in RunStore(directory, "walk").segments:
        data = {name: segment.data(name) for name in segment.variables}
        for row, identity in enumerate(segment.ids.tolist()):
            case = int(segment.status[row]), {name: values[row].tobytes() for name, values in data.items()}
            assert found.setdefault(whole(identity).hex(), case) == case
    return found


class Undisturbed(NamedTuple):
    """A run that met nothing: its numbers, and how often the state of a case was kept."""

    numbers: Numbers
    kept: int


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A run that meets nothing."""
    directory = tmp_path_factory.mktemp("undisturbed") / "a"
    world = World(0, 0.0)
    with simulated(world):
        run_sweep(replace(SWEEP, cluster=SimulatedCluster(block_size=4, world=world)), directory, progress=False)
    return Undisturbed(numbers(directory), world.kept)


def simulated_run(seed: int, directory: Path, undisturbed: Undisturbed) -> World:
    """Run a sweep by one driver after the other until it is done; return the world that they have met."""

    def another() -> None:
        """Run the sweep as somebody else does meanwhile."""
        with suppress(KilledError):
            try:
                run_sweep(sweep, directory, progress=False)
            except (SweeplibError, OSError) as error:
                world.story.append(str(error).replace(str(directory), "FOLDER"))

    world = World(seed, 0.15, another, len(undisturbed.numbers))
    sweep = replace(SWEEP, cluster=SimulatedCluster(block_size=1 + seed % 7, world=world))
    with simulated(world):
        for driver in range(DRIVERS + 1):
            if driver == DRIVERS:
                world.faults = 0.0
            world.begin()
            with suppress(KilledError):
                try:
                    summary = run_sweep(sweep, directory, progress=False)["walk"]
                    break
                except (SweeplibError, OSError) as error:
                    world.story.append(str(error).replace(str(directory), "FOLDER"))
    refused = [line for line in world.story if line not in FAULTS and not any(part in line for part in SAID)]
    assert not refused, (seed, world.story)
    world.hidden.clear()
    assert numbers(directory) == undisturbed.numbers, (seed, world.story)
    assert summary.cases == {status.name: count for status, count in _expected(undisturbed.numbers).items()}, seed
    assert stage_record(directory, "simulate.walk").counts == {
        name: count for name, count in summary.cases.items() if count
    }
    store = RunStore(directory, "walk")
    assert cases_without_reason(inventory(sweep, "walk", store)) == [], (seed, world.story)
    twice = sum(map(len, store.segments)) - len(store.ids)
    assert twice <= world.repeated, (seed, twice, world.story)
    again = world.kept - undisturbed.kept
    assert 0 <= again <= world.repeated * len(CONFIG["times"]), (seed, again, world.story)
    assert not list((directory / "locks").rglob("*.begun")) and not list(directory.rglob("*.partial"))
    return world


SAID = (
    "finished cases are stored",  # the scheduler is lost, or there are no workers
    "workers die as soon as they are given a block",
    os.strerror(errno.ENOSPC),
)


def _expected(cases: Numbers) -> dict[Status, int]:
    counts = dict.fromkeys(Status, 0)
    for status, _ in cases.values():
        counts[Status(status)] += 1
    return counts


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory, undisturbed: Undisturbed) -> list[list[str]]:
    """What runs with the seeds AGAIN have met, for both tests."""
    folder = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(COMPUTE_ALL, "1")
        return [simulated_run(seed, folder / str(seed) / "a", undisturbed).story for seed in AGAIN]


@pytest.mark.parametrize("seeds", SEEDS)
def test_runs_end_true_whatever_they_meet(
    tmp_path: Path, undisturbed: Undisturbed, stories: list[list[str]], monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.setenv(COMPUTE_ALL, "1")
    for seed in seeds:
        if seed not in AGAIN:  # these ended true for `stories`
            simulated_run(seed, tmp_path / str(seed) / "a", undisturbed)


@pytest.mark.rest
def test_the_same_seed_is_the_same_run(
    tmp_path: Path, undisturbed: Undisturbed, stories: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is simulated happens: in a few seeds, every fault."""
    monkeypatch.setenv(COMPUTE_ALL, "1")
    assert [simulated_run(seed, tmp_path / str(seed) / "a", undisturbed).story for seed in AGAIN] == stories
    assert {line for story in stories for line in story} >= FAULTS
