"""The words of the library: what comments point to, and how docstrings begin."""

import re
from pathlib import Path

import pytest

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


LONG_PAGES = ("theory", "numerics", "statistics", "gallery", "how-to/answers")
"""Pages whose sentences were long: the decisions have a rule of their own."""


def sentences(page: str) -> list[str]:
    """Return the sentences of a page, without its code, tables, headings and pictures."""
    page = re.sub(r"^```.*?^```$", "\n", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"^(?:    \S|\||#|!\[).*$", "\n", page, flags=re.MULTILINE)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", page)
    return [each for paragraph in paragraphs for each in re.split(r"(?<=[.!?])[\"*)]*\s+(?=`|\W?[A-Z])", paragraph)]


def test_sentences_are_those_of_the_text() -> None:
    page = "# A title\n\nOne, of p.\nTwo (2). Three:\n\n| a | b |\n\n- Four.\n- Five\n\n```sh\nnone\n```\n"
    assert [" ".join(each.split()) for each in sentences(page) if each.strip()] == [
        "One, of p.",
        "Two (2).",
        "Three:",
        "- Four.",
        "- Five",
    ]


@pytest.mark.parametrize("page", LONG_PAGES)
def test_sentences_of_the_long_pages_have_35_words(page: str) -> None:
    """Of twenty sentences one may have more: it then says one thing with many numbers."""
    page_sentences = [each for each in sentences((ROOT / "docs" / f"{page}.md").read_text()) if each.strip()]
    long = [" ".join(each.split()) for each in page_sentences if len(each.split()) > 35]
    assert len(page_sentences) > 50
    assert len(long) <= 0.05 * len(page_sentences), long


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
