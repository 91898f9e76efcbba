"""What large sweeps do otherwise: remembered inventories, expressions of columns, linked chunks."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from sweeplib.engine.design.design import Run
from sweeplib.engine.language import Expression
from sweeplib.engine.language.columns import Columns, OneByOneError
from sweeplib.engine.storage.dataset.folder import COMPRESSORS
from sweeplib.engine.storage.dataset.stores import LinkingStore
from sweeplib.engine.storage.store import inventory as inventory_module
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.run_store import RunStore, first_places
from sweeplib.engine.storage.store.segment import Segment
from sweeplib.errors import InputError
from sweeplib.networks.simulation import Recording
from tests.unit.test_inventory import sweep_of
from tests.unit.test_storage import cases, identities, write

RANDOM = np.random.default_rng(0)
COLUMNS: dict[str, list[Any]] = {
    "x": RANDOM.normal(size=50).tolist(),
    "y": (10.0 ** RANDOM.uniform(-300, 300, 50)).tolist(),
    "n": RANDOM.integers(1, 10**6, 50).tolist(),
    "big": [2**60 + at for at in range(50)],
}
FORMULAS = {
    "x / (12 + x)": True,
    "2 * 3 * x - -x": True,
    "n * x / 7": True,
    "x * n**-0.5 + exp(x)": True,
    "max(x, n, 0.5) + sqrt(n)": True,
    "1.5 * x // 1": True,
    "2**0.5 * x + sqrt(2)": True,
    "-n * x": True,
    "-n": False,
    "n * n": False,
    "n + 1": False,
    "x * big": False,
    "x if x > 0 else n": False,
    "round(x)": False,
    "n / n": False,
}


@pytest.mark.parametrize("text", FORMULAS)
def test_columns_have_the_values_of_points(text: str) -> None:
    """Values and types; formulas of floats are evaluated as columns, the others one by one."""
    formula = Expression(text)
    columns = {name: COLUMNS[name] for name in formula.names}
    rows = zip(*columns.values(), strict=True)
    expected = [formula.evaluate(dict(zip(columns, row, strict=True))) for row in rows]
    found = formula.evaluated(columns, 50)
    assert list(map(repr, found)) == list(map(repr, expected))
    assert _is_of_columns(formula, columns) is FORMULAS[text]


def _is_of_columns(formula: Expression, columns: dict[str, Sequence[Any]]) -> bool:
    try:
        Columns(columns).floats(formula._tree)
    except OneByOneError:
        return False
    return True


@pytest.mark.parametrize("text", ["1 / (x - x)", "0 * (1 / (x - x))", "y * y", "log(x)", "1 / (y * y * y)"])
def test_columns_are_refused_as_points_are(text: str) -> None:
    """Also where numpy would give a finite number from an infinite one."""
    formula, columns = Expression(text), {name: COLUMNS[name] for name in ("x", "y")}
    rows = [{"x": x, "y": y} for x, y in zip(columns["x"], columns["y"], strict=True)]
    with pytest.raises(InputError) as alone:
        list(map(formula.evaluate, rows))
    with pytest.raises(InputError) as together:
        formula.evaluated(columns, 50)
    assert str(alone.value) == str(together.value)


def test_identities_with_equal_first_words_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.array([[1, 1], [1, 2], [0, 5], [1, 2], [7, 7], [1, 1]], np.uint64)
    ids = pairs.view("S16").ravel()
    assert first_places(ids).tolist() == [0, 1, 2, 4]
    store = RunStore(tmp_path, "calm")
    monkeypatch.setattr(Segment, "__init__", lambda self, path: None)
    segment = Segment(tmp_path)
    segment.ids, segment.status = ids[[1, 0, 4]], np.ones(3, np.uint8)
    store.segments = [segment]
    assert store.locate(ids)[1].tolist() == [1, 0, -1, 0, 2, 1]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory_module, "FEWEST", 1)


def found(sweep: Any, directory: Path) -> Any:
    return inventory(sweep, "sgd_chain", RunStore(directory, "sgd_chain"))


def remembered(sweep: Any, directory: Path) -> None:
    """Remember the cases of a sweep."""
    found(sweep, directory).remember()


@pytest.mark.usefixtures("_small")
def test_a_remembered_inventory_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = sweep_of(10, 3)
    remembered(sweep, tmp_path)
    fresh = inventory(sweep, "sgd_chain", RunStore(tmp_path, "sgd_chain"))
    with monkeypatch.context() as patched:
        patched.setattr("sweeplib.engine.storage.store.inventory.identities_of_cases", None)  # it is not called
        again = found(sweep, tmp_path)
    for name in ("ids", "flat", "segment", "row", "status"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fresh, name))
    assert again.counts() == fresh.counts() == {**dict.fromkeys(fresh.counts(), 0), "missing": 30}


@pytest.mark.usefixtures("_small")
def test_remembered_positions_hold_as_long_as_the_segments_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then no segment is opened; one more, or one fewer, and all are looked up."""
    few = cases(4)
    write(tmp_path, few[:2])
    sweep = replace(sweep_of(), runs={"calm": Run("calm")})
    monkeypatch.setattr(inventory_module, "identities_of_cases", lambda *_: (identities(few), np.arange(4), None))

    def statuses() -> list[int]:
        store = RunStore(tmp_path, "calm")
        wanted = inventory(sweep, "calm", store)
        wanted.remember()
        return wanted.status.tolist()

    assert statuses() == [1, 1, 0, 0]
    with monkeypatch.context() as patched:
        patched.setattr(Segment, "__init__", None)
        assert statuses() == [1, 1, 0, 0]
    path = write(tmp_path, few[1:3])
    assert statuses() == [1, 1, 1, 0]
    path.unlink()
    assert statuses() == [1, 1, 0, 0]


