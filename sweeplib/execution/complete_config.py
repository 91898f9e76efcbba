"""The complete config of a sweep, beside its results."""

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from sweeplib.code.plugins import seen_from
from sweeplib.storage.files import write_text

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep


def write_complete_config(sweep: "Sweep", directory: Path) -> Path:
    """The path of config.yaml in a sweep's directory: the same sweep, loaded from there.

    The paths of plugins are relative to it, so that a project can be moved, or copied, with its results.
    """
    text = _with_plugins(sweep.source, seen_from(sweep.plugins, directory)) if sweep.plugins else sweep.source
    return write_text(directory / "config.yaml", text)


def _with_plugins(source: str, plugins: list[str]) -> str:
    """The same YAML, all else as it was written, with these plugins."""
    root = yaml.compose(source, yaml.SafeLoader)
    for key, value in root.value:
        if key.value == "plugins":
            value.value = [yaml.ScalarNode("tag:yaml.org,2002:str", plugin) for plugin in plugins]
    return str(yaml.serialize(root, Dumper=yaml.SafeDumper, allow_unicode=True, width=100))
