"""Pipes, devices, sockets, folders and links to nowhere in the place of the files of a finished sweep."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

import pytest

from tests.faults.finished import Done
from tests.irregular import IRREGULAR, put
from tests.tiers import slow_but
from tests.unit.test_earlier_store import as_earlier

PLACES = (
    "stages/simulate.calm.json",
    "stages/simulate.calm.done",
    "origin.json",
    "config.yaml",
    "stages/plan.json",
    "stages/finalise.json",
    "journal/calm.reasons.jsonl",
    "journal/calm.taken.jsonl",
    "stages/sweep.json",
    "journal/errors.log",
    "stages/simulate.json",
    "outcomes/calm.csv",
    "inventory/calm.npz",
    "runs/calm/SEGMENT.npz",
    "runs/calm",
    "runs",
    "dataset.zarr/zarr.json",
    "dataset.zarr/manifest.json",
    "dataset.zarr/status/zarr.json",
    "analysis/exit_times.zarr/zarr.json",
    "stages/analyse.exit_times.json",
    "report/index.html",
)
COMMANDS = (
    ("status",),
    ("summary",),
    ("prune",),
    ("verify", "--sample", "0"),
    ("export", "--to", "csv"),
    ("retry", "failed"),
    ("analyse",),
    ("finalise",),
    ("verify", "--repair", "--sample", "0"),
)
PATIENCE = 60
"""Seconds within which a command on a few cases ends on a machine that is busy."""


@contextmanager
def no_wait(what: str) -> Iterator[None]:
    """Return a context that fails if it takes long."""

    def waited(*_: object) -> None:
        raise AssertionError(f"waited: {what}")

    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("place", slow_but(PLACES, "runs/calm/SEGMENT.npz"))
def test_no_command_waits_for_them_and_none_has_a_traceback(
    place: str, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(done.config.parent)
    path = done.directory / place.replace("SEGMENT", done.segments[0].name)
    commands = cycle(COMMANDS)
    for kind in IRREGULAR:
        for command in (next(commands) for _ in range(5)):
            put(path, kind)
            with no_wait(f"{command} for {kind}"):
                status, said = done.told(*command)
            assert status in (0, 1, 2, 3) and "an error in sweeplib" not in said, (command, kind, said)


def test_a_config_does_not_start_from_them_and_a_table_is_none(done: Done) -> None:
    folder, config = done.config.parent, done.config.read_text().replace("name: verified", "name: other")
    for kind in ("pipe", "socket", "link to a device"):
        put(folder / "base.yaml", kind)
        put(folder / "points.csv", kind)
        put(folder / "plugin.py", kind)
        texts = {
            "from: base.yaml\n": "is in the place of a file",
            f"{config}points: points.csv\n": "not a table" if "link" in kind else "is in the place of a file",
            config.replace("[tests.faults.troubled]", "[plugin.py]"): (
                "plugins: cannot be imported" if "link" in kind else "something else than a file is there: "
            ),
        }
        for text, words in texts.items():
            sweep = Done(folder / "other.yaml")
            sweep.config.write_text(text)
            with no_wait(f"{kind}: {text}"):
                status, said = sweep.told("status")
            assert status == 2 and words in said, said


def test_in_the_place_of_a_segment_they_are_found_and_repaired(done: Done) -> None:
    """A folder, which a person may have made, is found and stays."""
    before = done.dataset
    for kind in IRREGULAR:
        path = put(done.segments[0].path, kind)
        for repair in ((), ("--repair",)):
            with no_wait(kind):
                status, said = done.told("verify", *repair, "--sample", "0")
            assert status == 1 and "an error in sweeplib" not in said, (kind, said)
            assert sum(line.startswith(f"{path}: ") for line in said.splitlines()) == 1, said
        if kind == "folder":
            assert path.is_dir() and done.told("finalise")[0] in (1, 2)
        else:
            assert done.told("verify", "--sample", "0")[0] == 0 and done.dataset == before, kind


@pytest.mark.parametrize("other", [1, -1], ids=["of its layout", "of another layout"])
def test_the_content_of_another_segment_is_damage(other: int, done: Done) -> None:
    before, segments = done.dataset, done.segments
    assert (segments[0].layout == segments[other].layout) == (other == 1)
    path = segments[0].path
    path.write_bytes(segments[other].path.read_bytes())
    for command in ("status", "plan", "prune"):
        status, said = done.told(command)
        assert status == 0, (command, said)
    damaged, lost = done.verified("--sample", "0")[1]["damaged"]
    assert damaged["file"] == str(path) and lost["file"] == str(path.parent)
    assert done.verified("--repair", "--sample", "0")[1]["left"] == []
    assert done.dataset == before and done.told("verify", "--sample", "0")[0] == 0


def test_a_segment_of_another_dynamics_is_of_no_case_and_pruned(done: Done) -> None:
    before = done.dataset
    assert done.told("run", "--set", "dynamics=[troubled]", "--set", "seeds=1")[0] == 0
    [strange, *_] = (done.directory / "runs" / "troubled").iterdir()
    here = done.segments[0].path.with_name(strange.name)
    here.write_bytes(strange.read_bytes())
    for command in ("run", "verify", "finalise"):
        status, said = done.told(command)
        assert status == int(command == "run"), said  # two cases fail
        assert command != "run" or "0 cases computed now" in said
    assert done.dataset == before
    assert done.told("prune", "--delete")[0] == 0
    assert not here.exists() and not strange.exists()
    assert done.told("finalise")[0] == 0 and done.dataset == before


EARLIER = ("zarr.json", "risk/zarr.json", "risk/c/0/0", "status/c/0", "seed/c/0")


@pytest.mark.parametrize("place", slow_but(EARLIER, "risk/c/0/0"))
def test_in_an_earlier_store_no_command_waits_for_them(place: str, done: Done) -> None:
    as_earlier(done.directory, "calm")
    path = next((done.directory / "runs.zarr" / "calm").iterdir()) / place
    for kind in IRREGULAR:
        put(path, kind)
        for words in (("status",), ("run",), ("verify", "--sample", "0"), ("prune",)):
            with no_wait(f"{words} for {kind}"):
                status, said = done.told(*words)
            assert status in (0, 1, 2) and "an error in sweeplib" not in said, (words, kind, said)
