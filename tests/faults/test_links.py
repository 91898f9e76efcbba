"""Links of a person in the folder of a sweep: what they lead to is neither written nor deleted, by any command."""

import shutil
from pathlib import Path

import pytest

from tests.faults.finished import Done
from tests.faults.sweeps import files

COMMANDS = {
    "LAYOUT": [("run", "--set", "seeds=8"), ("retry", "failed"), ("verify", "--repair", "--sample", "0")],
    "LAYOUT/risk": [("run", "--set", "seeds=8"), ("verify", "--repair", "--sample", "0")],
    "analysis/exit_times.zarr": [("analyse",), ("prune", "--delete", "--set", "analyses={}")],
    "dataset.zarr": [("finalise",), ("verify", "--repair", "--sample", "0")],
}


@pytest.mark.parametrize("place", COMMANDS)
def test_what_a_link_leads_to_stays_as_it_is(place: str, done: Done, tmp_path: Path) -> None:
    layout = next((done.directory / "runs.zarr" / "calm").glob("p*"))
    path = layout / place.partition("/")[2] if place.startswith("LAYOUT") else done.directory / place
    outside = tmp_path / "outside"
    shutil.move(path, outside)
    (outside / "thesis").write_text("of a person")
    path.symlink_to(outside)
    before = files(outside)
    for words in COMMANDS[place]:
        status, said = done.told(*words)
        assert "an error in sweeplib" not in said and status in (0, 1, 2), said
        assert files(outside) == before, (words, said)
        assert path.readlink() == outside
    status, said = done.told(*COMMANDS[place][0])
    [line] = [line for line in said.splitlines() if "link to" in line]
    assert status in (1, 2) and str(path) in line and "which sweeplib did not make" in line


@pytest.mark.parametrize("name", ["config.yaml", "command.yaml", "plan.json"])
def test_a_linked_record_is_refused_before_anything_is_written(name: str, done: Done, tmp_path: Path) -> None:
    path, outside = done.directory / name, tmp_path / name
    if path.exists():
        shutil.move(path, outside)
    else:
        outside.write_text("of a person")
    path.symlink_to(outside)
    before = files(done.directory), outside.read_bytes()
    status, said = done.told("finalise", "--set", "seeds=2")
    [line] = said.splitlines()
    assert status in (1, 2) and str(path) in line and "which sweeplib did not make" in line
    assert (files(done.directory), outside.read_bytes()) == before
