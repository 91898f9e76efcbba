"""Results that the members of a group share: each continues what another has begun."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sweeplib.engine.design.cluster import CLUSTERS
from tests.faults.finished import CONFIG
from tests.faults.forked import GROUP, Folder, RegisteredHere
from tests.plugged import nothing_left

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")


@pytest.fixture
def shared() -> Iterator[Path]:
    """Yield a folder that others may enter, unlike those of pytest."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "shared"


@pytest.mark.slow
def test_another_member_of_the_group_continues(shared: Path) -> None:
    """Journals were written for their owner alone, whatever the umask."""
    folder = Folder(shared)
    folder.path.mkdir()
    os.chown(folder.path, -1, GROUP)
    folder.path.chmod(0o2775)
    config = CONFIG.replace("in_process", "here")
    with nothing_left():
        CLUSTERS.register("here", RegisteredHere)
        (folder.path / "verified.yaml").write_text(config.replace("[exit_times]", "[]"))
        for command in ("run --no-progress", "finalise"):
            status, said = folder.told(command, user=1001)
            assert status == int(command.startswith("run")), said  # two cases fail
        (folder.path / "verified.yaml").write_text(config.replace("seeds: 6", "seeds: 7"))
        for command in ("run --no-progress", "publish", "analyse", "report", "retry", "verify", "prune"):
            status, said = folder.told(command, user=1002)
            assert status == 0 or (status == 1 and command.startswith(("run", "verify"))), (command, said)
    for path in folder.results.rglob("*"):
        assert path.stat().st_gid == GROUP
        assert path.stat().st_mode & 0o060 == 0o060, path
