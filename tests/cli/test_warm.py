"""`shedjoin warm` loads or compiles every kernel; a cache that others can write is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.engine.jit import check_private
from shedjoin.warm import KINDS


def test_warm_names_every_kind_and_the_directories(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm"]) == 0
    said = capsys.readouterr().out
    for kind in KINDS:
        assert f"{kind}: " in said
    assert "Kernels are in " in said


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    mine, open_to_all = tmp_path / "mine", tmp_path / "open"
    for folder, mode in ((mine, 0o755), (open_to_all, 0o777)):
        folder.mkdir()
        folder.chmod(mode)
    check_private(mine)
    check_private(mine / "not there yet")
    for folder in (open_to_all, open_to_all / "below"):
        with pytest.raises(sj.EnvironmentProblem, match=rf"other users can write to {open_to_all}, .* NUMBA_CACHE_DIR"):
            check_private(folder)
    open_to_all.chmod(0o1777)  # as /tmp: what is below is the user's own
    check_private(open_to_all / "below")


def test_no_kernel_is_loaded_from_such_a_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", "import shedjoin as sj; sj.JoinSpec(sj.TimeWindow(1)).build()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "other users can write to" in done.stderr
