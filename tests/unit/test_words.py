"""The words of the library: what comments point to, and how docstrings begin."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = {path.relative_to(ROOT): path.read_text() for path in sorted((ROOT / "sweeplib").rglob("*.py"))}
DECISIONS = (ROOT / "docs" / "decisions.md").read_text()


def headings(page: str) -> set[str]:
    """Return the headings of a page of decisions: of its sections, and the bold beginnings of its entries."""
    entries = re.findall(r"^- \*\*(.+?)\*\*", page, re.MULTILINE | re.DOTALL)
    return {*re.findall(r"^## (.+)$", page, re.MULTILINE), *(" ".join(entry.split()).rstrip(".") for entry in entries)}


def test_headings_are_those_of_sections_and_of_entries() -> None:
    page = (
        "# Page\n\n## Room\n\n- **A fact.** Why it is so.\n- **Another, over\n  two lines**, and why; not **this**.\n"
    )
    assert headings(page) == {"Room", "A fact", "Another, over two lines"}


def test_comments_point_to_decisions_that_exist() -> None:
    """A comment `# decisions: HEADING` stands for the reasons below this heading of docs/decisions.md."""
    there = headings(DECISIONS)
    pointers = [
        (path, heading)
        for path, text in FILES.items()
        for heading in re.findall(r"^ *# decisions: (.+)$", text, re.MULTILINE)
    ]
    assert len(pointers) > 10
    assert [f"{path}: {heading}" for path, heading in pointers if heading not in there] == []


LEANING = "Also|And|As|By|For|If|It|Like|Likewise|None|Of|That|These|They|This|Those|Unless|With|Without"
"""How no sentence begins that can be read alone: it leans on the name below it, or on another docstring."""
LEANING_DOCSTRING = re.compile(
    rf'(?:\A|:(?: *#[^\n]*)?\n) *r?"""((?:All\.|(?:The same|{LEANING})\b)[^\n]*)', re.MULTILINE
)
"""The first line of such a docstring, of a module, or after the line that ends a `def` or a `class`."""


def test_docstrings_begin_with_what_can_be_read_alone() -> None:
    """Say what is returned, or filled, or checked: "Return the ...", "Fill ...", "The ..." in place of "As above"."""
    for text in (
        '"""As `other`, for one."""',
        'def f():\n    """The same for many."""',
        'class A:  # yes\n """All."""',
    ):
        assert LEANING_DOCSTRING.search(text)
    assert not LEANING_DOCSTRING.search('def f():\n    """Assign numbers."""\nBATCH = 4\n"""Of a step."""\n')
    refused = [f"{path}: {line}" for path, text in FILES.items() for line in LEANING_DOCSTRING.findall(text)]
    assert refused == []
