"""LaTeX symbols as plain text, for menus, tooltips, tables and the axes of interactive plots."""

import re
from typing import Any

import xarray as xr

from sweeplib.figures.labels import number

GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ϵ",
    "varepsilon": "ε",
    "eta": "η",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "xi": "ξ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "omega": "ω",
    "Gamma": "Γ",
    "Delta": "Δ",
    "Theta": "Θ",
    "Lambda": "Λ",
    "Xi": "Ξ",
    "Pi": "Π",
    "Sigma": "Σ",
    "Phi": "Φ",
    "Psi": "Ψ",
    "Omega": "Ω",
}
COMMANDS = GREEK | {"langle": "⟨", "rangle": "⟩", "min": "min", "max": "max", "sup": "sup", "infty": "∞", "log": "log"}
COMMANDS |= {"times": "×", "perp": "⊥", "sqrt": "√", "cdot": "·", "propto": "∝", "|": "‖", ",": "\u2009", "_": "_"}
RAISED = str.maketrans("0123456789+-*", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻*")
LOWERED = str.maketrans("0123456789+-", "₀₁₂₃₄₅₆₇₈₉₊₋")


def plain(latex: str) -> str:
    r"""Return LaTeX as plain characters: '⟨ν_ext⟩/d' for \\langle\\nu_{\\mathrm{ext}}\\rangle/d, '10⁶'."""
    text = re.sub(r"\\(?:mathrm|mathcal|mathbf|text)\s*\{((?:[^{}])*)\}", r"\1", latex.replace("$", ""))
    text = re.sub(r"\\(?:mathrm|mathcal|mathbf)\b\s*", "", text)
    text = re.sub(r"\\hat\s*(\\?[A-Za-z]+)", "\\1\u0302", text)
    text = re.sub(r"\\([A-Za-z]+\s*|[^A-Za-z])", _command, text)
    text = re.sub(r"([_^])(?:\{([^{}]*)\}|(.))", _script, text)
    return text.replace("{", "").replace("}", "")


def _command(found: re.Match[str]) -> str:
    name = found[1].strip()
    return COMMANDS.get(name, name)


def _script(found: re.Match[str]) -> str:
    mark, text = found[1], found[2] or found[3]
    moved = text.translate(RAISED if mark == "^" else LOWERED)
    return moved if not re.search(r"[A-Za-z0-9α-ω]", moved.replace("*", "")) else f"{mark}{text}"


def array_label(array: xr.DataArray) -> str:
    """Return long name, symbol and units of an array, as far as it has them: 'learning rate γ'."""
    name = str(array.attrs.get("long_name", array.name))
    found = plain(array.attrs.get("symbol", ""))
    parts = [name, found if found not in (name, plain(str(array.name))) or len(found) == 1 else ""]
    units = array.attrs.get("units", "1")
    return " ".join([*filter(None, parts), *([f"({units})"] if units not in ("1", "") else [])])


def value_text(raw: Any) -> str:
    """Return a value of an axis as text: '3000', '10⁶', 'erf', 'yes'."""
    if isinstance(raw, bool):
        return "yes" if raw else "no"
    return raw if isinstance(raw, str) else plain(number(raw))
