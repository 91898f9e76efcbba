"""Every registered analysis and figure, on tiny datasets of several kinds of sweeps.

If it needs other axes or dynamics than a dataset has, it must refuse the dataset with the same message with which it
refuses the outline before anything runs, and accept another of the datasets.
"""

from functools import cache
from pathlib import Path

import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.contracts import analyses, figures
from sweeplib.contracts.analyses import analysed, example, foreseen, results_by_dataset
from sweeplib.contracts.check import checks_of
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.labels import axis_label
from tests.tiers import slow_among

COSTLY = ("deviation_scaling", "deviation_sum", "law_agreement", "overparametrisation_gain")
"""Analyses that take longest, each of which has tests of its own."""

STATISTICS = Path(__file__).parents[2] / "docs" / "statistics.md"
MEAN, MEDIAN, FRACTION = "mean exit steps", "median exit steps", "fraction that exited or learned"
ROWS = {
    "averages": {"risk": "an observable"},
    "batch_tradeoff": {"exponent": "in the batch size"},
    "crossing": {"crossing": "`crossing`"},
    "deviation_scaling": {"exponent": "`deviation_scaling`"},
    "deviation_sum": {"exponent": "`deviation_sum`"},
    "directions_learned": {"learned_fraction": FRACTION, "learned_steps_median": "of a direction learned"},
    "exit_times": {
        "exit_steps_mean": MEAN,
        "exit_steps_median": MEDIAN,
        "exit_time_mean": MEAN,
        "exit_time_median": MEDIAN,
        "exited_fraction": FRACTION,
    },
    "extrapolation": {"limit": "`limit` of `extrapolation`"},
    "first_passages": {
        "passage_time_mean": "mean time of a first passage",
        "passage_time_median": "of a first passage",
        "passed_fraction": "passed a level",
    },
    "forgetting": dict.fromkeys(("forgetting", "transfer", "risk_at_switch"), "forgetting, transfer"),
    "limits": {"agreement": "`agreement` of `limits`", "bias": "`bias` of `limits`", "spread": "`spread` of `limits`"},
    "optimal_learning_rate": {"exit_steps_min": "least exit steps", "gamma_opt": "optimal learning rate"},
    "optimum": {"best": "least exit steps", "optimum": "optimal learning rate"},
    "overparametrisation_gain": {"gain": "gain"},
    "regimes": {
        f"{quantity}_{part}": f"`regimes`: {row}"
        for quantity, row in (("excess_risk", "excess risk"), ("noise_weight", "excess risk"), ("deviation", "spread"))
        for part in ("exponent", "d")
    },
    "sample_complexity": {"exponent": "exponent of the exit steps in d"},
    "time_exponent": dict.fromkeys(("time_exponent", "exponent_change"), "exponent in time"),
}
"""The row of the table of coverage (docs/statistics.md) of each interval that an analysis returns."""


WITH_QUANTITIES = [name for name in ANALYSES if ANALYSES[name].quantities]


@cache
def drawn(name, words):
    """Return the figure of a dataset, or the InputError of it or of an analysis that it needs; no check before."""
    needed = {need: analysed(need, words) for need in FIGURES[name].needed({})}
    refused = next((each for each in needed.values() if isinstance(each, Exception)), None)
    try:
        return refused or FIGURES[name](example(words), needed)
    except InputError as refusal:
        return refusal


@pytest.mark.parametrize("check", checks_of(analyses))
@pytest.mark.parametrize("name", slow_among(ANALYSES, *COSTLY))
def test_analysis(name, check):
    check(name)


@pytest.mark.parametrize("check", slow_among(checks_of(figures), figures.it_can_be_saved, figures.it_takes_dask_arrays))
@pytest.mark.parametrize("name", FIGURES)
def test_figure(name, check):
    check(name)


@pytest.mark.parametrize("name", slow_among(ANALYSES, *COSTLY))
def test_analysis_refuses_a_dataset_in_the_words_for_its_outline(name):
    for words in analyses.DATASETS:
        result, before = analysed(name, words), foreseen(name, words)
        assert isinstance(result, Exception) == isinstance(before, Exception), words
        assert not isinstance(result, Exception) or str(result) == str(before), words


@pytest.mark.parametrize("name", slow_among(ANALYSES, *COSTLY))
def test_intervals_have_a_row_in_the_table_of_their_coverage(name):
    results = [analysed(name, words) for words in analyses.DATASETS]
    variables = {str(each) for result in results if not isinstance(result, Exception) for each in result}
    intervals = {each.removesuffix("_low") for each in variables if each.endswith("_low")}
    if name == "averages":
        intervals &= {"risk"}  # and those of other observables
    if name.startswith("deviation_"):
        intervals = {each[each.rindex("exponent") :] for each in intervals}
    assert intervals == set(ROWS.get(name, {}))
    rows = [line for line in STATISTICS.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    for said in ROWS.get(name, {}).values():
        assert any(said in row.split("|")[1] for row in rows), said


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_figure_refuses_a_dataset_in_the_words_for_its_outline(name):
    for words in analyses.DATASETS:
        result, before = drawn(name, words), figures.foreseen(name, words)
        assert isinstance(result, Exception) == isinstance(before, Exception), words
        assert not isinstance(result, Exception) or str(result) == str(before), words


@pytest.mark.parametrize("name", slow_among(WITH_QUANTITIES, *(name for name in COSTLY if name in WITH_QUANTITIES)))
def test_quantities_of_an_analysis_have_the_axes_that_its_outline_says(name):
    """They are drawn by the general figures, with a reason for bounds and a label for theory."""
    drawn = set()
    for words, result in results_by_dataset(analysed, name).items():
        outline = foreseen(name, words)
        for variable in ANALYSES[name].quantities.values():
            if variable in outline.variables or variable in result:
                assert set(outline.variables[variable]) == set(result[variable].dims), (words, variable)
                drawn.add(variable)
                attrs = result[variable].attrs
                assert "bound" not in attrs or result[attrs["bound"]].attrs["reason"]
                assert "theory" not in attrs or set(result[attrs["theory"]].dims) <= set(result[variable].dims)
    assert drawn


@pytest.mark.parametrize("name", slow_among(ANALYSES, *COSTLY))
def test_analysis_averages_over_seeds(name):
    for words, result in results_by_dataset(analysed, name).items():
        assert "seed" not in result.dims, words


@pytest.mark.parametrize("name", FIGURES)
def test_figure_labels_its_axes_from_the_attributes(name):
    """Axis labels contain long names or symbols of the dataset or its analyses, and no raw variable names."""
    for words, drawing in results_by_dataset(figures.drawings, name).items():
        written = [label for axes in drawing.axes for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
        assert written, words
        ds = example(words)
        parts = (ds, *(analysed(need, words) for need in FIGURES[name].needed({})))
        seen = [part[variable] for part in parts for variable in part]
        seen += [ds[variable] for variable in ds.coords]
        known = [axis_label(variable) for variable in seen]
        known += [variable.attrs["symbol"] for variable in seen if variable.attrs.get("symbol")]
        for label in written:
            assert any(word in label for word in known), (words, label)
            assert "_steps" not in label, words
