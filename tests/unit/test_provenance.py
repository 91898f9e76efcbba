"""What a result says of the sweeplib that made it: a release, or a commit and whether files differ from it."""

import subprocess
from pathlib import Path

import pytest

from sweeplib import __version__
from sweeplib.engine.storage.records import provenance

GIT = ["git", "-c", "user.name=me", "-c", "user.email=me@lab.example", "-c", "commit.gpgsign=false"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a package that is asked for its version."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    (tmp_path / "__init__.py").write_text("")
    return tmp_path


def told() -> tuple[str, str | None]:
    """Return the version and the commit as a new process would say them."""
    provenance.version.cache_clear()
    provenance._checkout.cache_clear()
    try:
        return provenance.version(), provenance.git_commit()
    finally:
        provenance.version.cache_clear()
        provenance._checkout.cache_clear()


def git(package: Path, *arguments: str) -> str:
    done = subprocess.run([*GIT, "-C", str(package), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_clone_is_a_release_only_at_its_tag(package: Path) -> None:
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "v0.0.1"]):
        git(package, *arguments)
    commit = git(package, "rev-parse", "HEAD")
    assert told() == (f"{__version__}+{commit[:10]}", commit)  # the tag is another release's
    git(package, "tag", "-am", "released", f"v{__version__}")
    assert told() == (__version__, commit)
    (package / "__init__.py").write_text("edited = True\n")
    assert told() == (f"{__version__}+{commit[:10]}.dirty", f"{commit}-dirty")
    git(package, "commit", "-qam", "two")
    later = git(package, "rev-parse", "HEAD")
    assert told() == (f"{__version__}+{later[:10]}", later)


@pytest.mark.parametrize(
    ("text", "version", "commit"),
    [
        ("0123456789abcdef\nrelease", __version__, "0123456789abcdef"),
        ("0123456789abcdef", f"{__version__}+0123456789", "0123456789abcdef"),
        ("0123456789abcdef-dirty", f"{__version__}+0123456789.dirty", "0123456789abcdef-dirty"),
        (None, f"{__version__}+unknown", None),
    ],
)
def test_an_installed_package_says_what_it_was_built_from(
    package: Path, text: str | None, version: str, commit: str | None
) -> None:
    if text is not None:
        (package / "commit.txt").write_text(text)
    assert told() == (version, commit)


@pytest.mark.parametrize(
    ("machines", "is_like"),
    [
        ([], True),
        ([provenance.machine()], True),
        ([provenance.cpu_model()], False),
        (["a 486", provenance.machine()], False),
        (["a 486"], False),
        ([f"{provenance.cpu_model()} (numba 0.1)"], False),
    ],
)
def test_bits_are_those_of_a_processor_and_a_numba(machines: list[str], is_like: bool) -> None:
    """Segments of earlier versions name the processor alone; some went on from runs of other machines."""
    assert provenance.is_like_here(machines) == is_like


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        ("processor\t: 0\nmodel name\t: One\nprocessor\t: 1\nmodel name\t: Other", "One"),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c", "aarch64 0x41 0xd0c"),
        ("", "aarch64"),
    ],
)
def test_processors_of_arm_are_told_apart(lines: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "file_text", lambda path: lines)
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert provenance.cpu_model.__wrapped__() == model
