"""Every registered analysis and figure runs on a tiny dataset and labels what it returns."""

import numpy as np
import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.errors import InputError
from sweeplib.figures import FIGURES
from sweeplib.figures.labels import axis_label
from sweeplib.storage.dataset import open_dataset, write_dataset
from tests.datasets import sweep_dataset


@pytest.fixture(scope="module", params=["derived gamma", "gamma"])
def ds(request):
    return sweep_dataset(seeds=6, derived=request.param == "derived gamma")


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_labels_everything(name, ds):
    result = ANALYSES[name](ds)
    assert result.data_vars
    for variable in result.variables:
        attrs = result[variable].attrs
        assert attrs.get("long_name"), variable
        assert attrs.get("units"), variable


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_averages_over_seeds_and_measures_something(name, ds):
    result = ANALYSES[name](ds)
    assert "seed" not in result.dims
    assert any(np.isfinite(result[variable]).any() for variable in result.data_vars)


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_survives_the_disk(name, ds, tmp_path):
    write_dataset(ds, tmp_path / "dataset.zarr")
    result = ANALYSES[name](open_dataset(tmp_path / "dataset.zarr"))
    write_dataset(result, tmp_path / "result.zarr")
    again = open_dataset(tmp_path / "result.zarr").load()
    for variable in result.variables:
        np.testing.assert_array_equal(again[variable], result[variable], err_msg=variable)


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_leaves_its_input_alone(name, ds):
    before = ds.copy(deep=True)
    ANALYSES[name](ds)
    assert ds.identical(before)


@pytest.mark.parametrize("name", FIGURES)
def test_figure_labels_its_axes_from_the_attributes(name, ds):
    """Long names or symbols of the dataset stand on the axes, and none of its raw variable names."""
    drawing = FIGURES[name](ds)
    words = [label for axes in drawing.axes for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
    assert words
    known = [axis_label(ds[variable]) for variable in ds.variables]
    known += [attrs["symbol"] for attrs in (ds[variable].attrs for variable in ds.variables) if attrs.get("symbol")]
    for label in words:
        assert any(word in label for word in known), label
        assert "_steps" not in label


@pytest.mark.parametrize("name", FIGURES)
def test_figure_needs_only_known_analyses_and_has_a_caption(name):
    assert set(FIGURES[name].needs) <= set(ANALYSES)
    assert FIGURES[name].caption.endswith(".")


@pytest.mark.parametrize(("registry", "key"), [(ANALYSES, "optoin"), (FIGURES, "optoin")])
def test_unknown_options_are_refused(registry, key, ds):
    for name in registry:
        with pytest.raises(InputError, match=f"{key}: unknown option"):
            registry[name](ds, **{key: 1})
