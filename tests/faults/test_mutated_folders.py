"""Folders of results in which files were cut, edited, copied, renamed or deleted: no traceback, and no other number."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import sweeplib
from sweeplib import SweeplibError
from sweeplib.commands.cli import app
from sweeplib.engine.storage.records.files import REPAIR
from tests.faults.finished import Done
from tests.tiers import slow_but

READERS = (
    ("status",),
    ("status", "--json"),
    ("summary",),
    ("verify", "--sample", "0"),
    ("prune",),
    ("plan",),
)
OTHER_TYPES = ("[]", "3", '"text"', "null", "{}", "[[1], {}]", '{"files": 3, "cases": []}', "1e999", "{", "\0")
FOLDERS = [
    pytest.param(range(6), marks=pytest.mark.rest, id="6"),
    pytest.param(range(6, 40), marks=pytest.mark.slow, id="40"),
    pytest.param(range(40, 300), marks=pytest.mark.long, id="300"),
]


def cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(1 + path.stat().st_size)])


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    bit = rng.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def replace(path: Path, rng: random.Random) -> None:
    path.write_text(rng.choice(OTHER_TYPES))


def edit(path: Path, rng: random.Random) -> None:
    """Give a value of a JSON file another type; cut what is none."""
    try:
        values = json.loads(path.read_bytes())
        values[rng.choice(sorted(values))] = rng.choice([None, 3, "x", [], {}, True, 1e308, [None], {"a": []}])
        path.write_text(json.dumps(values))
    except (ValueError, TypeError, IndexError):
        cut(path, rng)


def double(path: Path, rng: random.Random) -> None:
    other = rng.choice([f"copy of {path.name}", f"{rng.getrandbits(128):032x}{path.suffix}", f"{path.name}~"])
    shutil.copy(path, path.with_name(other))


def rename(path: Path, rng: random.Random) -> None:
    path.rename(path.with_name(rng.choice([f"{rng.getrandbits(128):032x}{path.suffix}", f"x{path.name}"])))


def swap(path: Path, rng: random.Random) -> None:
    """Exchange the content of a file with that of another one of its kind."""
    other = rng.choice(sorted(each for each in path.parent.iterdir() if each.suffix == path.suffix and each.is_file()))
    content, others = path.read_bytes(), other.read_bytes()
    path.write_bytes(others)
    other.write_bytes(content)


def delete_folder(path: Path, rng: random.Random) -> None:
    shutil.rmtree(path.parent)


MUTATIONS: tuple[Callable[[Path, random.Random], None], ...] = (
    *(cut, flip, replace, edit, double, rename, swap, delete_folder),
    lambda path, rng: path.unlink(),
    lambda path, rng: path.write_bytes(path.read_bytes() + rng.randbytes(100)),
)


def mutate(folder: Path, rng: random.Random) -> list[str]:
    """Change some files of a folder; return their names."""
    names = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        every = sorted(path for path in folder.rglob("*") if path.is_file())
        if not every:
            break
        outside = [path for path in every if ".zarr/" not in path.as_posix()]
        path = rng.choice(outside if outside and rng.random() < 0.6 else every)
        change = rng.choice(MUTATIONS)
        change(path, rng)
        names.append(f"{change.__name__} {path.relative_to(folder)}")
    return names


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seeds", FOLDERS)
def test_no_reader_has_a_traceback_or_another_number(seeds: range, done: Done, tmp_path: Path) -> None:
    true, intact = sweeplib.open(done.directory).load(), tmp_path / "intact"
    done.directory.rename(intact)
    readers = *READERS, ("export", "--to", "csv", "--output", str(tmp_path / "tables"))
    for seed in seeds:
        shutil.rmtree(done.directory, ignore_errors=True)
        shutil.copytree(intact, done.directory)
        names = mutate(done.directory, random.Random(seed))
        for words in readers:
            status, said = done.told(*words)
            assert status in (0, 1, 2, 3), (seed, names, words, said)
            assert "Traceback" not in said and "an error in sweeplib" not in said, (seed, names, words, said)
        try:
            read = sweeplib.open(done.directory).load()
        except SweeplibError:
            continue
        assert read.variables.keys() == true.variables.keys(), (seed, names)
        for name in true.variables:
            np.testing.assert_array_equal(read[name], true[name], err_msg=f"{seed}: {names}")


RECORDS = (
    "plan.json",
    "dataset.zarr/manifest.json",
    *(f"stages/{name}.json" for name in ("plan", "simulate.calm", "finalise")),
)


@pytest.mark.rest
@pytest.mark.parametrize("place", slow_but(RECORDS, "dataset.zarr/manifest.json"))
def test_the_whole_record_of_something_else_is_none(place: str, done: Done) -> None:
    """As a copy over it leaves it: its checksum is right."""
    assert done.told("plan")[0] == 0
    path = done.directory / place
    contents = {name: (done.directory / name).read_bytes() for name in (*RECORDS, "origin.json")}
    for name in contents.keys() - {place}:
        path.write_bytes(contents[name])
        for words in (("status",), ("status", "--json"), ("summary",), ("verify", "--sample", "0"), ("report",)):
            status, said = done.told(*words)
            assert "an error in sweeplib" not in said and status in (0, 1, 2, 3), (name, words, said)
        listed = CliRunner().invoke(app, ["list", "--results", str(done.directory.parent)])
        assert listed.exit_code == 0 and "verified" in listed.output, (name, listed.output)
    path.write_bytes(contents[place])


OTHER_FILES = (b"\xa5\xff", b"[1]\n", b"{", b"3\n")
TABLES = (*OTHER_FILES, b"identity,status\n1,2\n", b'"')


@pytest.mark.parametrize("table", slow_but(TABLES, OTHER_FILES[0]))
def test_another_file_in_the_place_of_the_table_of_outcomes_is_named(table: bytes, done: Done) -> None:
    path = done.directory / "outcomes" / "calm.csv"
    before = path.read_bytes()
    for content in (table, before.split(b"\n")[0] + b"\n" + table, before.replace(b",failed,", b",failed,3,")):
        path.write_bytes(content)
        for words in (("status",), ("status", "--json"), ("report",)):
            status, said = done.told(*words)
            assert f"{path}: damaged, it holds something else than was written" in said, (content, words, said)
            assert "an error in sweeplib" not in said and status == int(words != ("status",))
        assert done.told("verify", "--repair", "--sample", "0")[0] == 1 and path.read_bytes() == before


@pytest.mark.rest
def test_a_table_of_outcomes_that_is_gone_is_named_until_its_cases_are_to_be_computed(done: Done) -> None:
    path = done.directory / "outcomes" / "calm.csv"
    before = path.read_bytes()
    for gone in (path, path.parent):
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        for words in (("status",), ("status", "--json"), ("report",)):
            status, said = done.told(*words)
            assert f"{path}: lost, " in said and REPAIR in said, (gone, words, said)
            assert "an error in sweeplib" not in said and status == int(words != ("status",))
        assert done.told("verify", "--repair", "--sample", "0")[0] == 1 and path.read_bytes() == before
    assert done.told("retry", "failed")[0] == 0 and not path.exists()
    lines = done.told("status")[1].splitlines()  # the last error is that of the report
    assert not any(line.startswith(f"{path}: lost") for line in lines), lines


@pytest.mark.parametrize("content", slow_but(OTHER_FILES, OTHER_FILES[0]))
def test_another_file_in_the_place_of_the_complete_config_is_named(content: bytes, done: Done) -> None:
    path = done.directory / "config.yaml"
    before = path.read_bytes()
    path.write_bytes(content)
    status, said = done.told("prune", "--delete", "--set", "analyses={}")
    assert status == 1 and f"{path}: damaged, it holds something else than was written; {REPAIR}" in said, said
    for words in (("prune",), ("status",), ("verify", "--repair", "--sample", "0")):
        status, said = done.told(*words)
        assert "an error in sweeplib" not in said and status in (0, 1), (words, said)
    assert path.read_bytes() == before and done.told("prune", "--delete", "--set", "analyses={}")[0] == 0
