"""Damaged metadata and index of a layout, written again from the cases of a sweep, so that its results stay."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sweeplib.simulation import Case, Cases
from sweeplib.storage.records.files import DamageError, lost
from sweeplib.storage.store.layout import INDEX, Layout, create_layout
from sweeplib.storage.store.layout_files import read_metadata, write_metadata
from sweeplib.storage.store.rows import OWN_FIELDS, cases_of, index_of


def is_restored(path: Path, cases: Cases) -> bool:
    """Return whether the metadata and the index of a layout are intact again; `cases` are those of a sweep for it.

    It needs the number of rows, the block size and, of each part of the index, the identities or all other columns;
    with the identities alone, the sweep must have the cases. Only for the driver, while no worker runs.
    """
    try:
        _restore_metadata(path, cases[0])
        layout = Layout(path)
        for start in range(0, len(layout), layout.index_rows):
            _restore_index(layout, slice(start, min(start + layout.index_rows, len(layout))), cases)
    except (DamageError, KeyError):
        return False
    return True


def _restore_metadata(path: Path, case: Case) -> None:
    """Write the damaged zarr.json files of a layout again. DamageError if its block size or number of rows are lost."""
    whole, status, index = (_read(path / name / "zarr.json") for name in ("", "status", "case_id"))
    if whole is not None:
        rows, block_size = whole["attributes"]["rows"], whole["attributes"]["block_size"]
    elif status is not None and index is not None:
        rows, block_size = index["shape"][0], status["chunk_grid"]["configuration"]["chunk_shape"][0]
    else:
        raise lost(path / "zarr.json", "")
    indices = (metadata for name in INDEX if (metadata := _read(path / name / "zarr.json")) is not None)
    chunks = next((metadata["chunk_grid"]["configuration"]["chunk_shape"][0] for metadata in indices), None)
    with TemporaryDirectory() as folder:
        template = create_layout(Path(folder, path.name), case, block_size).path
        contents = {}
        for file in template.rglob("zarr.json"):
            target = path / file.relative_to(template)
            if _read(target) is None:
                content = read_metadata(file, "")
                if "shape" in content:
                    content["shape"][0] = rows
                    if file.parent.name in INDEX and chunks is not None:
                        content["chunk_grid"]["configuration"]["chunk_shape"][0] = chunks
                else:
                    content["attributes"]["rows"] = rows
                contents[target] = content
        write_metadata(contents)


def _read(path: Path) -> dict[str, Any] | None:
    """Return the metadata in a file, None if it is damaged or lost."""
    try:
        return read_metadata(path, "")
    except DamageError:
        return None


def _restore_index(layout: Layout, rows: slice, cases: Cases) -> None:
    """Write the damaged columns of a part of the index again. KeyError if too much is lost."""
    known = {name: column for name in INDEX if (column := layout.index(name, rows)) is not None}
    if len(known) == len(INDEX):
        return
    if "case_id" in known:
        ids = np.ascontiguousarray(known["case_id"]).view("S16").ravel()
        places = {identity: place for place, identity in enumerate(cases.identities().tolist())}
        fields = index_of(cases.at(np.array([places[identity] for identity in ids.tolist()])))
    else:
        fields = {name: known[name] for name in OWN_FIELDS}
        ids = cases_of(layout.shared, fields).identities()
    for name, column in (fields | {"case_id": ids.view("<u8").reshape(-1, 2)}).items():
        if name not in known:
            layout.replace_index(name, rows, column)
