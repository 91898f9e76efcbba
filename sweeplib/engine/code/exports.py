"""The names that `sweeplib.plugins` offers, each with the module that defines it.

A digest follows a name that a plugin imports from `sweeplib.plugins` to this module, and to no other.
"""

import ast
from functools import cache
from pathlib import Path

from sweeplib.engine.code.syntax import syntax_tree
from sweeplib.engine.files.regular_files import file_text

INTERFACE = "sweeplib.plugins"
"""The module from which plugins import."""


@cache
def homes() -> dict[str, str]:
    """Return, by name, the module that defines it, as the imports of `INTERFACE` for type checkers have them."""
    text = file_text(Path(__file__).parents[2] / "plugins.py")
    [block] = (node for node in syntax_tree(text).body if isinstance(node, ast.If))  # `if TYPE_CHECKING:`
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


FORMER = {
    "Curve": "a law is Layer('law', heights, label, name, dashes)",
    "INTERACTIVE": "the plot of a figure is a Chart: Figure(..., interactive=lambda ds, analyses, **_: Chart(x, y))",
    "Interactive": "an interactive plot is a Chart",
    "Points": "points are the layers of a Chart: levels=(Level((Layer('points', 'y'), ...)),)",
}
"""By a name that was offered before, what stands for it now, in words."""
