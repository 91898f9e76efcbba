"""Symbols of the theory, written in plain characters."""

import pytest
import xarray as xr

from sweeplib.report.mathematics import array_label, plain, value_text
from sweeplib.storage.labels import LABELS


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\gamma", "γ"),
        (r"\hat\gamma_{\mathrm{opt}}", "γ\u0302_opt"),
        (r"\langle\nu_{\mathrm{ext}}\rangle/d", "⟨ν_ext⟩/d"),
        (r"\mathcal{R}", "R"),
        (r"\mathrm{se}\,\langle t_{\mathrm{ext}}\rangle", "se\u2009⟨t_ext⟩"),
        (r"\mathrm{gamma\_ratio}", "gamma_ratio"),
        (r"\sigma^*", "σ*"),
        (r"\|\Omega-\Omega'\|_\infty", "‖Ω-Ω'‖∞"),
        ("$10^{6}$", "10⁶"),
        (r"$2\times 10^{-5}$", "2×10⁻⁵"),
        ("m_0", "m₀"),
    ],
)
def test_latex_becomes_characters(latex, text):
    assert plain(latex) == text


def test_no_symbol_of_a_coordinate_keeps_its_latex():
    assert not [symbol for _, symbol in LABELS.values() if set(plain(symbol)) & set(r"\{}$")]


def test_a_name_is_not_said_twice():
    ratio = xr.DataArray(
        1.0, name="gamma_ratio", attrs={"long_name": "gamma_ratio", "symbol": r"\mathrm{gamma\_ratio}"}
    )
    assert array_label(ratio) == "gamma_ratio"
    assert (
        array_label(xr.DataArray(1.0, name="d", attrs={"long_name": "input dimension", "symbol": "d"}))
        == "input dimension d"
    )


def test_units_stand_in_brackets():
    assert (
        array_label(xr.DataArray(1.0, name="t", attrs={"long_name": "time", "symbol": "t", "units": "s"}))
        == "time t (s)"
    )


@pytest.mark.parametrize(("raw", "text"), [(3000, "3000"), (10**6, "10⁶"), (0.5, "0.5"), ("erf", "erf"), (True, "yes")])
def test_values_as_one_writes_them(raw, text):
    assert value_text(raw) == text
