"""Every registered analysis and figure runs on a tiny dataset and labels what it returns.

If it needs other axes or dynamics than a dataset has, it must refuse the dataset with the same message with which it
refuses the outline before anything runs, and accept another of the datasets.
"""

from functools import cache

import numpy as np
import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.constants import with_constants
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.errors import InputError
from sweeplib.figures import FIGURES
from sweeplib.figures.labels import axis_label
from sweeplib.storage.dataset import open_dataset, write_dataset
from sweeplib.storage.outline import outline_of
from tests.datasets import giant_steps_dataset, norms_dataset, sweep_dataset

TINY = {
    "derived gamma": sweep_dataset(seeds=6),
    "gamma": sweep_dataset(seeds=6, derived=False),
    "gradient flow": sweep_dataset(seeds=6, Delta=[0.0], dynamics=("ode", "gradient_flow", "sgd_chain")),
    "giant steps": giant_steps_dataset(),
    "norms": norms_dataset(),
    "delta and kappa": regime_dataset((-1.0, 0.0, 1.0), (0.0, 0.5), (100, 1000), seeds=6),
}

BEFORE = {words: ds.copy(deep=True) for words, ds in TINY.items()}


def or_refusal(make, *arguments):
    """Return the result of a call, or the InputError that it raises."""
    try:
        return make(*arguments)
    except InputError as refusal:
        return refusal


def first_refusal(analyses):
    return next((each for each in analyses.values() if isinstance(each, InputError)), None)


@cache
def analysed(name, words):
    """Return the result of an analysis of a dataset, or the message of its InputError."""
    return or_refusal(ANALYSES[name], TINY[words])


@cache
def drawn(name, words):
    """Return the figure of a dataset, or the message of its InputError or of an analysis that it needs."""
    analyses = {need: analysed(need, words) for need in FIGURES[name].needs}
    return first_refusal(analyses) or or_refusal(FIGURES[name], TINY[words], analyses)


def foreseen(name, words):
    """Return the outline of an analysis from that of a dataset, or the message of its InputError."""
    return or_refusal(ANALYSES[name].outlined, outline_of(with_constants(TINY[words])), {})


def fits(name, words):
    """Return the message with which a figure refuses the outlines of a dataset and its analyses; None if it is fine."""
    analyses = {need: foreseen(need, words) for need in FIGURES[name].needs}
    ds = outline_of(with_constants(TINY[words]))
    return first_refusal(analyses) or or_refusal(FIGURES[name].check_fit, ds, analyses, {})


def taken(made, name):
    """Return the results by dataset, for the datasets that are accepted: at least one."""
    every = {words: made(name, words) for words in TINY}
    found = {words: each for words, each in every.items() if not isinstance(each, InputError)}
    assert found, f"{name} takes no dataset: {every}"
    return found


def refused(made, name):
    """Return the messages by dataset, for the datasets that are refused."""
    return {words: str(made(name, words)) for words in TINY if words not in taken(made, name)}


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_refuses_a_dataset_in_the_words_for_its_outline(name):
    for words, said in refused(analysed, name).items():
        assert str(foreseen(name, words)) == said, words


@pytest.mark.parametrize("name", FIGURES)
def test_figure_refuses_a_dataset_in_the_words_for_its_outline(name):
    for words, said in refused(drawn, name).items():
        assert str(fits(name, words)) == said, words


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_labels_everything(name):
    for words, result in taken(analysed, name).items():
        assert result.data_vars
        for variable in result.variables:
            attrs = result[variable].attrs
            assert attrs.get("long_name"), (words, variable)
            assert attrs.get("units"), (words, variable)


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_averages_over_seeds_and_measures_something(name):
    for words, result in taken(analysed, name).items():
        assert "seed" not in result.dims, words
        assert any(np.isfinite(result[variable]).any() for variable in result.data_vars), words


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """Return the datasets, written to disk and opened again."""
    directory = tmp_path_factory.mktemp("tiny")
    return {words: open_dataset(write_dataset(ds, directory / f"{words}.zarr")) for words, ds in TINY.items()}


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_survives_the_disk(name, on_disk, tmp_path):
    for words in taken(analysed, name):
        result = ANALYSES[name](on_disk[words])
        write_dataset(result, tmp_path / f"{words}.zarr")
        again = open_dataset(tmp_path / f"{words}.zarr").load()
        for variable in result.variables:
            np.testing.assert_array_equal(again[variable], result[variable], err_msg=f"{words}: {variable}")


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_leaves_its_input_alone(name):
    for words, ds in TINY.items():
        analysed(name, words)
        assert ds.identical(BEFORE[words]), words


@pytest.mark.parametrize("name", FIGURES)
def test_figure_labels_its_axes_from_the_attributes(name):
    """Axis labels contain long names or symbols of the dataset or its analyses, and no raw variable names."""
    for words, drawing in taken(drawn, name).items():
        written = [label for axes in drawing.axes for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
        assert written, words
        ds = TINY[words]
        parts = (ds, *(analysed(need, words) for need in FIGURES[name].needs))
        seen = [part[variable] for part in parts for variable in part]
        seen += [ds[variable] for variable in ds.coords]
        known = [axis_label(variable) for variable in seen]
        known += [variable.attrs["symbol"] for variable in seen if variable.attrs.get("symbol")]
        for label in written:
            assert any(word in label for word in known), (words, label)
            assert "_steps" not in label, words


@pytest.mark.parametrize("name", FIGURES)
def test_figure_needs_only_known_analyses_and_has_a_caption(name):
    assert set(FIGURES[name].needs) <= set(ANALYSES)
    assert FIGURES[name].caption.endswith(".")


@pytest.mark.parametrize("registry", [ANALYSES, FIGURES], ids=["analyses", "figures"])
def test_unknown_options_are_refused(registry):
    for name in registry:
        with pytest.raises(InputError, match="optoin: unknown option"):
            registry[name](TINY["gamma"], optoin=1)
