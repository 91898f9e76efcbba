"""A run store of an earlier version is read as it is, and becomes segments in the next run, whenever that is killed."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.execution import work
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.records.files import CHECKSUM, DamageError, append_line, digest
from sweeplib.engine.storage.store import earlier_store
from sweeplib.engine.storage.store.earlier_store import convert, has_earlier_store
from sweeplib.engine.storage.store.other_stores import COMPUTE_ALL
from sweeplib.engine.storage.store.run_store import RunStore, segment_paths, stored_dynamics
from sweeplib.engine.storage.store.segment import Segment
from tests.faults.sweeps import files
from tests.in_process import computed
from tests.unit.test_other_stores import GAMMAS, planned, ran, sweep_of

load_plugins(["tests.faults.troubled"])
BLOCK = 4


@pytest.fixture(autouse=True)
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMPUTE_ALL)
    monkeypatch.setattr(work, "dispatched", computed)


def as_earlier(directory: Path, dynamics: str) -> None:
    """Write the segments of a dynamics as the store of an earlier version, and delete them."""
    for segments in RunStore(directory, dynamics).alike():
        name = segments[0].layout
        _write_layout(directory / "runs.zarr" / dynamics / name, segments)
        lines = [{"block": f"{name}/{number}", "seconds": 1.5, "worker": "here:1", "cpu": "a 486"} for number in (0, 1)]
        for line in lines:
            append_line(directory / "journal" / f"{dynamics}.jsonl", line)
    shutil.rmtree(directory / "runs")


def _write_layout(path: Path, segments: list[Segment]) -> None:
    first = segments[0]
    data = {name: np.concatenate([segment.data(name) for segment in segments]) for name in first.variables}
    index = {name: np.concatenate([segment.index[name] for segment in segments]) for name in first.index}
    ids = np.concatenate([segment.ids for segment in segments])
    status = np.concatenate([segment.status for segment in segments])
    rows = len(ids) + 3  # the last block was not begun
    about = {"rows": rows, "block_size": BLOCK, "cost_class": 5, "shared": first.shared}
    dims = {name: first.dims(name) for name in first.variables}
    group = zarr.create_group(path, attributes=about | {"variables": dims})
    for name, values in {**data, "status": status}.items():
        of_variable = first.variables.get(name, {"dims": [], "attrs": {}})
        _write(group, name, values, rows, BLOCK, of_variable["dims"], of_variable["attrs"])
    _write(group, "case_id", ids.view("<u8").reshape(-1, 2), rows, 8, ["word"], {})
    for name, values in index.items():
        _write(group, name, values.astype(str) if name == "problem" else values, rows, 8, [], {})
    for file in path.rglob("zarr.json"):
        content = json.loads(file.read_text())
        text = json.dumps(content, sort_keys=True) + "\n"
        content["attributes"][CHECKSUM] = digest(text.encode())
        file.write_text(json.dumps(content, sort_keys=True) + "\n")


def _write(
    group: zarr.Group, name: str, values: np.ndarray, rows: int, chunk: int, dims: list[str], attributes: dict[str, Any]
) -> None:
    dtype: Any = str if values.dtype.kind in "U" else values.dtype
    array = group.create_array(
        name,
        shape=(rows, *values.shape[1:]),
        chunks=(chunk, *values.shape[1:]),
        dtype=dtype,
        compressors=(ZstdCodec(level=0), Crc32cCodec()),
        dimension_names=["case", *dims],
        attributes=attributes,
        config={"write_empty_chunks": True},
    )
    array[: len(values)] = values
    if name in ("case_id", "problem", "seed", "clock"):
        array[len(values) :] = np.repeat(values[:1], rows - len(values), axis=0)


@pytest.fixture
def earlier(tmp_path: Path) -> dict[str, bytes]:
    """Make an earlier store with cases of every outcome; return the dataset that it should have."""
    sweep = sweep_of("a", (*GAMMAS[:1], 101.0, 104.0), dynamics=("calm",))
    ran(sweep, tmp_path)
    dataset = files(finalise(sweep, tmp_path / "a"))
    as_earlier(tmp_path / "a", "calm")
    return dataset


def counts(directory: Path) -> tuple[int, int]:
    """Return the number of different stored cases, and that of segments."""
    return len(RunStore(directory, "calm").ids), len(segment_paths(directory, "calm"))


@pytest.mark.rest
def test_it_is_read_and_converted_by_the_next_run(tmp_path: Path, earlier: dict[str, bytes]) -> None:
    sweep, directory = sweep_of("a", (*GAMMAS[:1], 101.0, 104.0), dynamics=("calm",)), tmp_path / "a"
    assert stored_dynamics(directory) == ["calm"] and counts(directory) == (30, 0)
    assert planned(sweep, tmp_path, "calm") == (0, {}, 30)
    assert RunStore(directory, "calm").segments[0].processors == ("a 486",)
    assert planned(sweep_of("b", GAMMAS[:1], dynamics=("calm",)), tmp_path, "calm") == (0, {"a": 10}, 0)
    assert ran(sweep, tmp_path) == {"calm": 0}
    assert not (directory / "runs.zarr").exists() and not (directory / "journal/calm.jsonl").exists()
    assert counts(directory)[0] == 30 and all(segment.is_whole() for segment in RunStore(directory, "calm").segments)
    after = files(finalise(sweep, directory))
    assert {name for name in after if after[name] != earlier[name]} <= {"manifest.json", "zarr.json"}, "the processor"


@pytest.mark.rest
@pytest.mark.usefixtures("earlier")
def test_a_conversion_that_is_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, write, done = tmp_path / "a", earlier_store.write_content, 0
    for last in (0, 2, 4):

        def cut(*content: Any, last: int = last) -> Path:
            nonlocal done
            done += 1
            if done > last:
                raise RuntimeError("killed")
            return write(*content)

        done = 0
        monkeypatch.setattr(earlier_store, "write_content", cut)
        with pytest.raises(RuntimeError, match="killed"):
            convert(directory, "calm")
        assert has_earlier_store(directory, "calm") and counts(directory)[0] == 30
    monkeypatch.setattr(earlier_store, "write_content", write)
    removed, unlink = 0, Path.unlink

    def cut_off(path: Path, *, missing_ok: bool = False) -> None:
        nonlocal removed
        removed += 1
        if removed > 5:
            raise RuntimeError("killed")
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", cut_off)
        with pytest.raises(RuntimeError, match="killed"):
            convert(directory, "calm")
    assert counts(directory)[0] == 30 and any((directory / "runs.zarr").rglob("zarr.json"))
    convert(directory, "calm")
    assert not (directory / "runs.zarr").exists()
    assert not has_earlier_store(directory, "calm") and counts(directory)[0] == 30


@pytest.mark.rest
@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize(
    "part", ["risk/c/0/0", "status/c/0", "case_id/c/0/0", "problem/c/0", "risk/zarr.json", "zarr.json"]
)
def test_damage_is_named_and_nothing_is_deleted(tmp_path: Path, part: str) -> None:
    directory = tmp_path / "a"
    file = sorted((directory / "runs.zarr" / "calm").glob(f"*/{part}"))[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
    with pytest.raises(DamageError, match=r"delete the folder .*calm/p2_k1_w0-"):
        convert(directory, "calm")
    assert file.read_bytes() == content and has_earlier_store(directory, "calm")
    file.unlink()
    if part != "status/c/0":  # the cases of a lost chunk of the status are missing
        with pytest.raises(DamageError, match=r"delete the folder|zarr\.json"):
            convert(directory, "calm")
