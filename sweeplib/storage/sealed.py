"""JSON files of formats that are not ours, with a checksum of their content in a part that accepts any key."""

import json
from pathlib import Path
from typing import Any

from sweeplib.storage.damage import damaged, lost
from sweeplib.storage.files import CHECKSUM, digest, write_text


def write_sealed(path: Path, content: dict[str, Any], part: str = "attributes") -> Path:
    """Write a JSON file with this content and its checksum in `part`, in one rename; return the path."""
    return write_text(path, _sealed(content, part))


def read_sealed(path: Path, remedy: str, part: str = "attributes") -> dict[str, Any]:
    """Return the content of a JSON file without its checksum. DamageError if any bit of the file has changed."""
    try:
        text = path.read_bytes().decode("utf-8")
        content = json.loads(text)
        del content[part][CHECKSUM]
        intact = _sealed(content, part) == text
    except FileNotFoundError:
        raise lost(path, remedy) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        intact = False
    if not intact:
        raise damaged(path, remedy)
    return dict(content)


def _sealed(content: dict[str, Any], part: str) -> str:
    return _text(content | {part: content[part] | {CHECKSUM: digest(_text(content).encode())}})


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True) + "\n"
