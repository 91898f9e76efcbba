"""Snakemake with a broken config: one line and exit status 2, before anything starts."""

import pytest

from tests.workflow.project import Project


@pytest.mark.rest
def test_a_broken_config_gets_one_line(project: Project) -> None:
    """The messages for each kind of mistake are tested where configs are loaded."""
    project.edit("desk/tiny.yaml", "square, scaled]", "sqare, scaled]")
    _is_refused(project, "sweep=tiny.yaml", "tiny.yaml", "square")


@pytest.mark.rest
def test_a_missing_config_gets_one_line(project: Project) -> None:
    _is_refused(project, "sweep=absent.yaml", "absent.yaml")


@pytest.mark.rest
def test_a_config_given_to_snakemake_itself_gets_one_line(project: Project) -> None:
    _is_refused(project, "grid=tiny.yaml", "--config sweep=FILE")


def _is_refused(project: Project, setting: str, *words: str) -> None:
    done = project.snakemake("--config", setting)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Using profile")]
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert all(word in lines[0] for word in words)
    assert not (project.desk / "results").exists()
