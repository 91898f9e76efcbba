"""Files to start from: a commented sweep, and plugins of each kind with a sweep that uses them."""

import keyword
import re
from pathlib import Path
from string import Template

from sweeplib.config.kinds import FILES, WITH_TEMPLATE
from sweeplib.engine.files.regular_files import file_text
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.errors import InputError

TEMPLATES = Path(__file__).with_name("templates")
"""The folder of the templates KIND.py.txt and KIND.yaml.txt."""
TEXT = """\
# A sweep of sweeplib. What it costs:   sweeplib plan {file}
# From here to the report:              sweeplib sweep {file}
# Other values for one run:             sweeplib sweep {file} seeds=128 grid.d=300,3000
# Keys and names:                       sweeplib list keys   (dynamics, activations, analyses, figures, ...)
# Options and an example:               sweeplib explain figures.line
# Completion in an editor:              sweeplib schema   (once; it writes the file that the next line names)
# yaml-language-server: $schema=schema.json

# What all points share: student width p, teacher width k, label noise Delta, activation.
problem: {{p: 1, k: 1, Delta: 0, activation: square, spherical: true}}

# The axes; all combinations are run. Each has a list of values or a spacing.
grid:
  d: [300, 1000]
  gamma: {{linspace: [0.03, 0.15, 7]}} # the learning rate

seeds: 64 # replicas of each point; more can be added later

dynamics: [sgd_chain, ode] # SGD in law, at a cost that does not depend on d, and its limit

times: {{linspace: [0, 20, 21]}} # when to record, in units of p d/gamma steps; the last is the horizon
thresholds: [0.1] # a run exits when the risk has fallen by this fraction
stop: exit # or `end`: go on to the horizon

analyses: [exit_times, optimal_learning_rate]
figures: [learning_rate_scan]
"""
"""The sweep to start from."""


def write_new(kind: str, file: Path | None = None) -> list[Path]:
    """Write a file of a kind, one of `FILES`; return what was written.

    Without `file`, `kind` is the path of a sweep to write. A function or a plugin comes with a sweep that uses it, a
    YAML file of the same name. InputError, before anything is written, for another kind, for files that exist, and for
    a name that the file cannot give to what it registers.
    """
    if file is None:
        if kind in FILES:
            expected = f"`sweeplib new {kind} NAME.{'yaml' if kind == 'sweep' else 'py'}`"
            raise InputError("no file to write", value=kind, expected=expected)
        return [write_starter(Path(kind))]
    if kind == "sweep":
        return [write_starter(file)]
    if kind not in FILES:
        raise InputError("not a kind of file to start from", value=kind, choices=FILES)
    if file.suffix != ".py":
        raise InputError("not the name of a plugin's file", value=str(file), expected="a new file, NAME.py")
    _check_name(kind, file)
    sweep = file.with_suffix(".yaml")
    names = {"name": file.stem, "file": file.name, "sweep": sweep.name}
    for path in (file, sweep):
        _check_new(path)
    templates = {path: Template(file_text(TEMPLATES / f"{kind}{path.suffix}.txt")) for path in (file, sweep)}
    return [_written(path, template.substitute(names)) for path, template in templates.items()]


def write_starter(file: Path) -> Path:
    """Write a commented sweep; InputError if the file exists, is not called *.yaml, or gives no name to a sweep."""
    from sweeplib.config.models import NAME, SAID_OF_NAMES

    if file.suffix not in (".yaml", ".yml"):
        raise InputError("not the name of a sweep's file", value=str(file), expected="a new file, NAME.yaml")
    if not re.fullmatch(NAME, file.stem):  # by default the name of the sweep
        raise InputError("not the name of a sweep's file", value=str(file), expected=f"{SAID_OF_NAMES}, and .yaml")
    _check_new(file)
    return _written(file, TEXT.format(file=file))


def _check_new(file: Path) -> None:
    """Raise InputError for a file that exists."""
    if file.exists():
        raise InputError("there is such a file", file=file, expected="a new file")


def _check_name(kind: str, file: Path) -> None:
    """Raise InputError if the stem of a file is no name for a plugin of a kind, or is one of sweeplib's."""
    from sweeplib.config.catalogue import registry_of

    if not file.stem.isidentifier() or keyword.iskeyword(file.stem) or parsed(file.stem) != file.stem:
        expected = "letters, digits and underscores, no word of Python or YAML: what it registers has this name"
        raise InputError("no name of a plugin", value=file.stem, expected=expected)
    if kind in WITH_TEMPLATE and file.stem in registry_of(WITH_TEMPLATE[kind]):
        raise InputError(f"{kind} {file.stem!r} is one of sweeplib's", value=str(file), expected="another name")


def _written(path: Path, text: str) -> Path:
    """Write a new file; InputError if that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as new:
            new.write(text)
    except OSError as error:
        expected = "a new file in a folder that you may write"
        raise InputError(f"cannot be written ({error.strerror})", file=path, expected=expected) from None
    return path
