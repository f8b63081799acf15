"""Is there a Java that Spark can run on? Asked before Spark starts, because Spark itself answers with a stack trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from shedjoin.errors import EnvironmentProblem

LEAST = 17
_ADVICE = f"Install a Java runtime of version {LEAST} or newer, or let JAVA_HOME point to one"


def check_java() -> int:
    """The major version of the Java that Spark will use.

    Raises
    ------
    EnvironmentProblem
        If there is none, it does not run, or it is older than `LEAST`.
    """
    java = _find_java()
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise EnvironmentProblem(f"Spark needs Java, but {java} does not run: {reason}. {_ADVICE}.") from None
    version = major_version(done.stderr + done.stdout)
    if done.returncode != 0 or version is None:
        said = (done.stderr + done.stdout).strip().splitlines()
        raise EnvironmentProblem(f"Spark needs Java, but `{java} -version` says {said[:1] or 'nothing'}. {_ADVICE}.")
    if version < LEAST:
        raise EnvironmentProblem(f"Spark needs Java {LEAST} or newer, but {java} is Java {version}. {_ADVICE}.")
    return version


def major_version(text: str) -> int | None:
    """The major version in what `java -version` prints.

    Examples
    --------
    >>> major_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> major_version('java version "1.8.0_402"')
    8
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    major, minor = int(found[1]), found[2]
    return int(minor) if major == 1 and minor is not None else major


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        in_home = shutil.which("java", path=str(Path(home, "bin")))
        if in_home is None:
            raise EnvironmentProblem(f"Spark needs Java, but JAVA_HOME is {home} and has no bin/java. {_ADVICE}.")
        return in_home
    on_path = shutil.which("java")
    if on_path is None:
        raise EnvironmentProblem(
            f"Spark needs Java, and there is none: JAVA_HOME is not set and PATH has no java. {_ADVICE}."
        )
    return on_path
