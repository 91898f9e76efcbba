"""`sweeplib verify`: every flipped bit of the results is found, named and repaired; the dataset is then the same."""

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from sweeplib.engine.records import Records
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import partial, read_json, write_json
from sweeplib.engine.storage.records.locks import driver_lock
from sweeplib.engine.storage.records.manifest import manifest_of, written_manifest
from sweeplib.engine.storage.records.stage_records import forget_record, record_path, stage_record
from sweeplib.engine.storage.store.run_store import segment_paths, whole
from sweeplib.networks.simulation import Case
from sweeplib.networks.simulator import SIMULATOR
from tests.faults.finished import CONFIG, Done
from tests.faults.sweeps import files
from tests.tiers import slow_but


def flip(file: Path, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


def test_what_was_written_is_clean(done: Done) -> None:
    before = files(done.directory)
    status, said = done.verified("--sample", "30")
    assert (status, said["damaged"], said["notes"]) == (0, [], [])
    assert said["cases_recomputed"] == {"calm": 30}
    assert said["chunks_read"]["calm"] == len(done.segments) and said["chunks_read"]["dataset"] > 10
    assert files(done.directory) == before


FLIPS = [pytest.param(12, id="12"), pytest.param(100, id="100", marks=pytest.mark.long)]


@pytest.mark.parametrize("count", FLIPS)
def test_flipped_bits_of_both_stores_are_found_named_and_repaired(done: Done, count: int) -> None:
    before, rng = done.dataset, random.Random(count)
    stores = [done.directory / "runs", done.directory / "dataset.zarr"]
    found = sorted(path for store in stores for path in store.rglob("*") if path.is_file())
    sizes = [path.stat().st_size for path in found]
    flipped = set()
    for file in rng.choices(found, sizes, k=count):
        flip(file, rng.randrange(8 * file.stat().st_size))
        flipped.add(file)
    status, said = done.told("verify", "--repair")
    assert status == 1
    lines = said.splitlines()
    for file in flipped:
        assert sum(line.startswith(f"{file}: damaged") for line in lines) == 1, file
    assert "not repaired" not in said
    assert done.dataset == before
    assert done.told("verify", "--sample", "4")[0] == 0


@pytest.mark.slow
def test_a_flipped_bit_in_every_file_at_once(done: Done) -> None:
    """Also in manifests, journals, descriptions of failures: all are named, and the results are the same again."""
    before, rng = files(done.directory), random.Random(1)
    write_json(done.directory / "plan.json", {"name": "verified"})
    every = [path for path in done.directory.rglob("*") if path.is_file() and path.stat().st_size]
    for file in every:
        flip(file, rng.randrange(8 * file.stat().st_size))
    status, said = done.told("verify", "--repair", "--sample", "0")
    assert status == 1
    again = Path(TABLE).name, "README.md"  # any run writes these
    for file in (path for path in every if path.name not in again):
        assert any(line.startswith(f"{file}: ") and "; repaired: " in line for line in said.splitlines()), (file, said)
    assert done.verified()[0] == 0
    after = files(done.directory)
    same = [name for name in before if not name.startswith(("stages/", "journal/", "locks/", "runs/"))]
    for name in same:
        assert after[name] == before[name], name


def lost(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    """What a power cut may leave of a file."""
    path.write_bytes(b"")


def garbled(path: Path) -> None:
    flip(path, 8 * path.stat().st_size // 3)


def moved(path: Path) -> None:
    path.rename(path.with_name("moved"))


def partly_written(path: Path) -> Path:
    """Return a file that a killed writer of `path` left."""
    cut(left := partial(path))
    return left


REASONS, TABLE = "journal/calm.reasons.jsonl", "outcomes/calm.csv"


HARMS = [
    ("{segment}", lost, "lost, cases that were computed are no longer there", "cases", 4),
    ("{segment}", cut, "damaged", "cases", 0),
    ("{segment}", garbled, "damaged", "cases", 4),
    (REASONS, lost, "lost", "cases", 2),
    (REASONS, garbled, "1 damaged lines", "cases", 1),
    (TABLE, lost, "lost", "again", 0),
    (TABLE, garbled, "damaged", "again", 0),
    ("config.yaml", garbled, "damaged, or edited", "again", 0),
    ("command.yaml", cut, "damaged, or edited", "refused", 0),
    ("dataset.zarr", moved, "lost", "again", 0),
    ("dataset.zarr/manifest.json", lost, "lost", "again", 0),
    ("dataset.zarr/status/c/0/0/0/0", lost, "lost", "again", 0),
    ("stages/analyse.exit_times.json", garbled, "damaged", "again", 0),
    ("analysis/exit_times.zarr/zarr.json", lost, "lost", "again", 0),
    ("stages/simulate.json", cut, "damaged", "delete", 0),
    ("stages/finalise.json", partly_written, "stale, left by a writer that was killed", "delete", 0),
    ("{segment}", partly_written, "stale, left by a writer", "delete", 0),
    ("locks/calm/{layout}/0.begun", cut, "stale, left by a worker that died", "delete", 0),
]
FIRST_OF_EACH_REPAIR = {harm[3]: harm for harm in reversed(HARMS)}.values()


@pytest.mark.parametrize(("name", "harm", "problem", "repair", "cases"), slow_but(HARMS, *FIRST_OF_EACH_REPAIR))
def test_each_kind_of_file_is_named_in_a_line(
    done: Done, name: str, harm: Callable[[Path], Path | None], problem: str, repair: str, cases: int
) -> None:
    segment = done.segments[0]
    file = done.directory / name.format(layout=segment.layout, segment=segment.path.relative_to(done.directory))
    file.parent.mkdir(parents=True, exist_ok=True)
    file = harm(file) or file
    if (name, harm) == ("{segment}", lost):
        file = file.parent
    status, said = done.verified("--sample", "0")
    [finding] = said["damaged"]
    assert (status, said["left"], finding["file"]) == (1, None, str(file))
    assert finding["problem"].startswith(problem)
    assert (finding["repair"], len(finding["cases"])) == (repair, cases)


def test_lost_files_are_repaired_with_no_other_case_computed(done: Done) -> None:
    before, segments = done.dataset, done.segments
    table = (done.directory / TABLE).read_text()
    failed = done.told("status", "--json")[1]
    lost(done.directory / REASONS)
    cut(segments[0].path)
    garbled(segments[3].path)
    lost(done.directory / "analysis" / "exit_times.zarr" / "zarr.json")
    status, said = done.told("verify", "--repair", "--sample", "0")
    assert (status, said.count("repaired: ")) == (1, 4)
    others = [segment for place, segment in enumerate(segments) if place not in (0, 3)]
    failed_there = sum(int((segment.status == Status.failed).sum()) for segment in others)
    computed = len(segments[0]) + len(segments[3]) + failed_there
    assert f"verified: {computed}/{computed} cases" in said
    assert done.dataset == before
    assert (done.directory / TABLE).read_text() == table
    assert done.told("status", "--json")[1] == failed
    assert done.verified("--sample", "0")[0] == 0


def test_a_lost_segment_is_noticed_by_what_the_last_run_said(done: Done) -> None:
    before = done.dataset
    lost(done.segments[0].path)
    status, said = done.told("verify", "--repair", "--sample", "0")
    assert status == 1 and "lost, cases that were computed are no longer there (4 cases of calm: " in said
    assert done.dataset == before and done.verified("--sample", "0")[0] == 0


def test_a_link_of_an_earlier_version_is_read_written_again_and_a_foreign_one_is_refused(done: Done) -> None:
    before, link = done.dataset, done.directory / "dataset.zarr"
    version = done.directory / "datasets" / f"{stage_record(done.directory, 'finalise').digest}.zarr"
    version.parent.mkdir()
    link.rename(version)
    link.symlink_to(f"datasets/{version.name}")
    assert done.verified("--sample", "0")[1]["damaged"] == []
    link.unlink()
    link.symlink_to(f"datasetr/{version.name}")
    assert [each["repair"] for each in done.verified()[1]["damaged"]] == ["refused"]
    link.unlink()
    link.symlink_to(f"datasets/{'0' * 32}.zarr")
    assert [each["repair"] for each in done.verified()[1]["damaged"]] == ["again"]
    assert done.verified("--repair")[1]["left"] == []
    assert done.dataset == before and not link.is_symlink()
    moved(link)
    link.symlink_to(done.config.parent, target_is_directory=True)
    status, said = done.told("verify", "--repair")
    assert status == 1
    assert f"{link}: a link to " in said and "which sweeplib did not make; delete the link, if it is not yours" in said
    assert link.readlink() == done.config.parent


def test_arrays_that_were_never_written_are_found(done: Done) -> None:
    """A cleaner beside the writer of an earlier sweeplib: its certificate and its marker were made from the ruin."""
    before, dataset = done.dataset, done.directory / "dataset.zarr"
    shutil.rmtree(dataset / "risk")
    manifest = manifest_of(dataset)
    files = {name: entry for name, entry in manifest.files.items() if not name.startswith("risk/")}
    ruin = written_manifest(dataset, files)
    record = record_path(done.directory, "finalise")
    write_json(record, read_json(record) | {"digest": ruin.digest})
    [finding] = done.verified("--sample", "0")[1]["damaged"]
    assert finding["file"] == str(dataset / "risk") and finding["problem"].startswith("lost")
    assert done.verified("--repair", "--sample", "0")[1]["left"] == []
    assert done.dataset == before


def test_a_kept_version_that_is_damaged_is_deleted(done: Done) -> None:
    assert done.told("finalise", "--set", "seeds=5")[0] == 0
    assert done.told("finalise")[0] == 0
    [kept] = (done.directory / "datasets").iterdir()
    (kept / "mine.txt").write_text("mine")
    garbled(kept / "risk" / "c" / "0" / "0" / "0" / "0" / "0")
    assert [each["repair"] for each in done.verified("--sample", "0")[1]["damaged"]] == ["delete"]
    assert done.verified("--repair", "--sample", "0")[1]["left"] == []
    assert [path.name for path in kept.rglob("*")] == ["mine.txt"]


def test_bits_that_are_wrong_with_a_right_checksum_are_found_by_computing_again(done: Done) -> None:
    before = done.dataset
    segment = done.segments[0]
    row, risk = int(np.flatnonzero(segment.status == Status.ok)[-1]), segment.data("risk")
    risk[row, 1] *= 1 + 1e-12
    segment = done.replace_values(segment, risk=risk)
    assert done.verified("--sample", "0") == (0, done.verified("--sample", "0")[1])
    status, said = done.verified("--sample", "1000")
    [finding] = said["damaged"]
    identity = whole(segment.ids[row]).hex()
    assert status == 1 and finding["cases"] == [identity]
    problem = f"the case {identity} computed again has other bits: 1 of 2 values of risk differ: risk[1] is "
    assert finding["problem"].startswith(problem)
    assert done.verified("--repair", "--sample", "1000")[1]["left"] == []
    assert done.verified("--sample", "1000")[0] == 0
    assert done.dataset == before


def test_cases_that_all_differ_are_not_replaced(done: Done) -> None:
    for segment in done.segments:
        values = {"risk": segment.data("risk") * 2.0, "end_steps": segment.data("end_steps") + 1.0}
        done.replace_values(segment, **values)
    before = segment_paths(done.directory, "calm")
    status, said = done.verified("--repair", "--sample", "1000")
    assert status == 1 and {each["repair"] for each in said["damaged"]} == {"refused", "again"}
    assert "all cases of the sample differ" in done.told("verify")[1]
    assert segment_paths(done.directory, "calm") == before


def test_a_case_that_raises_here_is_not_replaced(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SIMULATOR.run

    def raising(cases: Sequence[Case]) -> Records:
        if any((case.seed, case.problem.gamma, case.problem.p) == (5, 0.2, 1) for case in cases):
            raise MemoryError("not here")
        return run(cases)

    monkeypatch.setattr(SIMULATOR, "run", raising)
    [finding] = done.verified("--repair", "--sample", "1000")[1]["left"]
    assert finding["repair"] == "refused" and len(finding["cases"]) == 1
    assert (
        "status is 1.0 in the store, 3.0 here (1 case of calm: gamma=0.2, p=1, seed=5); it does not end here"
        in (done.told("verify", "--sample", "1000")[1])
    )


def test_what_a_killed_driver_said_of_itself_is_forgotten(done: Done) -> None:
    holder = done.directory / "locks" / "calm.holder.json"
    killed = "import os, sys, pathlib; from sweeplib.engine.storage.records.locks import driver_lock; "
    killed += "lock = driver_lock(pathlib.Path(sys.argv[1]), 'calm'); lock.__enter__(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed, done.directory], check=False)
    assert holder.exists()
    assert done.verified("--sample", "0")[0] == 0
    assert not holder.exists()


def test_an_unfinished_sweep_is_repaired_and_stays_unfinished(done: Done) -> None:
    done.config.write_text(CONFIG.replace("seeds: 6", "seeds: 8"))
    forget_record(done.directory, "simulate.calm")
    garbled(done.segments[0].path)
    status, said = done.verified("--repair", "--sample", "0")
    assert (status, len(said["damaged"]), said["left"]) == (1, 1, [])
    assert "calm was not finished: the next run computes its cases" in said["notes"]
    assert "20 cases computed now" in done.told("run", "--no-progress")[1]


def test_wrong_input_is_refused_in_a_line(done: Done) -> None:
    assert done.told("verify", "--sample", "-1")[0] == 2
    record_path(done.directory, "simulate.calm").chmod(0o444)
    nowhere = Done(done.config.parent / "other.yaml")
    nowhere.config.write_text(CONFIG.replace("name: verified", "name: other"))
    status, said = nowhere.told("verify")
    assert (status, said.count("\n")) == (2, 1)
    assert "no results here; expected `sweeplib sweep" in said
    with driver_lock(done.directory, "calm"):
        status, said = done.told("verify", "--repair")
    assert status == 1 and re.search(r"process \d+ of .* runs calm here since .*; expected one command at a time", said)


def test_results_that_cannot_be_written_are_read(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweeplib.commands.upkeep.verify.access", lambda *_: False)
    assert done.verified("--sample", "1")[0] == 0
    status, said = done.told("verify", "--repair")
    assert status == 2 and "cannot be written" in said
