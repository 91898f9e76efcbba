"""The pictures of the pages are those that their configs draw, and run times stand in one table."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image, ImageColor

from docs.extensions import pictures
from docs.extensions.pictures import IMAGES, PICTURES, digest_of, stale_pictures
from sweeplib.pictures.figures.kit.style import COLOURS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SCREENSHOTS = {"report_desktop", "report_phone"}
"""Pictures of the report in a browser."""


def test_every_picture_has_a_config_and_a_page() -> None:
    shown = {name for page in PAGES for name in re.findall(r"images/(\w+)\.png", page.read_text(encoding="utf-8"))}
    assert shown == {*PICTURES, *SCREENSHOTS} == {path.stem for path in IMAGES.glob("*.png")}


def test_every_drawing_has_a_page_and_says_what_it_shows() -> None:
    """A title and a description, for who cannot see it, and a ground of its own, for pages that are dark."""
    shown = {name for page in PAGES for name in re.findall(r"!\[[^\]]+\]\(\S*images/(\w+)\.svg\)", page.read_text())}
    assert shown == {path.stem for path in IMAGES.glob("*.svg")}
    for path in IMAGES.glob("*.svg"):
        drawing = ET.fromstring(path.read_text(encoding="utf-8"))
        names = [re.sub("{.*}", "", part.tag) for part in drawing]
        ground = next(part for part, name in zip(drawing, names, strict=True) if name == "rect")
        assert names[:2] == ["title", "desc"]
        assert ground.get("fill") == "#ffffff"
        assert drawing.get("viewBox") == f"0 0 {ground.get('width')} {ground.get('height')}"


def test_no_picture_is_stale() -> None:
    """`make pictures` draws those that are."""
    assert stale_pictures() == []


@pytest.mark.parametrize("name", ["exit_map", "risk_floor"])
def test_a_digest_is_that_of_what_is_drawn(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes with the seeds and with the options of the figure, not with what only says how a config is run."""
    config = PICTURES[name]["config"]
    text = (ROOT / "config" / f"{config}.yaml").read_text(encoding="utf-8")
    before = digest_of(name)
    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    monkeypatch.setattr(pictures, "_file", lambda module: ROOT.joinpath(*module.split(".")).with_suffix(".py"))
    (tmp_path / "config").mkdir()

    def of(changed: str) -> str:
        (tmp_path / "config" / f"{config}.yaml").write_text(changed, encoding="utf-8")
        return digest_of(name)

    assert of(f"# a comment\n{text}\ntimeout: 60\n") == before
    assert of(re.sub(r"^seeds: \d+", "seeds: 5", text, flags=re.MULTILINE)) != before
    assert of(re.sub(rf"^  {PICTURES[name]['figure']}: {{", r"\g<0>where: {}, ", text, flags=re.MULTILINE)) != before


def test_colours_of_the_style_stay_as_they_are_in_small_areas() -> None:
    """Beside thousands of others: lights of all of them on each other, as bands are."""
    light = np.random.default_rng(0).integers(120, 256, (300, 300, 3), dtype=np.uint8)
    exact = [ImageColor.getrgb(colour) for colour in ("white", *COLOURS)]
    light[0, : len(exact)] = exact
    few = pictures.with_few_colours(Image.fromarray(light))
    assert [few.convert("RGB").getpixel((place, 0)) for place in range(len(exact))] == exact
    assert len(few.getcolors()) <= pictures.COLOURS


def test_run_times_stand_in_one_table() -> None:
    """That of the gallery, which has all configs; other texts grow old."""
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    configs = sorted((ROOT / "config").glob("*.yaml"))
    table = re.findall(r"^\| `config/(\w+)\.yaml` \| [\d½¼⅙⅓ to]+ \|$", gallery, re.MULTILINE)
    assert table == [path.stem for path in configs]
    for path in configs:
        assert not re.search(r"\b(minutes?|on two\s+(# )?cores)\b", path.read_text(encoding="utf-8")), path
