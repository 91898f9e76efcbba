"""The YAML file of a sweep, read into a `Sweep`: whatever is wrong with it is said here, before anything starts."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.sweep.sweep import Sweep

__all__ = ["load"]


def load(path: str | Path, overrides: Iterable[str] = ()) -> "Sweep":
    """Return the sweep that the file describes, with values overridden as `grid.d=[300]` says.

    Paths in the file, and in overrides, are relative to the file's folder. Its plugins are imported.
    InputError, one line that names the file and line, the key, its value and what was expected, for anything wrong.
    """
    import pydantic

    from sweeplib.config.explained import explained, located
    from sweeplib.config.models import SweepConfig
    from sweeplib.config.overrides import Override, overridden

    text = _text(Path(path))
    changes = [Override(each) for each in overrides]
    data = {"name": Path(path).stem, **_mapping(text, path)}
    for change in changes:
        data = overridden(data, change)
    try:
        config = SweepConfig.model_validate(data)
        from sweeplib.config.build import sweep_of  # here, as it loads the simulators

        return sweep_of(config, Path(path).parent)
    except pydantic.ValidationError as error:
        raise located(explained(error), text, path, changes) from None
    except InputError as error:
        raise located(error, text, path, changes) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = [str(other) for other in sorted(path.parent.glob("*.yaml"))]
        raise InputError("no such file", value=str(path), expected="a sweep's YAML file", choices=near) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = "not text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InputError(f"cannot be read: {reason}", file=path, expected="a sweep's YAML file") from None


def _mapping(text: str, path: str | Path) -> dict[str, Any]:
    from sweeplib.config.strict_yaml import parsed

    data = parsed(text, path)
    if data is None:
        raise InputError("the file is empty", file=path, expected="a sweep, with `dynamics`, `grid`, `times`, ...")
    if not isinstance(data, dict):
        raise InputError("not a sweep", file=path, value=data, expected="`name: value` lines")
    return data
