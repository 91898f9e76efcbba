r"""Names and expressions of a config as LaTeX without dollars, in the commands that matplotlib and browsers show.

`1/sqrt(second_layer_rate)` is `1/\sqrt{\varepsilon}`, `gamma_ratio` is `\gamma_{\mathrm{ratio}}`. A part of an
expression is a node of Python's syntax tree; with it comes how tightly it binds, by which parentheses are set.
"""

from __future__ import annotations

import ast
import re
from enum import IntEnum

from sweeplib.engine.code.syntax import expression_tree
from sweeplib.networks.simulation.labels import known_label

_FIRST = "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta kappa lambda mu nu xi pi rho sigma tau"
_OTHERS = "phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
GREEK = dict(zip(f"{_FIRST} {_OTHERS}".split(), "αβγδϵεζηθϑκλμνξπρστφχψωΓΔΘΛΞΠΣΦΨΩ", strict=True))
"""The Greek letters by their LaTeX names."""
INDICES = {"infinity": r"\infty", "infty": r"\infty", "inf": r"\infty", "star": "*"}
"""The signs of words that are indices."""
LETTER = re.compile(r"([A-Za-z]+?)(\d*)")
"""A word and the digits behind it."""
COMPARISONS = {"Lt": "<", "LtE": r"\leq", "Gt": ">", "GtE": r"\geq", "Eq": "=", "NotEq": r"\neq"}
"""The signs of comparisons, by the names of their nodes."""
TIGHT = {"sqrt": r"\sqrt{WHAT}", "abs": "|WHAT|", "floor": r"\lfloor WHAT\rfloor", "ceil": r"\lceil WHAT\rceil"}
"""Functions whose sign encloses their argument."""
NAMED = {"log": r"\log", "max": r"\max", "min": r"\min", "exp": r"\exp"}
"""Functions that LaTeX has a command for."""


class Binding(IntEnum):
    """How tightly the parts of an expression hold together; looser parts of tighter ones stand in parentheses."""

    CHOICE, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(10)


def name_latex(name: str) -> str | None:
    r"""Return a name that begins with a letter or a Greek letter as a symbol, with its other parts as indices.

    `gamma0` is \gamma_{0}, `R_infinity` is R_{\infty}. None for other names, which are words.
    """
    first, *parts = name.split("_")
    match = LETTER.fullmatch(first)
    if match is None or not (len(match[1]) == 1 or match[1] in GREEK) or not all(parts):
        return None
    raised = [INDICES[word] for word in parts if INDICES.get(word) == "*"]
    lowered = [*filter(None, [match[2]]), *(_index(word) for word in parts if INDICES.get(word) != "*")]
    below = "_{" + r",\,".join(lowered) + "}" if lowered else ""
    return _letter(match[1]) + below + ("^{*}" if raised else "")


def name_text(name: str) -> str:
    """Return a name as a label: its symbol between dollars, or its words."""
    latex = name_latex(name)
    return f"${latex}$" if latex is not None else name.replace("_", " ").strip() or name


def expression_latex(text: str) -> str | None:
    """Return an expression, or a schedule, with the symbols of the fields that it names; None if it is none."""
    try:
        return _within(expression_tree(text.strip()).body, Binding.CHOICE)
    except (SyntaxError, ValueError, RecursionError, TypeError, LookupError):
        return None


def expression_text(text: str) -> str:
    """Return an expression between dollars; the text itself if it is no expression."""
    latex = expression_latex(text)
    return text if latex is None else f"${latex}$"


def _letter(word: str) -> str:
    return f"\\{word}" if word in GREEK else word


def _index(word: str) -> str:
    """Return a word of a name as an index: a sign, a letter, a number or upright text."""
    if word in INDICES:
        return INDICES[word]
    return _letter(word) if len(word) == 1 or word in GREEK else word if word.isdigit() else rf"\mathrm{{{word}}}"


def _name(name: str) -> str:
    """Return the symbol of a field of a problem, or of any other name."""
    _, symbol = known_label(name) or ("", "")
    words = rf"\mathrm{{{name}}}".replace("_", r"\_")
    return symbol or name_latex(name) or words


