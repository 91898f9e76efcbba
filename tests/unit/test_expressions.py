"""Expressions give the values of Python's arithmetic, and refuse everything else."""

import math
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeplib.engine.language import Expression, is_symbol
from sweeplib.engine.language.arithmetic import FUNCTIONS
from sweeplib.errors import InputError

NAMES = {"d": 300, "gamma0": 0.5, "delta": 0.25, "p": 4}

QUICK = settings(max_examples=150, deadline=None)

HOSTILE = [
    "d.real",
    "d.__class__",
    "().__class__.__bases__[0].__subclasses__()",
    "__import__('os').system('true')",
    "__builtins__",
    "open('x')",
    "eval('1')",
    "exec('1')",
    "[d for d in (1, 2)]",
    "{d: 1}",
    "{1, 2}",
    "(1, 2)",
    "d[0]",
    "lambda: 1",
    "(lambda x: x)(1)",
    "'a'",
    "b'a'",
    "f'{d}'",
    "...",
    "None",
    "True",
    "1j",
    "d := 3",
    "yield d",
    "await d",
    "*d",
    "d; d",
    "d\nd",
    "import os",
    "d @ d",
    "d << 99999",
    "~d",
    "d is p",
    "d in p",
    "round(d, ndigits=2)",
    "max(*d)",
    "sqrt",
    "sqrt(1, 2)",
    "max()",
    "9**9**9",
    "2**99999",
    "10**400",
    "1e999",
    "1/0",
    "0**-1",
    "(-2)**0.5",
    "log(0)",
    "sqrt(-1)",
    "exp(1e9)",
    "d + 1e308*1e308",
    "",
    "   ",
    "(",
    "\0",
    "(" * 400,
    "-" * 200 + "1",
    "d" * 4001,
    "1+" * 249 + "1",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_anything_but_arithmetic_is_refused_when_parsed(text: str) -> None:
    with pytest.raises(InputError) as refused:
        Expression(text)
    assert "\n" not in str(refused.value)


@pytest.mark.rest
@QUICK
@given(st.text(max_size=40) | st.text("d0123456789.+-*/%()<>= _'[]{}:,@~!lambdroundexp", max_size=40))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        value = Expression(text).evaluate(NAMES)
    except InputError:
        return
    assert math.isfinite(value)


def _binary(parts: tuple[str, str, str]) -> str:
    left, operator, right = parts
    return f"({left} {operator} {right})"


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", "and", "or"])
    functions = st.sampled_from(["-", "abs", "floor", "ceil", "round", "sqrt", "exp"])
    return st.one_of(
        st.tuples(inner, operators, inner).map(_binary),
        st.tuples(inner, st.just("**"), st.integers(-3, 3).map(str)).map(_binary),
        st.tuples(functions, inner).map(lambda pair: f"{pair[0]}({pair[1]})"),
        st.tuples(inner, inner, inner).map(lambda three: "({} if {} else {})".format(*three)),
    )


_LEAVES = st.integers(0, 50).map(str) | st.floats(0.01, 50).map(repr) | st.sampled_from(sorted(NAMES))
ARITHMETIC = st.recursive(_LEAVES, _grown, max_leaves=8)


@pytest.mark.rest
@QUICK
@given(ARITHMETIC)
def test_arithmetic_is_pythons(text: str) -> None:
    try:
        value = Expression(text).evaluate(NAMES)
    except InputError:
        return
    expected = eval(text, {"__builtins__": {}}, {**NAMES, **FUNCTIONS})
    assert value == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("gamma0 * d**-delta", 0.5 * 300**-0.25),
        ("round(p * d**delta)", round(4 * 300**0.25)),
        ("p**3/(8 + 2*p + 2*p**2)", 64 / 48),
        ("min(p, d, 2) if 1 < p <= 4 else 0", 2),
        ("2**10", 1024),
        ("-d % 7", -300 % 7),
        ("log(8, 2)", 3.0),
        ("p == 1", False),
    ],
)
def test_value(text: str, value: float) -> None:
    assert Expression(text).evaluate(NAMES) == value


def test_whole_numbers_stay_whole() -> None:
    assert isinstance(Expression("round(p * d**0.5)").evaluate(NAMES), int)


def test_names_are_those_of_numbers_only() -> None:
    assert Expression("max(d, round(p * kappa))").names == {"d", "p", "kappa"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1/(d - 300)", "division by zero"),
        ("(p - d)**0.5", "complex"),
        ("exp(d**2)", "too large"),
        ("d**d**d", "too large"),
        ("log(p - 4)", ""),
    ],
)
def test_no_value_names_the_values_that_gave_none(text: str, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        Expression(text).evaluate(NAMES)
    assert "d=300" in str(refused.value) or "p=4" in str(refused.value)
    assert reason in str(refused.value)
    assert text in str(refused.value)


def test_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"unknown name in 'gama0 \* d'; got 'gama0'.*did you mean 'gamma0'\?"):
        Expression("gama0 * d").evaluate(NAMES)


def test_unknown_function_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"did you mean 'sqrt'\?"):
        Expression("sqr(d)")


def test_name_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="activation is not a number"):
        Expression("activation * 2").evaluate({"activation": "erf"})


@pytest.mark.parametrize(
    ("name", "usable"),
    [("gamma0", True), ("κ", True), ("lambda", False), ("round", False), ("_x", False), ("a b", False), ("2d", False)],
)
def test_symbols_are_names_that_expressions_can_use(name: str, usable: bool) -> None:
    assert is_symbol(name) is usable


def test_expressions_are_equal_by_text_and_travel() -> None:
    expression = Expression("gamma0 * d**-delta")
    copy = pickle.loads(pickle.dumps(expression))
    assert copy == expression
    assert copy.evaluate(NAMES) == expression.evaluate(NAMES)
