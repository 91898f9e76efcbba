"""Modules of the user's own, imported by the driver and by every worker, that register what they define."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from sweeplib.errors import InputError


def load_plugins(plugins: Iterable[str]) -> None:
    """Import each plugin once: the name of a module, or the path of a `.py` file. InputError where it cannot be."""
    for plugin in plugins:
        try:
            _load(plugin)
        except (ImportError, OSError) as error:
            raise InputError(f"cannot be imported ({error})", key="plugins", value=plugin) from error


def _load(plugin: str) -> None:
    if not plugin.endswith(".py"):
        importlib.import_module(plugin)
        return
    path = Path(plugin).resolve()
    name = f"sweeplib_plugin_{path.stem}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module in {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
