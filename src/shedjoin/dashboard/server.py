"""The web server of the dashboard: a few plain files, and what queries say as JSON."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from shedjoin.dashboard.query import Query
from shedjoin.errors import EnvironmentProblem

#: Seconds between two looks at the metrics.
LOOK = 0.5
PAGE = Path(__file__).parent / "page"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/uPlot.js": ("uPlot.iife.min.js", "text/javascript; charset=utf-8"),
    "/uPlot.css": ("uPlot.min.css", "text/css; charset=utf-8"),
}
#: The page takes nothing from elsewhere, and is not shown inside of other pages.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Dashboard:
    """Serves a page about output directories until it is closed; a context manager.

    Parameters
    ----------
    outputs
        The output directories of `start`.
    port
        0: any free one; `url` says which.
    host
        The address to listen at. The default can be reached from this machine alone.
    """

    def __init__(self, outputs: Sequence[str | Path], *, port: int = 0, host: str = "127.0.0.1") -> None:
        self.queries = [Query(output) for output in outputs]
        kind = _Server6 if ":" in host else _Server
        try:
            self._server = kind((host, port), partial(_Handler, self.queries, is_loopback(host)))
        except (OSError, OverflowError) as reason:
            raise EnvironmentProblem(
                f"the dashboard cannot listen at {host}:{port}: {reason}. Name another with --port"
            ) from None
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._server.serve_forever, self._follow)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://[{host!s}]:{port}/" if ":" in str(host) else f"http://{host!s}:{port}/"

    def _follow(self) -> None:
        """Read what queries write; queries take turns."""
        while not self._ended.is_set():
            more = [query.follow() for query in self.queries]
            if not any(more):
                self._ended.wait(LOOK)

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    """Answers GET."""

    def __init__(self, queries: Sequence[Query], local: bool, *args: object) -> None:
        self._queries, self._local = queries, local
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        name = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        if self._local and not is_loopback(name):  # a page from elsewhere that has a name point here
            return self._send(403, "text/plain; charset=utf-8", b"this page is for this machine alone\n")
        asked = urlsplit(self.path)
        if asked.path in FILES:
            file, kind = FILES[asked.path]
            return self._send(200, kind, (PAGE / file).read_bytes())
        if asked.path == "/queries":
            return self._json([query.card() for query in self._queries])
        try:
            number, view, epoch, start = _asked(asked.path, asked.query)
            query = self._queries[number]
        except (ValueError, IndexError):
            return self._send(404, "text/plain; charset=utf-8", b"there is no such page\n")
        return self._json(query.page(view, epoch, start))

    def _json(self, data: object) -> None:
        self._send(200, "application/json", json.dumps(data, allow_nan=False).encode())

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):  # the reader has gone
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Say nothing: the terminal belongs to the user."""


def _asked(path: str, query: str) -> tuple[int, str, int, int]:
    """The number of a query, the series, and which points the reader has; ValueError if that is not what is asked for.

    Examples
    --------
    >>> _asked("/query/0", "view=recent&epoch=2&from=17")
    (0, 'recent', 2, 17)
    """
    prefix, _, number = path.rpartition("/")
    given = {name: values[-1] for name, values in parse_qs(query).items()}
    view = given.get("view", "whole")
    if prefix != "/query" or not number.isdecimal() or view not in ("whole", "recent"):
        raise ValueError(path)
    return int(number), view, int(given.get("epoch", -1)), int(given.get("from", 0))
