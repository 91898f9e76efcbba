"""Links of a person in the folder of a sweep: what they lead to is neither written nor deleted, by any command."""

import shutil
from pathlib import Path

import pytest

from sweeplib.engine.status import Status
from tests.faults.finished import Done
from tests.faults.sweeps import files

COMMANDS = {
    "runs": [("run", "--set", "seeds=8"), ("retry", "all"), ("verify", "--repair", "--sample", "0")],
    "runs/calm": [("run", "--set", "seeds=8"), ("retry", "all"), ("verify", "--repair", "--sample", "0")],
    "analysis/exit_times.zarr": [("analyse",), ("prune", "--delete", "--set", "analyses={}")],
    "dataset.zarr": [("finalise",), ("verify", "--repair", "--sample", "0")],
}


@pytest.mark.parametrize("place", COMMANDS)
def test_what_a_link_leads_to_stays_as_it_is(place: str, done: Done, tmp_path: Path) -> None:
    path, outside = done.directory / place, tmp_path / "outside"
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


def test_a_damaged_segment_behind_a_link_stays(done: Done, tmp_path: Path) -> None:
    folder, outside = done.directory / "runs" / "calm", tmp_path / "outside"
    done.segments[0].path.write_bytes(b"")
    shutil.move(folder, outside)
    folder.symlink_to(outside)
    before = files(outside)
    for words in (("retry", "damaged"), ("verify", "--repair", "--sample", "0"), ("prune", "--delete")):
        status, said = done.told(*words)
        assert "an error in sweeplib" not in said and status in (1, 2), (words, said)
        assert files(outside) == before, (words, said)


def test_a_link_to_a_segment_is_read_and_what_it_leads_to_stays(done: Done, tmp_path: Path) -> None:
    """Also where its cases are forgotten: then only the link goes."""
    before, outside = done.dataset, tmp_path / "outside.npz"
    path = next(segment.path for segment in done.segments if (segment.status > Status.diverged).any())
    shutil.move(path, outside)
    path.symlink_to(outside)
    content = outside.read_bytes()
    for words in (("run",), ("verify", "--sample", "0"), ("prune", "--delete"), ("retry", "all")):
        assert path.is_symlink()
        status, said = done.told(*words)
        assert status == int(words == ("run",)) and outside.read_bytes() == content, (words, said)
    assert not path.is_symlink()
    assert done.told("run")[0] == 1  # the same cases end badly
    assert done.told("verify", "--sample", "0")[0] == done.told("finalise")[0] == 0 and done.dataset == before


READ = (
    *("runs/calm/SEGMENT.npz", "runs/calm", "runs", "dataset.zarr/status/c/0/0/0/0", "dataset.zarr/risk"),
    *("analysis/exit_times.zarr", "stages/simulate.calm.json", "config.yaml", "journal", "outcomes/calm.csv"),
)


def test_verify_names_each_link_to_what_is_whole(done: Done, tmp_path: Path) -> None:
    """It is no damage: but a copy of the folder may lack what the link leads to."""
    for place in READ:
        path, outside = done.directory / place.replace("SEGMENT", done.segments[0].path.stem), tmp_path / "outside"
        shutil.move(path, outside)
        path.symlink_to(outside)
        status, said = done.verified("--sample", "0")
        [note] = said["notes"]
        assert (status, said["damaged"]) == (0, []), place
        assert note.startswith(f"{path}: a link to '{outside}', which sweeplib did not make: what it leads to is read")
        path.unlink()
        shutil.move(outside, path)


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