@pytest.mark.rest
@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("change", ["seeds", "times", "values", "code", "damage"])
def test_another_sweep_is_not_taken_for_the_remembered_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    sweep = sweep_of(10, 3)
    remembered(sweep, tmp_path)
    file = tmp_path / "inventory/sgd_chain.npz"
    before = found(sweep, tmp_path).ids
    match change:
        case "seeds":
            sweep = replace(sweep, seeds=(0, 1, 3))
        case "times":
            sweep = replace(sweep, recording=Recording((0.5,)))
        case "values":
            sweep = sweep_of(11, 3)
        case "code":
            monkeypatch.setattr(inventory_module, "package_digest", lambda: "other")
        case "damage":
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
    cases = [case.identity() for _, case in sweep.cases("sgd_chain")]
    assert found(sweep, tmp_path).ids.tolist() == np.array(cases, "S16").tolist()
    if change in ("code", "damage"):
        assert (found(sweep, tmp_path).ids == before).all()


def test_chunks_of_the_previous_version_are_linked(tmp_path: Path) -> None:
    """Also at another place in the array; not those that differ in a byte under the same length and checksum."""

    def written(path: Path, rows: np.ndarray, before: Path | None) -> list[Path]:
        root = zarr.create_group(LinkingStore(path, before=before))
        array = root.create_array(
            "rows", shape=rows.shape, dtype=float, chunks=(1, rows.shape[1]), compressors=COMPRESSORS
        )
        array[...] = rows
        np.testing.assert_array_equal(zarr.open_group(path, mode="r")["rows"][...], rows)
        return [path / f"rows/c/{number}/0" for number in range(len(rows))]

    rows = RANDOM.normal(size=(3, 20))
    first = written(tmp_path / "one", rows, None)
    grown = written(tmp_path / "two", np.concatenate([rows[:1] + 1, rows]), tmp_path / "one")
    alone = written(tmp_path / "three", np.concatenate([rows[:1] + 1, rows]), None)
    assert [chunk.stat().st_nlink for chunk in grown] == [1, 2, 2, 2]
    assert [chunk.stat().st_ino for chunk in grown[1:]] == [chunk.stat().st_ino for chunk in first]
    assert [chunk.read_bytes() for chunk in grown] == [chunk.read_bytes() for chunk in alone]
    forged = first[0].read_bytes()
    first[0].unlink()
    first[0].write_bytes(bytes([forged[0] ^ 1]) + forged[1:])
    last = written(tmp_path / "four", rows, tmp_path / "one")
    assert [chunk.stat().st_nlink for chunk in last] == [1, 3, 3]
    assert last[1].samefile(first[1])
