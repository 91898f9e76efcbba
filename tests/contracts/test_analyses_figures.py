"""Every registered analysis and figure runs on a tiny dataset and labels what it returns.

One that needs other axes or dynamics than a dataset has must refuse it by an InputError, and take another of them.
"""

from functools import cache

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

BEFORE = {words: ds.copy(deep=True) for words, ds in TINY.items()}


@pytest.fixture(scope="module", params=TINY)
def words(request):
    return request.param


@pytest.fixture
def ds(words):
    return TINY[words]


@cache
def analysed(name, words):
    """What an analysis makes of a dataset, or what it says instead."""
    try:
        return ANALYSES[name](TINY[words])
    except InputError as refusal:
        return refusal


def drawn(name, words):
    """The figure of a dataset, or what it says instead."""
    analyses = {need: analysed(need, words) for need in FIGURES[name].needs}
    refused = next((each for each in analyses.values() if isinstance(each, InputError)), None)
    try:
        return refused or FIGURES[name](TINY[words], analyses)
    except InputError as refusal:
        return refusal


def unless_refused(made):
    return pytest.skip(str(made)) if isinstance(made, InputError) else made


@pytest.mark.parametrize("name", ANALYSES)
def test_each_analysis_takes_one_of_the_datasets(name):
    assert not all(isinstance(analysed(name, words), InputError) for words in TINY)


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_takes_one_of_the_datasets(name):
    assert not all(isinstance(drawn(name, words), InputError) for words in TINY)


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_labels_everything(name, words):
    result = unless_refused(analysed(name, words))
    assert result.data_vars
    for variable in result.variables:
        attrs = result[variable].attrs
        assert attrs.get("long_name"), variable
        assert attrs.get("units"), variable


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_averages_over_seeds_and_measures_something(name, words):
    result = unless_refused(analysed(name, words))
    assert "seed" not in result.dims
    assert any(np.isfinite(result[variable]).any() for variable in result.data_vars)


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_survives_the_disk(name, words, ds, tmp_path):
    unless_refused(analysed(name, words))
    write_dataset(ds, tmp_path / "dataset.zarr")
    result = ANALYSES[name](open_dataset(tmp_path / "dataset.zarr"))
    write_dataset(result, tmp_path / "result.zarr")
    again = open_dataset(tmp_path / "result.zarr").load()
    for variable in result.variables:
        np.testing.assert_array_equal(again[variable], result[variable], err_msg=variable)


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_leaves_its_input_alone(name, words):
    unless_refused(analysed(name, words))
    assert TINY[words].identical(BEFORE[words])


@pytest.mark.parametrize("name", FIGURES)
def test_figure_labels_its_axes_from_the_attributes(name, words, ds):
    """Long names or symbols of the dataset or its analyses stand on the axes, and none of its raw variable names."""
    drawing = unless_refused(drawn(name, words))
    written = [label for axes in drawing.axes for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
    assert written
    parts = (ds, *(analysed(need, words) for need in FIGURES[name].needs))
    seen = [part[variable] for part in parts for variable in part]
    seen += [ds[variable] for variable in ds.coords]
    known = [axis_label(variable) for variable in seen]
    known += [variable.attrs["symbol"] for variable in seen if variable.attrs.get("symbol")]
    for label in written:
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
