"""The commit from which a wheel is built, as a file of the package: a result of an installed sweeplib names it.

The file's second line says `release` if the tag `v` with the version names the commit. And the addresses of the
project in its metadata, from the one in pyproject.toml.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Commit(BuildHookInterface):
    """Writes `sweeplib/commit.txt` into the wheel and the source distribution, if they are built in a checkout."""

    folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file; a source distribution has that of the checkout from which it was made."""
        if version == "editable" or not (Path(self.root) / ".git").exists():
            return
        try:
            commit = self._told("rev-parse", "HEAD")
            changed = self._told("status", "--porcelain", "sweeplib", "workflow", "Snakefile", "pyproject.toml")
            tags = self._told("tag", "--points-at", "HEAD").split()
        except (OSError, subprocess.CalledProcessError):
            return
        is_release = not changed and f"v{self.metadata.version}" in tags
        self.folder = tempfile.TemporaryDirectory()
        file = Path(self.folder.name) / "commit.txt"
        file.write_text(commit + "-dirty" * bool(changed) + "\nrelease" * is_release, encoding="utf-8")
        build_data["force_include"][str(file)] = "sweeplib/commit.txt"

    def _told(self, *arguments: str) -> str:
        command = ["git", "-C", self.root, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the file, which the artefact has."""
        if self.folder is not None:
            self.folder.cleanup()


class Addresses(MetadataHookInterface):
    """Adds the addresses of the project, if pyproject.toml has that of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the addresses."""
        repository = self.config["repository"]
        if repository:
            changes, issues = f"{repository}/blob/main/CHANGELOG.md", f"{repository}/issues"
            metadata["urls"] = {"Repository": repository, "Issues": issues, "Changelog": changes}
        else:
            metadata["urls"] = {}
