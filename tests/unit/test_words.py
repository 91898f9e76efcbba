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
    page = "# Page\n\n## Room\n\n- **A fact.** Why it is so.\n- **Another, over\n  two lines**, and why; not **this**.\n"
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
