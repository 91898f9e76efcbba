"""Pipes, devices, sockets, folders and links to nowhere in the place of the files of a finished sweep."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

import pytest

from tests.faults.finished import Done
from tests.irregular import IRREGULAR, put
from tests.tiers import slow_but

PLACES = (
    "calm.done.json",
    "origin.json",
    "config.yaml",
    "plan.done.json",
    "dataset.done.json",
    "journal/calm.jsonl",
    "journal/complete.json",
    "journal/errors.log",
    "jobs/simulate.json",
    "outcomes/calm.csv",
    "inventory/calm.npz",
    "runs.zarr/zarr.json",
    "runs.zarr/calm/LAYOUT/zarr.json",
    "runs.zarr/calm/LAYOUT/risk/zarr.json",
    "runs.zarr/calm/LAYOUT/status/c/0",
    "dataset.zarr/zarr.json",
    "dataset.zarr/manifest.json",
    "dataset.zarr/status/zarr.json",
    "analysis/exit_times.zarr/zarr.json",
    "analysis/exit_times.done.json",
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


@pytest.mark.parametrize("place", slow_but(PLACES, "runs.zarr/calm/LAYOUT/risk/zarr.json"))
def test_no_command_waits_for_them_and_none_has_a_traceback(
    place: str, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(done.config.parent)
    layout = next((done.directory / "runs.zarr" / "calm").glob("p*")).name
    path = done.directory / place.replace("LAYOUT", layout)
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


@pytest.mark.parametrize("chunk", slow_but(("risk/c/0/0", "status/c/0"), "risk/c/0/0"))
def test_in_the_place_of_a_chunk_they_are_found_and_repaired(chunk: str, done: Done) -> None:
    """A folder, which a person may have made, is found and stays."""
    before, path = done.dataset, done.layouts[0].path / chunk
    for kind in IRREGULAR:
        put(path, kind)
        for repair in ((), ("--repair",)):
            with no_wait(kind):
                status, said = done.told("verify", *repair, "--sample", "0")
            assert status == 1 and "an error in sweeplib" not in said, (kind, said)
            assert kind == "link to itself" or sum(line.startswith(f"{path}: ") for line in said.splitlines()), said
        if kind == "folder":
            assert path.is_dir() and done.told("finalise")[0] in (1, 2)
        else:
            assert done.told("verify", "--sample", "0")[0] == 0 and done.dataset == before, kind


OF_OTHERS = {
    "zarr.json": "../zarr.json",
    "risk/zarr.json": "overlap_M/zarr.json",
    "status/zarr.json": "zarr.json",
    "seed/zarr.json": "case_id/zarr.json",
}


@pytest.mark.parametrize("place", slow_but(OF_OTHERS, "zarr.json"))
def test_metadata_of_another_place_is_damaged_whole_or_not(place: str, done: Done) -> None:
    before, layout = done.dataset, done.layouts[0].path
    (layout / place).write_bytes((layout / OF_OTHERS[place]).read_bytes())
    for command in ("status", "plan", "prune", "finalise"):
        said = done.told(command)[1]
        assert "an error in sweeplib" not in said, (command, said)
    [finding] = done.verified("--sample", "0")[1]["damaged"]
    assert finding["file"] == str(layout / place)
    assert done.verified("--repair", "--sample", "0")[1]["left"] == []
    assert done.dataset == before and done.told("verify", "--sample", "0")[0] == 0
