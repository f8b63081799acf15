"""`shedjoin check`: check the requirements of the extras."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("numpy", "numba", "pyarrow", "scipy", "pyspark", "pandas", "prometheus_client", "matplotlib")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the versions of Python, packages and Java. Fails if there is no Java that Spark can run on."
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Print one line a part; the last is Java, whose absence is an error."""
    del args
    print(f"Python {platform.python_version()}")
    for package in PACKAGES:
        print(f"{package} {_version(package)}")
    from shedjoin.spark.java import check_java  # late: the versions are printed even if Arrow does not load

    print(f"Java {check_java()}")
    return 0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed (optional)"
