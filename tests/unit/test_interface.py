"""`sweeplib.plugins`: the names, where they are defined, and how digests follow them."""

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sweeplib
from sweeplib import plugins
from sweeplib.engine.base.registry import REGISTRIES
from sweeplib.engine.code.exports import homes
from sweeplib.engine.code.sources import all_imports
from sweeplib.networks import theory
from tests.plugged import nothing_left, written

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "plugins.md").read_text()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    with nothing_left():
        yield


@pytest.mark.parametrize("module", [plugins, sweeplib], ids=["sweeplib.plugins", "sweeplib"])
def test_names_are_those_that_type_checkers_see(module) -> None:
    """The statements for type checkers import the same names, from the same modules, as `__getattr__` does."""
    homes_by_name = homes() if module is plugins else sweeplib._HOMES
    text = Path(module.__file__).read_text().partition("if TYPE_CHECKING:")[2].partition("\n\n")[0]
    text = re.sub(r"\(([^)]*)\)", lambda names: " ".join(names[1].split()).rstrip(","), text)
    statements = re.findall(r"from (\S+) import (.*)", text.replace("open_dataset as open", "open"))
    seen = {name.strip(): home for home, names in statements for name in names.partition("#")[0].split(",")}
    assert seen == homes_by_name
    assert set(module.__all__) - {"__version__"} == set(homes_by_name)


@pytest.mark.parametrize("module", [plugins, sweeplib, theory], ids=["plugins", "sweeplib", "theory"])
def test_every_public_name_has_an_entry_in_the_reference(module) -> None:
    """docs/reference/api.md takes all names of the module, and their docstrings."""
    api = (ROOT / "docs" / "reference" / "api.md").read_text()
    assert f".. public:: {module.__name__}\n" in api
    things = {name: getattr(module, name) for name in module.__all__ if name != "__version__"}
    empty = [name for name, thing in things.items() if callable(thing) and not inspect.getdoc(thing)]
    assert empty == []


@pytest.mark.rest
@pytest.mark.parametrize("name", plugins.__all__)
def test_every_name_is_found_and_explained(name: str) -> None:
    assert getattr(plugins, name) is getattr(importlib.import_module(homes()[name]), name)
    table = PAGE.partition("## What to import\n")[2].partition("\n## ")[0]
    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", table), f"docs/how-to/plugins.md does not explain {name}"


def test_it_has_every_registry_and_the_examples_import_nothing_else() -> None:
    offered = [getattr(plugins, name) for name in plugins.__all__]
    for registry in REGISTRIES:
        assert any(registry is thing for thing in offered), registry.kind
    assert set(re.findall(r"^from (sweeplib\S*) import|^import (sweeplib\S*)", PAGE, re.MULTILINE)) == {
        ("sweeplib.plugins", "")
    }


def test_a_plugin_of_an_activation_loads_no_compiler() -> None:
    heavy = "numba", "xarray", "matplotlib", "distributed", "dask"
    code = f"""
import sys
from sweeplib.plugins import ACTIVATIONS, Activation
print(*(name for name in {heavy} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.rest
@pytest.mark.parametrize(
    ("statement", "found", "not_found"),
    [
        (
            "from sweeplib.plugins import ACTIVATIONS, Activation",
            "sweeplib.networks.maths.activations.activation",
            "sweeplib.networks.views",
        ),
        ("from sweeplib.plugins import View as Seen", "sweeplib.networks.views", "sweeplib.analysis"),
        ("from sweeplib.plugins import Start", None, "sweeplib.networks.views"),
        ("import sweeplib.plugins as own", "sweeplib.analysis", None),
        ("from sweeplib import plugins", "sweeplib.analysis", None),
        ("from sweeplib.plugins import *", "sweeplib.analysis", None),
    ],
)
def test_a_digest_follows_a_name_to_its_own_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, found: str | None, not_found: str | None
) -> None:
    """A statement that does not say which names are used counts as all of them."""
    written(tmp_path / "importing_names.py", statement + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    modules = all_imports(["importing_names"])
    assert found is None or found in modules
    assert not_found is None or not_found not in modules
    assert "sweeplib.plugins" not in modules
