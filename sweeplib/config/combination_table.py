"""What goes with what, as tables: parameters and dynamics, and what is refused of a parameter beside others.

They are the end of the reference of configs (`config/README.md`). `kinds` are the dynamics, by name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from sweeplib.networks.dynamics import DYNAMICS, Dynamics
from sweeplib.networks.dynamics.dynamics import OF_DRIFTS
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import CORE, DEFAULTS, Feature, Limit, Problem
from sweeplib.networks.problem.combinations import COMBINATIONS, WIDTHS
from sweeplib.networks.simulation.cases import WITHOUT_DRIFTS, WITHOUT_EXITS

PLAIN = Problem(gamma=1.0, p=1, k=1, d=10, Delta=0.0, activation="linear")
"""A problem with defaults, of which a dynamics says the parameters that it reads."""
INTRODUCTION = """## What goes with what

A dynamics acts on a parameter (✓) or refuses any other value than its default, in a line, before anything runs: because
it is not built (–), or because the parameter means nothing there (∅), for the reasons below. All dynamics act on the
others.
"""
"""What is said above all tables."""
OF_LIMITS = "Of the parameters that they act on, all dynamics, or some, refuse these, beside others or beyond a bound:"
"""What is said above the table of limits."""


def combination_table() -> str:
    """Return the tables, in Markdown."""
    names = sorted(name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib."))
    kinds = {name: DYNAMICS[name] for name in names}
    return "\n".join([INTRODUCTION, *_acting(kinds), "", *_undefined(kinds), "", OF_LIMITS, "", *_limits(kinds), ""])


def _acting(kinds: Mapping[str, type[Dynamics]]) -> Iterator[str]:
    """Yield the rows of the parameters that not all dynamics act on, one for those that the same ones do."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for parameter in filter(DEFAULTS.__contains__, CORE):
        rows.setdefault(tuple(_cell(kind, parameter) for kind in kinds.values()), []).append(parameter)
    yield f"| key | {_listed(kinds, ' | ')} |"
    yield "|---" * (len(kinds) + 1) + "|"
    yield from (f"| {_listed(keys)} | {' | '.join(cells)} |" for cells, keys in rows.items() if set(cells) != {"✓"})


def _cell(kind: type[Dynamics], parameter: str) -> str:
    """Return whether a dynamics acts on a parameter: ✓, where it does, or why it does not (∅, –)."""
    if parameter in kind.reads:
        return "✓"
    if parameter == "data" and kind.takes_spectra:
        return "spectra"
    for option, field in kind.Options.model_fields.items():
        for value in get_args(field.annotation):
            if isinstance(value, str) and parameter in kind.reads_of(PLAIN, kind.Options(**{option: value})):
                return f"with `{option}`"
    return "∅" if parameter in kind.meaningless() else "–"


def _undefined(kinds: Mapping[str, type[Dynamics]]) -> Iterator[str]:
    """Yield a line for each reason why parameters mean nothing in a dynamics."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, kind in kinds.items():
        for keys, reason in kind.undefined:
            reasons.setdefault((keys, reason), []).append(name)
    for (keys, reason), names in reasons.items():
        yield f"- {_listed(keys.split())} in {_listed(names)}: {reason}"


def _limits(kinds: Mapping[str, type[Dynamics]]) -> Iterator[str]:
    """Yield the rows of the limits of all dynamics, and of each.

    Dynamics that have the same limit share its row: which fields are refused, beside what, and why.
    """
    rows = {_row(limit): ["all"] for limit in (*WIDTHS, *COMBINATIONS)}
    for name, kind in kinds.items():
        for run, limits in _limits_by_options(name, kind):
            for limit in limits:
                names = rows.setdefault(_row(limit), [])
                names.extend([f"`{run}`"] * (f"`{run}`" not in names))
    for feature, words, finds in WITHOUT_EXITS:
        finding = _listed(name for name, kind in kinds.items() if finds(kind))
        row = "`thresholds`", _beside(feature), _with_fields(f"no exits {words}")
        rows[row] = [f"all but {finding}" if finding else "all"]
    of_observables: dict[tuple[str, str], list[str]] = {}
    for name, observable in OBSERVABLES.items():
        for keys, _, why in map(_row, observable.limits if OBSERVABLES.origin(name).startswith("sweeplib.") else ()):
            of_observables.setdefault((keys, why), []).append(name)
    rows |= {(keys, _listed(names), why): ["all"] for (keys, why), names in of_observables.items()}
    for feature, why in WITHOUT_DRIFTS:
        rows["`observables` by drifts", _beside(feature), _with_fields(why)] = ["all"]
    yield "| dynamics | refused | beside | why |"
    yield "|---|---|---|---|"
    yield from (f"| {', '.join(names)} | {' | '.join(row)} |" for row, names in rows.items())


def _limits_by_options(name: str, kind: type[Dynamics]) -> Iterator[tuple[str, tuple[Limit, ...]]]:
    """Yield what a config calls a dynamics, and its limits: by default, and those that each of its switches adds."""
    usual = kind.limits_of(kind.Options())
    yield name, (*usual, *(OF_DRIFTS if kind.uses_drifts else ()))
    for option, field in kind.Options.model_fields.items():
        if field.default is False:
            more = kind.limits_of(kind.Options(**{option: True}))
            yield f"{name}: {{{option}: true}}", tuple(limit for limit in more if limit not in usual)


def _row(limit: Limit) -> tuple[str, str, str]:
    """Return the names of the fields, the feature beside which they are refused, and why.

    The reason is left out if it depends on the problem, or is made of the name of the field.
    """
    reason = "" if callable(limit.reason) or "{key}" in limit.reason else limit.reason
    reason = reason.replace("{beside}", limit.beside.words if limit.beside else "")
    return _listed(limit.keys.split()), _beside(limit.beside), _with_fields(reason)


def _beside(feature: Feature | None) -> str:
    """Return what tables call a feature of problems; "" for none."""
    return "" if feature is None else feature.name or feature.words


def _with_fields(text: str) -> str:
    """Return a text of messages with the names of fields in the places of their values: {problem.d} as `d`."""
    return re.sub(r"\{problem\.(\w+)\}", r"`\1`", text)


def _listed(names: Iterable[str], mark: str = ", ") -> str:
    """Return the names as code in Markdown, with `mark` between them."""
    return mark.join(f"`{name}`" for name in names)
