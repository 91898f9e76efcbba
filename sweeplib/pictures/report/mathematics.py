"""Labels with mathematics between dollars as HTML with MathML, and as plain text for menus and what is read aloud."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from markupsafe import Markup

from sweeplib.pictures.figures.kit.labels import MOST_DIGITS, NAMED, number
from sweeplib.pictures.figures.kit.typeset import GREEK

COMMANDS = GREEK | {"langle": "⟨", "rangle": "⟩", "min": "min", "max": "max", "sup": "sup", "infty": "∞", "log": "log"}
COMMANDS |= {"times": "×", "perp": "⊥", "sqrt": "√", "cdot": "·", "propto": "∝", "|": "‖", "leq": "≤"}
COMMANDS |= {"geq": "≥", "neq": "≠", "neg": "¬", "wedge": "∧", "vee": "∨", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈"}
COMMANDS |= {"rceil": "⌉", "exp": "exp", "cos": "cos", "partial": "∂", "nabla": "∇", "sum": "∑", "ell": "ℓ", "to": "→"}
COMMANDS |= {"sim": "~", "top": "\u22a4", "pm": "±", "varnothing": "∅", "varrho": "ϱ", "lvert": "|", "rvert": "|"}
"""The signs of LaTeX commands, without their backslash."""
RAISED = str.maketrans("0123456789+-*()abcdefghijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻*⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ")
LOWERED = str.maketrans("0123456789+-()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ")
"""The characters that have a raised or a lowered form."""
CAPITAL_GREEK = re.compile("<mi>(&#x003(?:9[1-9A-F]|A[0-9]);)</mi>")
"""Capital Greek letters in MathML, which LaTeX has upright."""
UNDERSCORE = "\ue000"
"""What stands for an underscore of a name while those of subscripts are read."""
MORE_THAN_A_FORMULA = re.compile(r"\b(href|src|style|class|id|on\w+)=|\\")
"""What MathML has if the LaTeX contains links, styles or commands that are unknown."""
ACCENTS = {"hat": "\u0302", "bar": "\u0304"}
"""Marks above a letter, by their commands."""
SPACES = {",": "\u2009", " ": " ", "!": ""}
"""The spaces of LaTeX, by the character behind the backslash."""


def plain(latex: str) -> str:
    r"""Return LaTeX as plain characters: '⟨νₑₓₜ⟩/d' for \\langle\\nu_{\\mathrm{ext}}\\rangle/d, '10⁶'."""
    text = re.sub(r"\\(?:mathrm|mathcal|mathbf|mathbb|text)\s*\{((?:[^{}])*)\}", r"\1", latex.replace("$", ""))
    text = re.sub(r"\\(?:mathrm|mathcal|mathbf|mathbb)\b\s*", "", text)
    text = text.replace(r"\_", UNDERSCORE)
    text = re.sub(r"\\sqrt\s*\{([^{}]*)\}", _root, text)
    for accent, mark in ACCENTS.items():
        text = re.sub(rf"\\{accent}\s*\{{?(\\?[A-Za-z]+)\}}?", rf"\1{mark}", text)
    text = re.sub(r"\\([A-Za-z]+)(?:\s+(?=[\w\\({|]))?|\\([^A-Za-z])", _command, text)
    text = re.sub(r"([_^])(?:\{([^{}]*)\}|(.))", _script, text)
    return text.replace("{", "").replace("}", "").replace(UNDERSCORE, "_")


def _root(match: re.Match[str]) -> str:
    """Return a root without braces: of a word, or of what is in parentheses."""
    return rf"\sqrt {match[1]}" if re.fullmatch(r"\\?\w+", match[1]) else rf"\sqrt({match[1]})"


def _command(match: re.Match[str]) -> str:
    """Return the sign of a command; the name of an unknown one."""
    name = match[1] or match[2]
    return SPACES[name] if name in SPACES else COMMANDS.get(name, name)


def _script(match: re.Match[str]) -> str:
    """Return an index or an exponent as lowered or raised characters, or behind its mark if one has no such form."""
    mark, text = match[1], match[2] or match[3]
    moved = text.translate(RAISED if mark == "^" else LOWERED)
    if not re.search(r"[A-Za-z0-9α-ωϑ,/^]", moved):
        return moved
    return f"{mark}({text})" if re.search(r"\W", text) else f"{mark}{text}"


@cache
def mathml(latex: str) -> Markup:
    """Return LaTeX as MathML, which browsers draw; as plain text if it cannot be read or is more than a formula."""
    from latex2mathml.converter import convert

    upright = re.sub(r"\\mathrm\s*\{((?:[^{}\\])*)\}", lambda markup: rf"\text{{{markup[1]}}}", latex)
    try:
        markup = CAPITAL_GREEK.sub(r'<mi mathvariant="normal">\1</mi>', convert(upright.replace(r"\|", r"\Vert ")))
    except Exception:  # its errors have no common class
        return Markup.escape(plain(latex))
    return Markup.escape(plain(latex)) if MORE_THAN_A_FORMULA.search(markup) else Markup(markup)


def parts(label: str) -> list[tuple[str, bool]]:
    """Return the pieces of a label and whether they are mathematics; one piece of text if its dollars are no pairs."""
    pieces = label.split("$")
    if len(pieces) % 2 == 0:
        return [(label, False)]
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


def plain_label(label: str) -> str:
    """Return a label with mathematics between dollars as plain characters."""
    return "".join(plain(piece) if is_latex else piece for piece, is_latex in parts(label))


def html_label(label: str) -> Markup:
    """Return a label with mathematics between dollars as HTML; its text is escaped."""
    return Markup("").join(mathml(piece) if is_latex else Markup.escape(piece) for piece, is_latex in parts(label))


def value_text(raw: Any, name: str = "", digits: int = MOST_DIGITS) -> str:
    """Return a value of the axis `name` as text, of at most `digits` digits: '3000', '10⁶', 'erf', 'He₂', 'yes'."""
    if isinstance(raw, bool):
        return "yes" if raw else "no"
    if isinstance(raw, str):
        return plain_label(NAMED[name](raw)) if name in NAMED else raw
    return plain_label(number(raw, digits))
