"""Symbols of the theory, written in plain characters."""

import re

import pytest
import xarray as xr

from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import PARAMETERS
from sweeplib.networks.simulation.labels import LABELS
from sweeplib.pictures.figures.kit.labels import axis_label, wrapped_label
from sweeplib.pictures.figures.kit.typeset import expression_latex, expression_text, name_text
from sweeplib.pictures.report.mathematics import ACCENTS, COMMANDS, html_label, mathml, plain, plain_label, value_text

SYMBOLS = [symbol for _, symbol in LABELS.values()] + [known.symbol for known in PARAMETERS.values()]


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\gamma", "γ"),
        (r"\hat\gamma_{\mathrm{opt}}", "γ\u0302ₒₚₜ"),
        (r"\bar{\mathcal{R}}", "R\u0304"),
        (r"\bar{Q}", "Q\u0304"),
        (r"\langle\nu_{\mathrm{ext}}\rangle/d", "⟨νₑₓₜ⟩/d"),
        (r"\mathcal{R}", "R"),
        (r"\mathbb{E}\,\ell \to 0", "E\u2009ℓ→0"),
        (r"\mathrm{se}\,\langle t_{\mathrm{ext}}\rangle", "se\u2009⟨tₑₓₜ⟩"),
        (r"\mathrm{gamma\_ratio}", "gamma_ratio"),
        (r"\sigma^*", "σ*"),
        (r"\|\Omega-\Omega'\|_\infty", "‖Ω-Ω'‖∞"),
        ("$10^{6}$", "10⁶"),
        (r"$2\times 10^{-5}$", "2×10⁻⁵"),
        ("m_0", "m₀"),
        (r"(\varepsilon + 1)^{2}/\sqrt{d + 1}", "(ε + 1)²/√(d + 1)"),
        (r"d^{-\delta}", "d^(-δ)"),
        (r"\gamma_{\mathrm{eff}}", "γ_eff"),
    ],
)
def test_latex_becomes_characters(latex, text):
    assert plain(latex) == text


def test_no_symbol_keeps_its_latex_or_the_name_of_a_command():
    symbols = SYMBOLS + [observable.symbol for observable in OBSERVABLES.values()]
    assert not [symbol for symbol in symbols if set(plain(symbol)) & set(r"\{}$")]
    commands = {command for symbol in symbols for command in re.findall(r"\\([A-Za-z]+)", symbol)}
    assert not commands - set(COMMANDS) - {"mathrm", "mathcal", "mathbf", "mathbb", "text", "sqrt", *ACCENTS}


def test_a_name_is_not_said_twice():
    ratio = xr.DataArray(
        1.0, name="gamma_ratio", attrs={"long_name": "gamma_ratio", "symbol": r"\mathrm{gamma\_ratio}"}
    )
    assert plain_label(axis_label(ratio)) == "γᵣₐₜᵢₒ"
    assert (
        plain_label(axis_label(xr.DataArray(1.0, name="d", attrs={"long_name": "input dimension", "symbol": "d"})))
        == "input dimension d"
    )
    passes = xr.DataArray(1.0, name="passes", attrs={"long_name": "passes", "symbol": r"\mathrm{passes}"})
    assert plain_label(axis_label(passes)) == "passes"


def test_units_stand_in_brackets():
    assert (
        plain_label(axis_label(xr.DataArray(1.0, name="t", attrs={"long_name": "time", "symbol": "t", "units": "s"})))
        == "time t (s)"
    )


@pytest.mark.parametrize(("raw", "text"), [(3000, "3000"), (10**6, "10⁶"), (0.5, "0.5"), ("erf", "erf"), (True, "yes")])
def test_values_as_one_writes_them(raw, text):
    assert value_text(raw) == text


