"""Every registered analysis and figure runs on a tiny dataset and labels what it returns.

One that needs other axes or dynamics than a dataset has must refuse it by an InputError, and take another of them.
"""

import numpy as np
import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.errors import InputError
from sweeplib.figures import FIGURES
from sweeplib.figures.labels import axis_label
from sweeplib.storage.dataset import open_dataset, write_dataset
from tests.datasets import sweep_dataset
from tests.regime_dataset import regime_dataset

TINY = {
    "derived gamma": sweep_dataset(seeds=6),
    "gamma": sweep_dataset(seeds=6, derived=False),
    "gradient flow": sweep_dataset(seeds=6, Delta=[0.0], dynamics=("ode", "gradient_flow", "sgd_chain")),
    "delta and kappa": regime_dataset((-1.0, 0.0, 1.0), (0.0, 0.5), (100, 1000), seeds=6),
}


@pytest.fixture(scope="module", params=TINY)
def ds(request):
    return TINY[request.param]


def made(entry, ds):
    """What an analysis or a figure makes of the dataset; skips what is refused."""
    try:
        return entry(ds)
    except InputError as refusal:
        return pytest.skip(str(refusal))


def takes(entry, ds):
    try:
        entry(ds)
    except InputError:
        return False
    return True


@pytest.mark.parametrize("entry", [*ANALYSES.values(), *FIGURES.values()], ids=lambda entry: entry.name)
def test_each_takes_one_of_the_datasets(entry):
    assert any(takes(entry, ds) for ds in TINY.values())


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_labels_everything(name, ds):
    result = made(ANALYSES[name], ds)
    assert result.data_vars
    for variable in result.variables:
        attrs = result[variable].attrs
        assert attrs.get("long_name"), variable
        assert attrs.get("units"), variable


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_averages_over_seeds_and_measures_something(name, ds):
    result = made(ANALYSES[name], ds)
    assert "seed" not in result.dims
    assert any(np.isfinite(result[variable]).any() for variable in result.data_vars)


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_survives_the_disk(name, ds, tmp_path):
    write_dataset(ds, tmp_path / "dataset.zarr")
    result = made(ANALYSES[name], open_dataset(tmp_path / "dataset.zarr"))
    write_dataset(result, tmp_path / "result.zarr")
    again = open_dataset(tmp_path / "result.zarr").load()
    for variable in result.variables:
        np.testing.assert_array_equal(again[variable], result[variable], err_msg=variable)


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_leaves_its_input_alone(name, ds):
    before = ds.copy(deep=True)
    made(ANALYSES[name], ds)
    assert ds.identical(before)


@pytest.mark.parametrize("name", FIGURES)
def test_figure_labels_its_axes_from_the_attributes(name, ds):
    """Long names or symbols of the dataset or its analyses stand on the axes, and none of its raw variable names."""
    drawing = made(FIGURES[name], ds)
    words = [label for axes in drawing.axes for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
    assert words
    seen = [part[variable] for part in (ds, *(ANALYSES[need](ds) for need in FIGURES[name].needs)) for variable in part]
    seen += [ds[variable] for variable in ds.coords]
    known = [axis_label(variable) for variable in seen]
    known += [variable.attrs["symbol"] for variable in seen if variable.attrs.get("symbol")]
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
