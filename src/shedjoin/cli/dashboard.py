"""`shedjoin dashboard`: a page in the browser that shows running queries."""

from __future__ import annotations

import argparse
import threading
from contextlib import suppress
from pathlib import Path

from shedjoin.dashboard.server import Dashboard, is_loopback
from shedjoin.errors import InputError, SpecError

PORT = 8050


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve a page that shows running queries: recall, memory, rates, shed rows by reason. Ends with Ctrl-C."
    )
    parser.add_argument("outputs", nargs="+", type=Path, metavar="OUTPUT", help="the output directory of a query")
    parser.add_argument("--port", type=int, default=PORT, help=f"default: {PORT}; 0: any free port")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: only this machine can see the page)"
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Serve until the user has seen enough."""
    if not 0 <= args.port <= 65535:
        raise SpecError(f"--port must be from 0 to 65535, not {args.port}")
    for output in args.outputs:
        if output.exists() and not output.is_dir():
            raise InputError(f"{output} is a file: name the output directory of a query")
    with suppress(KeyboardInterrupt), Dashboard(args.outputs, port=args.port, host=args.host) as page:
        print(f"dashboard at {page.url} (Ctrl-C ends it)", flush=True)
        if not is_loopback(args.host):
            print("Everyone who can reach this address can see the page.", flush=True)
        threading.Event().wait()
    return 0
