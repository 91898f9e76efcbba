"""The recording times of a config, and the clock in which they are given: ODE time, steps or samples.

A spec is what a config has as times: a list, or a spacing such as `{linspace: [0, 12, 61]}`.
"""

import ast
import re
from collections.abc import Sequence
from typing import Any

from sweeplib.config.runs import expression_at
from sweeplib.config.time_models import Times
from sweeplib.config.values import SPACINGS, ascending, up_to, values
from sweeplib.engine.code.syntax import expression_tree
from sweeplib.errors import InputError
from sweeplib.networks.clock import Clock, Count

KINDS: dict[str, Count | None] = {"values": None, "steps": "steps", "samples": "samples"}
"""The keys of times, of which one is given, and what they count."""
FACTOR = re.compile(r"\s*(\d[\d.]*(?:[eE][+-]?\d+)?)\s*\*(?!\*)\s*(.+)", re.DOTALL)
"""The pattern of an expression that begins with a factor, `50*d`: the number, and what it multiplies."""


def recording_times(times: Times, horizon: float | None) -> tuple[tuple[float, ...], Clock | None]:
    """Return the recording times of a config, up to its horizon if it has one, and their clock, None for ODE time.

    Of steps or samples, numbers that are written, the ends of a spacing among them, are whole steps at every point.
    Those in between are recorded at the nearest step; without a scale they are whole numbers.
    """
    kind = _kind(times)
    _refuse_unknown_kind(times)
    count, spec = KINDS[kind], getattr(times, kind)
    key = "times" if times.model_fields_set == {"values"} else f"times.{kind}"  # a list alone is usual
    scale = expression_at(times.scale, "times.scale") if times.scale is not None else None
    if count is None:
        numbers = up_to(horizon, ascending(values(spec, key), key, None), spec)
        return numbers, None if scale is None else Clock(scale)
    unit = "times.scale"
    if isinstance(spec, str | int | float | list):
        written = spec if isinstance(spec, list) else [spec]
        spec, text = _amounts(written, key)
        if text is not None:
            if scale is not None:
                expected = f"numbers, in units of `scale: {scale}`, or expressions without a scale"
                raise InputError("an expression beside a scale", key=key, value=written[0], expected=expected)
            scale, unit = expression_at(text, key), key
    listed = up_to(horizon, ascending(values(spec, key), key, None), spec)
    is_spacing = isinstance(spec, dict)
    if is_spacing and scale is None:
        last = [] if horizon is None else [horizon]  # it is written, and must be whole itself: it is not rounded
        listed = tuple(dict.fromkeys([*map(float, map(round, listed[: len(listed) - len(last)])), *last]))
    return listed, Clock(scale, count, (listed[0], listed[-1]) if is_spacing else listed, unit)


def _kind(times: Times) -> str:
    """Return the key under which times are given, of KINDS; InputError unless it is just one."""
    kinds = [kind for kind in KINDS if getattr(times, kind) is not None]
    expected = "one of `values`, `steps` and `samples`"
    if not kinds:
        raise InputError("no times", key="times", expected=expected)
    if len(kinds) > 1:
        raise InputError("times twice", key=f"times.{kinds[1]}", value=getattr(times, kinds[1]), expected=expected)
    return kinds[0]


def _refuse_unknown_kind(times: Times) -> None:
    """Raise InputError for `times: {NAME: ...}` with a name that is neither a spacing nor one of KINDS."""
    spec = times.values
    if isinstance(spec, dict) and len(spec) == 1 and (name := next(iter(spec))) not in SPACINGS:
        choices = (*SPACINGS, *(kind for kind in KINDS if kind != "values"))
        raise InputError("no kind of times", key="times", value=name, choices=choices)


def _amounts(written: Sequence[Any], key: str) -> tuple[list[Any], str | None]:
    """Return numbers as they are, with None; of expressions such as `50*d` the factors, and the rest that they share.

    written : numbers of steps or samples, or expressions of them.
    """
    if not any(isinstance(amount, str) for amount in written):
        return list(written), None
    parts = [_factored(amount, key) for amount in written]
    units = {unit for _, unit in parts}
    if len(units) > 1:
        expected = "numbers times one expression, such as `[10*d, 50*d]`"
        raise InputError("no common unit", key=key, value=list(written), expected=expected)
    return [factor for factor, _ in parts], units.pop()


def _factored(amount: Any, key: str) -> tuple[float, str | None]:
    """Return the factor with which an expression begins, and what it multiplies; 1 and all of it if there is no factor.

    A number has no unit: None.
    """
    if not isinstance(amount, str):
        return amount, None
    text = expression_at(amount, key).text.strip()
    match = FACTOR.fullmatch(text)
    return (float(match[1]), match[2].strip()) if match and _is_product(text) else (1.0, text)


def _is_product(text: str) -> bool:
    """Return whether an expression is a number times something, so that what it multiplies is all of the rest."""
    node = expression_tree(text).body
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        node = node.left
    return isinstance(node, ast.Constant)
