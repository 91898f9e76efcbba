"""The pictures of the pages: which of them differ from what they were made from, and how they are drawn again.

`make pictures` runs the configs of those that do, in build/pictures, and writes their PNG files, which carry the digest
of what they were made from: the config but for what only says how it is run, its function, the options of the figure
and of the analyses that it draws, and the code of these, of the labels and of the style. Other code is left out,
because most of its changes are no changes of a picture; who makes one that is draws all of them:
`make pictures PICTURES=all`.
"""

import io
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from PIL import Image, ImageColor
from PIL.PngImagePlugin import PngInfo

from sweeplib.engine.base.registry import origin_of
from sweeplib.engine.code.sources import code
from sweeplib.engine.files.published import references_digest
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.engine.storage.records.artefacts import settings_digest
from sweeplib.engine.storage.records.files import digest
from sweeplib.pictures.figures.figure import requested
from sweeplib.pictures.figures.kit.style import COLOURS as STYLE
from sweeplib.pictures.figures.kit.style import INK

ROOT = Path(__file__).parents[2]
IMAGES, RESULTS = ROOT / "docs" / "images", ROOT / "build" / "pictures"
PICTURES: dict[str, dict[str, str]] = parsed((ROOT / "docs" / "pictures.yaml").read_text(encoding="utf-8"))
KEY = "made from"
"""The name of the digest in the text of a PNG file."""
SOURCES = (".py", ".c")
"""The files of a function."""
LOOKS = ("sweeplib.networks.simulation.labels", "sweeplib.pictures.figures.kit.style")
"""The modules of labels and style."""
SHRINKING, COLOURS = 1.5, 128
"""By how much a picture is smaller on a page than in a report, and the most colours that it has."""


def digest_of(picture: str) -> str:
    """Return the digest of what a picture would be made from now."""
    config, entry = (PICTURES[picture][key] for key in ("config", "figure"))
    text = (ROOT / "config" / f"{config}.yaml").read_text(encoding="utf-8")
    figures, analyses = (_options(parsed(text).get(section)) for section in ("figures", "analyses"))
    figure, options = requested(entry, figures[entry])
    needs = figure.needed(options)
    modules = [origin_of("figure", figure.name), *(origin_of("analysis", need) for need in needs), *LOOKS]
    functions = sorted((ROOT / "config").glob(f"{config}.*")) if "simulator" in parsed(text) else []
    parts = {
        "settings": settings_digest(text),
        "options": figures[entry] | {"reference": references_digest(options.get("reference", []))},
        "analyses": {need: analyses.get(need, {}) for need in needs},
        "code": [digest(code(_file(module)).encode()) for module in modules],
    }
    if files := [path for path in functions if path.suffix in SOURCES]:
        parts["function"] = [digest(path.read_bytes()) for path in files]
    return digest(json.dumps(parts, sort_keys=True, default=str).encode())


def _options(section: list[str] | dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the entries of `figures` or `analyses` in a config with their options."""
    names = section if isinstance(section, dict) else dict.fromkeys(section or ())
    return {name: options or {} for name, options in names.items()}


def _file(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def stale_pictures() -> list[str]:
    """Return the names of the pictures that were made from something else than they would be now, or are missing."""
    return [name for name in PICTURES if _kept_digest(IMAGES / f"{name}.png") != digest_of(name)]


def _kept_digest(path: Path) -> str | None:
    """Return the digest in a picture; None without a picture or a digest."""
    if not path.exists():
        return None
    with Image.open(path) as picture:
        return picture.info.get(KEY)


def draw(names: Iterable[str]) -> None:
    """Run the configs of some pictures, each once, and write the pictures."""
    digests = {name: digest_of(name) for name in names}
    for config in dict.fromkeys(PICTURES[name]["config"] for name in digests):
        command = [sys.executable, "-m", "sweeplib", "sweep", f"config/{config}.yaml", "--results", str(RESULTS)]
        subprocess.run(command, cwd=ROOT, check=True)
        for name, made_from in digests.items():
            if PICTURES[name]["config"] == config:
                click.echo(f"docs/images/{name}.png")
                _write(name, made_from)


def _write(name: str, made_from: str) -> None:
    """Write a picture from that of the report of its config, smaller and with its digest."""
    config, figure = (PICTURES[name][key] for key in ("config", "figure"))
    with Image.open(RESULTS / Path(config).name / "figures" / f"{figure}.png") as drawn:
        size = tuple(round(length / SHRINKING) for length in drawn.size)
        picture = drawn.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    text = PngInfo()
    text.add_text(KEY, made_from)
    with_few_colours(picture).save(file := io.BytesIO(), "png", optimize=True, pnginfo=text)
    (IMAGES / f"{name}.png").write_bytes(file.getvalue())


def with_few_colours(picture: Image.Image) -> Image.Image:
    """Return a picture in few colours, white, ink and those of the style as they are.

    A median cut alone mixes colours of small areas with others: marks in a legend then differ from the lines they name.
    """
    exact = [ImageColor.getrgb(colour)[:3] for colour in ("white", INK, *STYLE)]
    cut = picture.quantize(COLOURS - len(exact)).getpalette() or []
    others = [colour for colour in zip(cut[::3], cut[1::3], cut[2::3], strict=True) if not _is_near(colour, exact)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([channel for colour in [*exact, *others] for channel in colour])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def _is_near(colour: tuple[int, ...], exact: list[tuple[int, ...]]) -> bool:
    """Return whether Pillow may take a colour for one of those that are to stay: it looks at steps of four."""
    return any(max(abs(a - b) for a, b in zip(colour, other, strict=True)) <= 8 for other in exact)


if __name__ == "__main__":
    asked = sys.argv[1:]
    draw(PICTURES if asked == ["all"] else asked or stale_pictures())
