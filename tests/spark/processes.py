"""Parts of Spark as processes of their own, started from the installed package."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

#: Short queries over few rows: a compiler that is quick to compile, and no more than that. Its code would by default get so
#: little room that it is thrown away and made again. Spark's own classes need no proof that they are sound.
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def launch(folder: Path, name: str, *command: str) -> subprocess.Popen[bytes]:
    """A Spark class as a process group of its own."""
    launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONWARNINGS": "ignore",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,  # of masters and workers
        "SPARK_SUBMIT_OPTS": QUICK_JAVA,
    }
    log = (folder / f"{name}.log").open("wb")
    return subprocess.Popen([str(launcher), *command], env=environment, start_new_session=True, stdout=log, stderr=log)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(log: Path, words: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not re.search(words, log.read_text(errors="replace")):
        assert time.monotonic() < end, log.read_text(errors="replace")[-2000:]
        time.sleep(0.2)


def wait_for_port(port: int, process: subprocess.Popen[bytes], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while True:
        assert process.poll() is None, "it ended"
        assert time.monotonic() < end, f"nothing listens on port {port}"
        with socket.socket() as door:
            if door.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
