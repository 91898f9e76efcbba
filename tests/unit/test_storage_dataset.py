"""Datasets on disk: values are read back as written, in a form that plain xarray reads without a warning."""

import sys
import warnings
from pathlib import Path

import dask.array
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st
from xarray.namedarray import pycompat

from sweeplib.engine.base.late_modules import prepare_xarray
from sweeplib.engine.storage.dataset import folder as dataset_files
from sweeplib.engine.storage.dataset.folder import chunks_of, open_dataset, write_dataset
from sweeplib.errors import InputError
from tests.faults.sweeps import files


@pytest.fixture
def dataset() -> xr.Dataset:
    return xr.Dataset(
        {
            "risk": (
                ("dynamics", "d"),
                np.array([[1.0, np.nan], [np.nan, np.nan]]),
                {"units": "s", "symbol": r"\mathcal{R}"},
            ),
            "count": ("d", np.array([1, 2], dtype=np.uint8)),
            "regime": ("d", np.array(["plateau", "no_ode"], dtype=object)),
        },
        coords={
            "dynamics": ["ode", "sgd_chain"],
            "d": ("d", [10, 20], {"long_name": "input dimension"}),
            "gamma": ("d", [0.1, 0.2], {"formula": "1/d"}),
            "activation": "square",
            "spherical": True,
        },
        attrs={"title": "a test", "numbers": [1, 2]},
    )


def test_round_trip(dataset: xr.Dataset, tmp_path: Path) -> None:
    again = open_dataset(write_dataset(dataset, tmp_path / "a.zarr")).load()
    xr.testing.assert_identical(again.assign(regime=again.regime.astype(object)), dataset)
    assert again.dynamics.dtype.kind == "U"


def test_plain_xarray_reads_it_without_a_warning(dataset: xr.Dataset, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_dataset(dataset, tmp_path / "a.zarr")
        plain = xr.open_zarr(tmp_path / "a.zarr")
    assert plain.sel(dynamics="ode", d=10).risk.values == 1.0
    assert set(plain.coords) == set(dataset.coords)


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [((), ()), ((5,), (5,)), ((7, 3, 4), (1, 3, 4)), ((7, 30, 4), (7, 4, 4)), ((2, 9, 5), (2, 3, 2)), ((40,), (1,))],
)
@pytest.mark.parametrize("nbytes", [8, 100, 10**6])
def test_arrays_are_written_in_whole_chunks_a_few_at_a_time(
    shape: tuple[int, ...], chunks: tuple[int, ...], nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_files, "CHUNK_BYTES", nbytes)
    part, written = np.ones(shape), np.zeros(shape)
    for some in dataset_files._chunk_groups(part, chunks):
        written[some] += 1
        along = [(at, size) for at, size in zip(some, chunks, strict=False) if at != slice(None)]
        assert all(at.start % size == 0 for at, size in along)
        one_index = part.nbytes * max([size / part.shape[len(some) - 1] for _, size in along], default=1)
        assert part[some].nbytes <= max(nbytes, one_index) or chunks == shape
    assert (written == 1).all()


def test_another_format_of_zarr_as_the_users_default_changes_nothing(dataset: xr.Dataset, tmp_path: Path) -> None:
    """As in a file of zarr's settings, or in ZARR_DEFAULT_ZARR_FORMAT."""
    write_dataset(dataset, tmp_path / "a.zarr")
    with zarr.config.set(default_zarr_format=2):
        write_dataset(dataset, tmp_path / "b.zarr")
        xr.testing.assert_identical(open_dataset(tmp_path / "b.zarr").load(), open_dataset(tmp_path / "a.zarr").load())
    assert files(tmp_path / "b.zarr") == files(tmp_path / "a.zarr")


def test_failed_write_leaves_the_old_dataset(dataset: xr.Dataset, tmp_path: Path) -> None:
    path = write_dataset(dataset, tmp_path / "a.zarr")
    unwritable = xr.Dataset({"b": ("x", np.array([object()], dtype=object))}, attrs={"not json": object()})
    with pytest.raises(TypeError):
        write_dataset(unwritable, path)
    xr.testing.assert_identical(open_dataset(path).risk.load(), dataset.risk)


def test_missing_dataset_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no dataset here"):
        open_dataset(tmp_path / "nothing.zarr")


def test_another_group_of_zarr_is_no_dataset(tmp_path: Path) -> None:
    xr.DataTree.from_dict({"ode": xr.Dataset({"status": ("case", [1])})}).to_zarr(
        tmp_path / "other.zarr", consolidated=False
    )
    refusal = pytest.raises(InputError, match=r"other\.zarr: no dataset here; expected `dataset\.zarr`")
    with warnings.catch_warnings(action="error"), refusal:
        open_dataset(tmp_path / "other.zarr")


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=4), st.sampled_from([1, 8]))
def test_chunks_have_one_place_of_a_dimension_or_all(shape: list[int], itemsize: int) -> None:
    """Then no selection cuts a chunk."""
    chunks = chunks_of(shape, itemsize)
    assert all(chunk in (1, size) for chunk, size in zip(chunks, shape, strict=True))
    if np.prod(shape, dtype=float) * itemsize <= 16 * 2**20:
        assert chunks == tuple(shape)
    elif len(shape) > 1:
        assert chunks[0] == 1


def test_a_million_cases_are_in_few_files_of_which_few_are_read() -> None:
    """One dynamics over 50 x 10 x 20 points and 100 seeds, at 61 times: 488 MB."""
    chunks = chunks_of((1, 50, 10, 20, 100, 61), 8)
    assert 50 * 10 * 20 * 100 * 61 / np.prod(chunks) <= 50
    assert np.prod(chunks) * 8 <= 32 * 2**20


def test_xarray_asks_for_arrays_of_dask_only_where_there_can_be_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """It imported dask.array for it, in the process of figures before any of them: a tenth of a small sweep."""
    monkeypatch.setattr(pycompat, "_get_cached_duck_array_module", pycompat._get_cached_duck_array_module)
    prepare_xarray()
    assert pycompat.array_type("dask") == (dask.array.Array,)
    assert xr.DataArray([1.0]).chunk().compute().item() == 1.0
    monkeypatch.delitem(sys.modules, "dask.array")
    assert pycompat.array_type("dask") == ()
    assert pycompat.array_type("numbagg") == ()
