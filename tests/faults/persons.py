"""Files that a person put into the folder of a sweep, in every place where sweeplib has files of its own."""

from pathlib import Path

PERSONS = (
    "notes.txt",
    "thesis.partial/chapter.tex",
    "figures/paper_fig1.pdf",
    "analysis/my_notebook.ipynb",
    "analysis/exit_times.zarr/read.me",
    "dataset.zarr/read.me",
    "dataset.zarr/risk/picture.png",
    "datasets/old/read.me",
    "failures/mine.json",
    "report/slides.html",
    "runs/notes.txt",
    "runs/copy/mine.npz",
    "runs.zarr/copy/zarr.json",
    "journal/remarks.jsonl",
    "stages/mine.json",
    "locks/mine.lock",
)
"""Files that a person put into the folder of a sweep; others are beside the segments of its run store."""


def put(results: Path) -> dict[Path, bytes]:
    """Put the files of a person into a folder; return their contents."""
    segment = next((results / "runs").glob("*/*.npz"))
    beside = [segment.with_name(name) for name in ("mine.txt", "mine.npz", f"copy of {segment.name}")]
    places = [*(results / name for name in PERSONS), *beside]
    for number, place in enumerate(places):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{number} of a person")
    outside = results.parent.parent / "outside"
    outside.mkdir()
    for name in ("exit_times.json", "x.zarr/zarr.json", f".x.{'0' * 32}.partial"):
        (outside / name).parent.mkdir(exist_ok=True)
        (outside / name).write_text("of a person")
    (results / "analysis" / "linked").symlink_to(outside, target_is_directory=True)
    (results / "linked.zarr").symlink_to(outside / "x.zarr", target_is_directory=True)
    found = [*places, *(path for path in outside.rglob("*") if path.is_file())]
    return {path: path.read_bytes() for path in found}


def missing(persons: dict[Path, bytes]) -> list[Path]:
    """Return the files of a person that are gone, or have another content."""
    return [path for path, content in persons.items() if not path.exists() or path.read_bytes() != content]
