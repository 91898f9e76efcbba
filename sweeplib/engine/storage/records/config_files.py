"""What a results folder says of its sweep: the complete config, README.md, and its origin, the user's config file.

The origin detects two sweeps with the same name. A sweep that is described in Python has none; it is refused where
there is one. The file may change, grow, be renamed, and move together with its results. It is refused only if a second
file exists at the same time, has the same sweep name, and has other content.
"""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.code.user_code import seen_from
from sweeplib.engine.files.regular_files import file_bytes, file_text
from sweeplib.engine.files.strict_yaml import parsed, written
from sweeplib.engine.process.terminal import counted
from sweeplib.engine.storage.records.files import digest, read_json, write_files, write_json, write_text
from sweeplib.engine.storage.records.provenance import home_page, version
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

CONFIG = "config.yaml"
"""The file with the complete config of the last run."""
ORIGIN = "origin.json"
"""The file with the path of the origin."""
READ = "command.yaml"
"""The file in a sweep's folder with its complete config as the command that runs it has read it, with overrides."""
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

In the folder that has this one, under its name:

```sh
sweeplib plan NAME/config.yaml --results .              # what is here
sweeplib reproduce NAME/config.yaml CASE --results .    # computes a case again, and compares its bits
sweeplib sweep NAME/config.yaml --results . seeds=64    # goes on from the runs that there are, here with more seeds
```
"""
_SEAL = "\n# checksum of the lines above: "
"""The beginning of the last line of a complete config."""


def write_description(sweep: "Design", directory: Path) -> None:
    """Write the complete config of a sweep, and README.md, into its directory.

    What somebody has put in the place of README.md stays.
    """
    texts, path = {}, directory / README
    if not os.path.lexists(path) or _is_own(path):
        texts[path] = readme(sweep)
    texts[directory / CONFIG] = complete_config(sweep, directory)
    write_files({path: text.encode() for path, text in texts.items()})


def write_complete_config(sweep: "Design", directory: Path, name: str = CONFIG) -> Path:
    """Write the `complete_config` of a sweep into its directory; return its path."""
    return write_text(directory / name, complete_config(sweep, directory))


def complete_config(sweep: "Design", directory: Path) -> str:
    """Return the text of a config that loads the same sweep from a file in a directory, with a checksum at its end.

    The paths of plugins and published values are relative to the directory, so that a project can be moved or copied
    with its results.
    """
    text = sweep.source
    if sweep.user_names():
        files = sweep.with_files(partial(seen_from, folder=directory))
        text = written(parsed(text) | files)
    text = text.rstrip("\n")
    return text + _SEAL + digest(text.encode()) + "\n"


def is_as_written(path: Path) -> bool:
    """Return whether a complete config has the content that was written, by the checksum in its last line."""
    text, _, checksum = file_bytes(path).rpartition(_SEAL.encode())
    return checksum == f"{digest(text)}\n".encode()


def check_origin(config: Path, directory: Path) -> None:
    """Raise InputError if a sweep's directory holds the results of another file than `config` with the sweep's name."""
    if not is_lasting(config):
        refuse_other_origin(directory)
        return
    other = origin_of(directory)
    if other is None or is_beside_results(config, directory):
        return
    if other.samefile(config) or file_bytes(other) == file_bytes(config):
        return
    problem = f"{directory} has the results of {other.resolve()}, whose sweep is also called {directory.name!r}"
    expected = f"another `name`, another --results, or no file {directory / ORIGIN} (then this file takes over)"
    raise InputError(problem, file=config, expected=expected)


def refuse_other_origin(directory: Path) -> None:
    """Raise InputError if a directory has the results of a config file that still exists and has the sweep's name."""
    other = origin_of(directory)
    if other is not None:
        problem = f"{directory} has the results of {other.resolve()}"
        expected = "this file (in Python `Sweep.from_yaml`), another `name`, or another folder of results"
        raise InputError(problem, key="name", value=directory.name, expected=expected)


def is_lasting(config: Path) -> bool:
    """Return whether a config can be read again, by other processes: not /dev/stdin, the pipe of <(...), or a FIFO."""
    path = config.absolute()
    is_stream = path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")
    return not is_stream and (config.is_file() or not config.exists())


def record_origin(config: Path, directory: Path) -> None:
    """Record a sweep's config file in its directory, relative to the directory because both may be moved.

    A pipe, which cannot be read again, and the complete config beside the results are no origins. A copy does not take
    the place of the file that is recorded, as long as that is there and has the sweep's name.
    """
    if is_lasting(config) and not is_beside_results(config, directory) and origin_of(directory) is None:
        write_json(directory / ORIGIN, {"config": os.path.relpath(config.resolve(), directory.resolve())})


def is_beside_results(config: Path, directory: Path) -> bool:
    """Return whether a config lies in the results' folder: it is a complete config, which the library wrote."""
    return config.resolve().parent == directory.resolve()


def origin_of(directory: Path) -> Path | None:
    """Return the recorded config file of a sweep's directory; None if it is gone or describes another sweep now."""
    content: dict[str, Any] = read_json(directory / ORIGIN) or {}
    config = content.get("config")
    path = directory.resolve() / config if isinstance(config, str) else None
    return path if path is not None and path.is_file() and _describes(path, directory.name) else None


def _describes(config: Path, name: str) -> bool:
    """Return whether a file describes the sweep with this name, or may do so, as one that is being edited."""
    try:
        content = parsed(file_text(config, "utf-8-sig"))
    except (OSError, ValueError):
        return True
    # a file system that does not tell cases apart has one folder for both
    return isinstance(content, dict) and str(content.get("name", config.stem)).casefold() == name.casefold()


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
        _OPEN.replace("NAME", sweep.name),
    ]
    return "\n".join(lines)
