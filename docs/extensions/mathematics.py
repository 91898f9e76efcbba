r"""Formulas of the pages, `$...$` and ```{math}` blocks, as MathML, which browsers draw without scripts or fonts."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from sweeplib.pictures.report.mathematics import mathml

LOGGER = logging.getLogger(__name__)


def markup(latex: str, display: str) -> str:
    """Return a formula as MathML, inline or as a block; one that cannot be read is a warning."""
    result = str(mathml(latex))
    if not result.startswith("<math"):
        LOGGER.warning("not a formula that can be read: %s", latex)
    return result.replace('display="inline"', f'display="{display}"', 1)


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    writer.body.append(markup(node.astext(), "inline"))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula that stands alone."""
    formula = markup(node.astext(), "block")
    # by keys, too, a long one is scrolled
    writer.body.append(f'<div class="formula" tabindex="0" role="group" aria-label="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer, `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
