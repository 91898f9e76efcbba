"""README.md of a results folder: what it is, who made it, under which licence, how to open it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.engine.files.regular_files import file_text
from sweeplib.engine.process.terminal import counted
from sweeplib.engine.storage.records.files import write_text
from sweeplib.engine.storage.records.provenance import home_page, version

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

README = "README.md"
OWN = "<!-- sweeplib writes this file; without this line it is yours, and stays as it is -->"
"""The first line of a file that may be written again."""
_OPEN = """\
## How to open it

```python
import xarray as xr

ds = xr.open_zarr("dataset.zarr")  # or any other reader of zarr v3; sweeplib is not needed
```

| file | what it is |
|---|---|
| `dataset.zarr` | the results, when all runs have ended; its variable `status` says which runs have one |
| `report/index.html` | figures, tables and origin of the numbers, for a browser, without a network |
| `figures/`, `analysis/` | each figure as PDF and PNG; what they draw, as zarr |
| `config.yaml` | the complete config |
| `stages/` | a record of each stage: when and where it ran, what it made, with digests, and from what |
| `runs/`, `journal/`, `*.json` | the runs themselves and what else sweeplib goes on from |

## How to go on

In this folder, which must have the name of the sweep:

```sh
sweeplib plan config.yaml --results ..              # what is here
sweeplib reproduce config.yaml CASE --results ..    # computes a case again, and compares its bits
sweeplib sweep config.yaml --results .. seeds=64    # goes on from the runs that there are, here with more seeds
```
"""


def write_readme(sweep: "Design", directory: Path) -> None:
    """Write README.md into a sweep's directory, unless somebody has put something of their own there."""
    path = directory / README
    if not os.path.lexists(path) or _is_own(path):
        write_text(path, readme(sweep))


def _is_own(path: Path) -> bool:
    """Return whether a file begins with the line of those that sweeplib writes."""
    try:
        return not path.is_symlink() and path.is_file() and file_text(path).startswith(OWN)
    except (OSError, ValueError):
        return False


def readme(sweep: "Design") -> str:
    """Return the text of README.md of a sweep's folder: what is in it, by whom, and how to open it."""
    axes = [f"`{axis.name}` ({counted(len(axis.values), 'value')})" for axis in sweep.grid.axes]
    axes.append(f"`seed` ({len(sweep.seeds):,})")
    cases = counted(sum(map(sweep.most_cases_of, sweep.runs)))
    authors = "; ".join(sweep.authors) or "not named. Their place is the key `authors` of the config."
    licence = sweep.licence or (
        "not stated, so that only the authors can allow others to use the results. Its place is the key `license` of "
        "the config, for example `license: CC-BY-4.0`."
    )
    place = f", {page}" if (page := home_page()) else ""
    lines = [
        OWN,
        f"# {sweep.name}",
        "",
        f"Results of a sweep by sweeplib, of {sweep.simulator.about}: {', '.join(f'`{name}`' for name in sweep.runs)} "
        f"over {', '.join(axes)}: at most {cases}.",
        "",
        f"- Authors: {authors}",
        f"- Licence of the results: {licence}",
        f"- Made by sweeplib {version()}{place}, whose own licence is BSD-3-Clause: cite it, by the sweeplib "
        "developers, with this version, and the papers whose equations were run.",
        "",
        _OPEN,
    ]
    return "\n".join(lines)
