"""`shedjoin warm`: compile all kernels in advance, so that no query waits for them."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from shedjoin.cli.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compile all kernels and keep them on disk, for images and init scripts. A machine needs it once for each version of "
        "shedjoin, and for each kind of processor. NUMBA_CACHE_DIR names a directory for them; by default they are kept beside "
        "the package, or in the user's own cache if that cannot be written."
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Compile, and say where the kernels are."""
    del args
    from shedjoin.warm import kept_in, warm

    console = Console()
    with progress(console, "compiling kernels (about a minute the first time)"):
        for kind, seconds in warm():
            console.print(f"{kind}: {seconds:.0f} s", highlight=False)
    folders = kept_in()
    size = sum(file.stat().st_size for folder in folders for file in Path(folder).glob("*.nb[ic]"))
    console.print(f"Kernels are in {', '.join(folders)} ({size / 1e6:.0f} MB).", highlight=False, soft_wrap=True)
    return 0
