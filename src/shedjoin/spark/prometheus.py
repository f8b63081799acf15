"""A Prometheus endpoint for a running query: its metric rows as text, over HTTP, on the loopback unless told otherwise.

The standard library's server and some lines of text do: prometheus_client would bring a registry with locks and types of
its own for numbers that are here already as rows. The tests read the text with its parser.
"""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shedjoin.errors import EnvironmentProblem, InputError
from shedjoin.recall.estimate import RecallEstimate
from shedjoin.spark.metrics import Row, latest, recall_of, streams_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "shedjoin_"
#: So many of the most profitable basic windows are told.
BEST = 3
_SAMPLE = re.compile(r"(\w+)(?:\{([^}]*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

#: name of the metric: (what it is, labels beside the shard, column); without any of these, one a stream
_Families = dict[str, tuple[str, tuple[tuple[dict[str, str], str], ...]]]
#: what is added up over batches
_COUNTERS: _Families = {
    "rows": ("Input rows.", ()),
    "null_keys": ("Input rows with a null key, which match nothing.", (({}, "nulls"),)),
    "results": ("Results delivered.", (({}, "results"),)),
    "shed": (
        "Rows shed, and why.",
        (({"why": "evicted"}, "evicted"), ({"why": "late"}, "late"), ({"why": "schedule"}, "scheduled")),
    ),
    "expired": ("Rows that left their window.", (({}, "expired"),)),
    "state_bytes": ("Bytes written to the state store.", (({}, "state_bytes"),)),
    "seconds": ("Time spent in the join.", (({}, "seconds"),)),
    "restored": ("Batches in which the engine was rebuilt from the state store.", (({}, "restored"),)),
    "partial_probes": ("Rows that a shard compared with a part of the window only.", (({}, "partial"),)),
    "compared": ("Stored tuples, or entries of lists, that probes looked at.", (({}, "compared"),)),
}
#: what is so now
_GAUGES: _Families = {
    "batch": ("The last micro-batch.", (({}, "batch"),)),
    "resident_tuples": ("Stored tuples.", ()),
    "resident_bytes": ("Stored bytes.", ()),
    "clock": ("The largest event time of a stream, in microseconds or the unit of whole-number times.", ()),
}
_BY_STREAM = {"rows": "rows", "resident_tuples": "resident", "resident_bytes": "bytes", "clock": "clock"}


def _columns(families: _Families, row: Row) -> Iterator[tuple[str, dict[str, str], str]]:
    """The metrics, labels and columns of a row. Not every join has all of them."""
    for name, (_, parts) in families.items():
        for labels, column in parts:
            if column in row:
                yield name, labels, column
        if not parts:
            yield from ((name, {"side": side}, f"{_BY_STREAM[name]}_{side}") for side in streams_of(row))


class Board:
    """The totals of a query since this process has watched it, kept from its metric rows."""

    def __init__(self, *, query: str = "", budget: Mapping[str, int] | None = None) -> None:
        self._query = query
        self._budget = dict(budget or {})
        self._totals: dict[tuple[int, str], float] = {}
        self._last: dict[int, Row] = {}
        self._lock = threading.Lock()

    def add(self, rows: Iterable[Row]) -> None:
        """Count the rows of a micro-batch. One that is repeated after a failure counts once."""
        with self._lock:
            for row in rows:
                shard, before = row["shard"], self._last.get(row["shard"])
                if before is not None and before["batch"] >= row["batch"]:
                    continue
                self._last[shard] = row
                for _, _, column in _columns(_COUNTERS, row):
                    self._totals[shard, column] = self._totals.get((shard, column), 0) + row[column]

    def text(self) -> str:
        """Everything in Prometheus' text format."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        rows = latest(self._last.values())
        for name, (what, parts) in _COUNTERS.items():
            yield from _family(f"{name}_total", "counter", what)
            for row in rows:
                for _, labels, column in _columns({name: (what, parts)}, row):
                    yield self._sample(f"{name}_total", self._totals[row["shard"], column], row["shard"], labels)
        for name, (what, parts) in _GAUGES.items():
            yield from _family(name, "gauge", what)
            for row in rows:
                for _, labels, column in _columns({name: (what, parts)}, row):
                    if row[column] is not None:
                        yield self._sample(name, row[column], row["shard"], labels)
        yield from self._selective([row for row in rows if row.get("ranking_left") is not None])
        if rows:
            yield from _family("last_batch_timestamp_seconds", "gauge", "When the last micro-batch ended.")
            newest = max(row["at"] for row in rows)
            yield self._sample("last_batch_timestamp_seconds", newest.timestamp(), None, {})
        for unit, amount in self._budget.items():
            yield from _family(f"budget_{unit}", "gauge", f"The budget of all shards together, in {unit}.")
            yield self._sample(f"budget_{unit}", amount, None, {})
        for name, estimate in (("recall", recall_of(rows)), ("recent_recall", recall_of(rows, recent=True))):
            if estimate is not None:
                yield from self._recall(name, estimate)

    def _selective(self, rows: list[Row]) -> Iterator[str]:
        """What joins with a deadline compare, and where they look first."""
        if not rows:
            return
        yield from _family("fraction", "gauge", "r: which part of the windows rows are compared with.")
        for row in rows:
            yield self._sample("fraction", row["fraction"], row["shard"], {})
        yield from _family("window_fraction", "gauge", "r_1 and r_2: which part of each window is looked at.")
        for row in rows:
            for side in streams_of(row):
                yield self._sample("window_fraction", row[f"fraction_{side}"], row["shard"], {"side": side})
        yield from _family("basic_window_age", "gauge", "The most profitable basic windows: their ages, by rank.")
        for row in rows:
            for side in streams_of(row):
                for rank, age in enumerate(row[f"ranking_{side}"][:BEST], 1):
                    yield self._sample("basic_window_age", age, row["shard"], {"side": side, "rank": str(rank)})

    def _recall(self, name: str, estimate: RecallEstimate) -> Iterator[str]:
        when = "in recent micro-batches" if name == "recent_recall" else "since the beginning"
        for weight, what, values in (
            ("", "results", (estimate.recall, estimate.low, estimate.high)),
            ("importance_", "importance", (estimate.importance, estimate.importance_low, estimate.importance_high)),
        ):
            yield from _family(weight + name, "gauge", f"The share of {what} delivered {when}, with its limits.")
            for bound, value in zip(("estimate", "low", "high"), values, strict=True):
                yield self._sample(weight + name, value, None, {"bound": bound})

    def _sample(self, name: str, value: float, shard: int | None, labels: Mapping[str, str]) -> str:
        all_labels: dict[str, str] = {"query": self._query} if self._query else {}
        if shard is not None:
            all_labels["shard"] = str(shard)
        all_labels |= labels
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in all_labels.items())
        number = repr(float(value)) if isinstance(value, float) else str(int(value))
        return f"{PREFIX}{name}{{{inside}}} {number}" if inside else f"{PREFIX}{name} {number}"


def _family(name: str, kind: str, what: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {what}"
    yield f"# TYPE {PREFIX}{name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Endpoint:
    """Serves a board at ``/metrics`` until it is closed; a context manager.

    Parameters
    ----------
    board
        What to serve.
    port
        0: any free one; `url` says which.
    host
        The address to listen at. The default can be reached from this machine alone.
    """

    def __init__(self, board: Board, *, port: int = 0, host: str = "127.0.0.1") -> None:
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(board))
        except (OSError, OverflowError) as reason:
            raise EnvironmentProblem(f"the metrics endpoint cannot listen at {host}:{port}: {reason}") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="shedjoin metrics", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _handler(board: Board) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] not in ("/metrics", "/"):
                self.send_error(404, "there is only /metrics")
                return
            body = board.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """A scrape every few seconds is no news."""

    return Handler


Samples = dict[str, list[tuple[dict[str, str], float]]]


def read_endpoint(url: str, *, timeout: float = 5.0) -> Samples:
    """The samples of an endpoint, by their names without the prefix."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return parse(answer.read().decode())
    except (urllib.error.URLError, OSError, ValueError) as reason:
        raise InputError(f"the metrics at {url} cannot be read: {getattr(reason, 'reason', reason)}") from None


def parse(text: str) -> Samples:
    """The samples of a text that `Board.text` wrote."""
    found: Samples = {}
    for line in text.splitlines():
        sample = _SAMPLE.fullmatch(line)
        if sample is None or not sample[1].startswith(PREFIX):
            continue
        labels = {name: _plain(value) for name, value in _LABEL.findall(sample[2] or "")}
        found.setdefault(sample[1].removeprefix(PREFIX), []).append((labels, float(sample[3])))
    return found


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)
