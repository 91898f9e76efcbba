"""The claims of the sources: what a row names exists, and every row says what came out."""

import re
from collections import Counter
from pathlib import Path

import pytest

from docs.extensions.claims import MARK, NOTEBOOKS, SOURCES, Claim, claims_of, figures_of_configs, page

ROOT = Path(__file__).parents[2]
CLAIMS = [claim for notebook in SOURCES for claim in claims_of(notebook)]
TESTS = Counter(
    name
    for file in sorted((ROOT / "tests").glob("*/test_*.py"))
    for name in (file.name, *re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
)
STATES = ("reproduced", "tried", "wrong in the source", "scatter reproduced", "not tried", "out of reach")


def test_all_claims_have_a_row() -> None:
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS) == 55


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.name for claim in CLAIMS])
def test_what_a_row_names_exists(claim: Claim) -> None:
    names = re.findall(r"`([^`]+)`", claim.where)
    for name in names:
        assert (ROOT / name).is_file() if "/" in name else TESTS[name] == 1, name
    assert claim.result.startswith(STATES)
    assert any(name in TESTS for name in names)
    assert "above" in claim.where or any(
        name in figures_of_configs() for name in re.findall(r"(\w+)\.yaml", claim.where)
    )


def test_the_page_of_the_claims_has_all_tables() -> None:
    assert (ROOT / "docs" / "notebooks" / "claims.md").read_text(encoding="utf-8").count(MARK) == 1
    assert all(f"| {claim.name} |" in page() for claim in CLAIMS)


def test_configs_and_cells_of_claims_are_links() -> None:
    """Their anchors are those that other pages use."""
    text, anchors = page(), figures_of_configs()
    notebook = (NOTEBOOKS / "dimension-free-limits.md").read_text(encoding="utf-8")
    elsewhere = set(re.findall(r"\.\./gallery\.md#([^)]+)\)", notebook))
    assert len(elsewhere & set(anchors.values())) > 5
    assert "| above" not in text
    assert "`config/classical.yaml` ([figure](../gallery.md#configclassicalyaml-" in text