def _latex(node: ast.expr) -> tuple[str, Binding]:
    """Return a part of an expression as LaTeX, and how tightly it binds; TypeError for what no expression has."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return _number(value)
        case ast.Name(id=name):
            return _name(name), Binding.ATOM
        case ast.BinOp():
            return _operation(node)
        case ast.UnaryOp(op=op, operand=operand):
            sign = {"USub": "-", "UAdd": "+", "Not": r"\neg "}[type(op).__name__]
            binding = Binding.NOT if isinstance(op, ast.Not) else Binding.SIGN
            return sign + _within(operand, binding), binding
        case ast.Compare(left=left, ops=ops, comparators=others):
            signs = [COMPARISONS[type(op).__name__] for op in ops]
            comparisons = [f" {sign} {_within(other, Binding.SUM)}" for sign, other in zip(signs, others, strict=True)]
            return _within(left, Binding.SUM) + "".join(comparisons), Binding.COMPARISON
        case ast.BoolOp(op=op, values=values):
            binding, sign = (Binding.AND, r" \wedge ") if isinstance(op, ast.And) else (Binding.OR, r" \vee ")
            return sign.join(_within(value, Binding(binding + 1)) for value in values), binding
        case ast.IfExp(test=test, body=body, orelse=orelse):
            then, condition = _within(body, Binding.OR), _within(test, Binding.OR)
            otherwise = _within(orelse, Binding.CHOICE)
            return rf"{then}\ \mathrm{{if}}\ {condition}\ \mathrm{{else}}\ {otherwise}", Binding.CHOICE
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments, keywords=[]):
            return _call(name, arguments)
    raise TypeError(f"no part of an expression: {type(node).__name__}")


def _within(node: ast.expr, least: Binding) -> str:
    """Return a part as LaTeX, in parentheses if it binds less tightly than `least`."""
    latex, binding = _latex(node)
    return latex if binding >= least else f"({latex})"


def _operation(node: ast.BinOp) -> tuple[str, Binding]:
    """Return an operation of two parts as LaTeX, and how tightly it binds; TypeError for one of no expression."""
    left, right = node.left, node.right
    match node.op:
        case ast.Add():
            return f"{_within(left, Binding.SUM)} + {_within(right, Binding.SUM)}", Binding.SUM
        case ast.Sub():
            return f"{_within(left, Binding.SUM)} - {_within(right, Binding.PRODUCT)}", Binding.SUM
        case ast.Mult():
            first, second = _within(left, Binding.PRODUCT), _within(right, Binding.POWER)
            sign = r" \cdot " if second[0].isdigit() else r"\,"
            return f"{first}{sign}{second}", Binding.PRODUCT
        case ast.Div():
            return f"{_within(left, Binding.PRODUCT)}/{_within(right, Binding.POWER)}", Binding.PRODUCT
        case ast.Pow():
            return f"{_within(left, Binding.ATOM)}^{{{_within(right, Binding.CHOICE)}}}", Binding.POWER
        case ast.FloorDiv():
            whole = ast.BinOp(left, ast.Div(), right)
            return TIGHT["floor"].replace("WHAT", _within(whole, Binding.CHOICE)), Binding.ATOM
        case ast.Mod():
            first, second = _within(left, Binding.PRODUCT), _within(right, Binding.POWER)
            return rf"{first}\ \mathrm{{mod}}\ {second}", Binding.PRODUCT
    raise TypeError(f"no operation of an expression: {type(node.op).__name__}")


def _call(name: str, arguments: list[ast.expr]) -> tuple[str, Binding]:
    """Return the call of a function as LaTeX, and how tightly it binds."""
    first, *others = (_within(argument, Binding.CHOICE) for argument in arguments)
    if name in TIGHT and not others:
        return TIGHT[name].replace("WHAT", first), Binding.ATOM
    if name == "exp" and not others:
        return f"e^{{{first}}}", Binding.POWER
    if name == "log" and others:
        return rf"\log_{{{others[0]}}}({first})", Binding.ATOM
    function = NAMED.get(name) or rf"\mathrm{{{name}}}".replace("_", r"\_")
    listed = r",\,".join([first, *others])
    return f"{function}({listed})", Binding.ATOM


def _number(value: float) -> tuple[str, Binding]:
    """Return a number of six digits as LaTeX, a power of ten if it is small or large, and how tightly it binds."""
    mantissa, exponent = f"{value:.5e}".split("e")
    digits, power = f"{float(mantissa):g}", f"10^{{{int(exponent)}}}"
    if value and not -4 <= int(exponent) < 6:
        return (power, Binding.POWER) if digits == "1" else (rf"{digits}\cdot {power}", Binding.PRODUCT)
    return f"{value:.6g}", Binding.ATOM