@pytest.mark.parametrize(
    ("expression", "latex"),
    [
        ("1/sqrt(second_layer_rate)", r"1/\sqrt{\varepsilon}"),
        ("gamma0 * d**-delta", r"\gamma_0\,d^{-\delta}"),
        ("(p + k)/(2*d)", r"(p + k)/(2\,d)"),
        ("a - (b - c)", "a - (b - c)"),
        ("a/(b*c)", r"a/(b\,c)"),
        ("a/b*c", r"a/b\,c"),
        ("(-d)**2 * 3", r"(-d)^{2} \cdot 3"),
        ("(a**b)**c", "(a^{b})^{c}"),
        ("-(a + b)", "-(a + b)"),
        ("1e-7*d", r"10^{-7}\,d"),
        ("log(d, 2) + max(p, k)", r"\log_{2}(d) + \max(p,\,k)"),
        ("exp(-t/5)", "e^{-t/5}"),
        ("d // 2", r"\lfloor d/2\rfloor"),
        ("W_star_1 + R_infinity", r"W_{1}^{*} + R_{\infty}"),
        ("3 if p >= 2 else k", r"3\ \mathrm{if}\ p \geq 2\ \mathrm{else}\ k"),
        ("step * own_number", r"\mathrm{step}\,\mathrm{own\_number}"),
    ],
)
def test_expressions_of_a_config_are_mathematics_in_pictures_and_pages(expression, latex):
    from matplotlib.mathtext import MathTextParser

    assert expression_latex(expression) == latex
    assert MathTextParser("agg").parse(f"${latex}$").width > 0
    assert mathml(latex).startswith("<math ")
    assert "\\" not in plain(latex)


@pytest.mark.parametrize("text", ["x.y", "lambda: 3", "f()", "a[0]", "'a'", "((", "f(x=2)", "~a"])
def test_what_is_no_expression_stays_text(text):
    assert expression_latex(text) is None
    assert expression_text(text) == text


def test_names_are_symbols_or_words():
    found = {name: name_text(name) for name in ("passes", "gamma_ratio", "R_infinity", "learning_budget", "p0", "_x")}
    assert found == {
        "passes": "passes",
        "gamma_ratio": r"$\gamma_{\mathrm{ratio}}$",
        "R_infinity": r"$R_{\infty}$",
        "learning_budget": "learning budget",
        "p0": "$p_{0}$",
        "_x": "x",
    }


def test_the_unit_of_scaled_times_is_mathematics():
    scale = "1/sqrt(second_layer_rate)"
    attrs = {"long_name": f"time in units of {scale}", "symbol": "t", "units": "1", "scale": scale}
    time = xr.DataArray([1.0], name="time", attrs=attrs)
    assert axis_label(time) == r"time $t$ in units of $1/\sqrt{\varepsilon}$"
    assert wrapped_label(time) == axis_label(time)
    assert plain_label(axis_label(time)) == "time t in units of 1/√ε"
    assert html_label(axis_label(time)).count("<math ") == 2
    assert "<msqrt>" in html_label(axis_label(time))


def test_all_symbols_of_coordinates_are_drawn_by_browsers():
    assert not [symbol for symbol in SYMBOLS if symbol and not mathml(symbol).startswith("<math ")]


@pytest.mark.parametrize("latex", ["a {", r"\unknown", r"\href{javascript:alert(1)}{x}", r"\style{x}{y}", "x_1_2"])
def test_what_is_no_formula_is_plain_text(latex):
    assert "<" not in mathml(latex)


def test_text_of_labels_is_escaped():
    assert html_label("<b> & $x<y$") == "&lt;b&gt; &amp; " + str(mathml("x<y"))
    assert "<y" not in mathml("x<y")
    assert html_label("costs 3$ <i>") == "costs 3$ &lt;i&gt;"


def test_names_of_values_are_mathematics():
    assert value_text("he2", "activation") == "h₂"
    assert value_text("exp(-t/5)", "schedule") == "e^(-t/5)"


def test_capital_greek_letters_are_upright():
    assert '<mi mathvariant="normal">&#x00394;</mi>' in mathml(r"\Delta")
    assert "mathvariant" not in mathml(r"\delta")
