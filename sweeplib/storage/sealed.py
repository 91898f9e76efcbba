"""JSON files that carry a checksum of their own content, in a part of it that may hold anything: attributes, say."""

import hashlib
import json
from pathlib import Path
from typing import Any

from sweeplib.storage.damage import damaged, lost
from sweeplib.storage.files import write_text

CHECKSUM = "checksum"


def write_sealed(path: Path, content: dict[str, Any], part: str = "attributes") -> Path:
    """The path of a JSON file with this content and, in a part of it, its checksum, written in one rename."""
    return write_text(path, _sealed(content, part))


def read_sealed(path: Path, remedy: str, part: str = "attributes") -> dict[str, Any]:
    """The content of a JSON file, without its checksum. DamageError if a single bit of the file has changed."""
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
    checksum = hashlib.blake2b(_text(content).encode(), digest_size=16).hexdigest()
    return _text(content | {part: content[part] | {CHECKSUM: checksum}})


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True) + "\n"
