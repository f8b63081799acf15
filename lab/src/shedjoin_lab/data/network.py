"""network_wrccdc_2018: Zeek logs of 21 minutes with a real burst of one minute."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from shedjoin.workloads.workload import Workload, columns
from shedjoin_lab.data.columns import numbered, times
from shedjoin_lab.data.folder import read

DATA_SET = "network_wrccdc_2018"


def network_logs(folder: Path, logs: tuple[str, ...] = ("dns", "ssl")) -> Workload:
    """One stream a log (dns, ssl, weird, analyzer), key: the client's address, or null. `ts` in microseconds."""
    tables = [read(folder, DATA_SET, f"{log}.parquet", ["ts", "orig_h"]) for log in logs]
    return _workload(tables, [table["orig_h"] for table in tables])


def network_names(folder: Path) -> Workload:
    """Names looked up (dns, left) and connected to (ssl, right), in lower case; rows without a name have a null key."""
    dns = read(folder, DATA_SET, "dns.parquet", ["ts", "query"])
    ssl = read(folder, DATA_SET, "ssl.parquet", ["ts", "server_name"])
    return _workload([dns, ssl], [pc.utf8_lower(dns["query"]), pc.utf8_lower(ssl["server_name"])])


def _workload(tables: list[pa.Table], keys: list[pa.ChunkedArray]) -> Workload:
    stamps = [times(table["ts"], "us") for table in tables]
    first = min(int(ts[0]) for ts in stamps if ts.size)
    return Workload(tuple(columns(key, ts - first) for key, ts in zip(numbered(*keys), stamps, strict=True)))
