"""The check for Java: a sentence for each way in which it can be missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from shedjoin.errors import EnvironmentProblem
from shedjoin.spark.java import check_java, major_version


def fake_java(folder: Path, script: str) -> str:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return str(folder)


def test_a_new_enough_java_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path, """echo 'openjdk version "21.0.2" 2024-01-16' >&2""")
    monkeypatch.setenv("JAVA_HOME", home)
    assert check_java() == 21


def test_java_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path, """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{home}/bin")
    assert check_java() == 17


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("""echo 'java version "1.8.0_402"' >&2""", r"needs Java 17 or newer, but .* is Java 8\. Install a Java"),
        ("echo broken >&2; exit 3", r"-version` says \['broken'\]"),
    ],
)
def test_an_old_or_broken_java_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, script))
    with pytest.raises(EnvironmentProblem, match=words):
        check_java()


def test_no_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"JAVA_HOME is .* and has no bin/java"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"JAVA_HOME is not set and PATH has no java"):
        check_java()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "9-ea"', 9),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17"', 17),
        ("nonsense", None),
    ],
)
def test_versions_are_read(text: str, version: int | None) -> None:
    assert major_version(text) == version
