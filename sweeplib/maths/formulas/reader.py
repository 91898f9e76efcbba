"""The text of a formula as a tree of Python syntax, and the refusal of its parts."""

import ast

from sweeplib.code.syntax import expression_tree
from sweeplib.errors import InputError

MOST_CHARACTERS = 500


class Reader:
    """Base of readers of one kind of text, such as "formula"; `allowed` says what the text may contain.

    Raises InputError, with the position, for a text that is too long or not an expression of Python.
    """

    kind = "formula"
    allowed = ""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise InputError(f"{self.kind} too long", value=text, expected=f"at most {MOST_CHARACTERS} characters")
        self.text = text.strip()
        try:
            self.tree = expression_tree(self.text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
            raise InputError(f"not a {self.kind}{where}", value=text, expected=self.allowed) from None

    def refused(self, part: ast.expr, problem: str, expected: str | None = None) -> InputError:
        """The error for a part of the text, with its position."""
        source = ast.get_source_segment(self.text, part) or ast.unparse(part)
        where = f"`{source}` at character {part.col_offset + 1}"
        return InputError(f"{problem}: {where}", value=self.text, expected=expected or self.allowed)
