"""The what-if curve beside the recall that is then measured with that memory: how often the limits cover it.

`python benchmarks/what_if.py` writes the table of docs/what-if.md. The curve was made with the first five workloads and seeds
below 100 in view (`--first`); the table has other seeds, and the other five workloads are held out (`--last`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from page_sections import check_sections, write_section
from rich.console import Console

import shedjoin as sj
from shedjoin.recall import LiveRecall
from shedjoin.what_if import FACTORS, Point, curve_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "what-if.md"
PARTS = (0.1, 0.25, 0.5)
KEYS, WINDOW = 20_000, 10_000
POLICIES: tuple[sj.Policy, ...] = (sj.Prospect(), sj.Prob(), sj.Rand(), sj.Auto())
#: The curve was made with the first of the workloads in view; the rest are held out.
CHOSEN_BY = 5


class Streams(NamedTuple):
    """Two streams and their window."""

    name: str
    left: dict[str, Any]
    right: dict[str, Any]


class Case(NamedTuple):
    """A run: what the miniatures found, and what was measured with each memory."""

    name: str
    part: float
    policy: str
    seed: int
    sums: dict[str, Any]
    measured: list[float]
    seconds: float
    more: float
    tuples: int
    live: list[float]


def streams(seed: int, rows: int) -> Iterator[Streams]:
    """The workloads, the first `CHOSEN_BY` of which the constants were chosen by."""
    rng = np.random.default_rng(seed)
    times = np.arange(rows)

    def zipf(skew: float, keys: int = KEYS, size: int = rows) -> Any:
        sums = np.cumsum(1.0 / np.arange(1, keys + 1) ** skew)
        return np.minimum(np.searchsorted(sums / sums[-1], rng.random(size)), keys - 1)

    def permuted(skew: float, size: int = rows) -> dict[str, Any]:
        return {"key": rng.permutation(KEYS)[zipf(skew, size=size)]}

    def clicks(delays: Any, share: float) -> tuple[dict[str, Any], dict[str, Any]]:
        ids = rng.permutation(10 * rows)[:rows]
        later = times + np.minimum(delays, WINDOW - 1).astype(np.int64)
        order = np.argsort(later, kind="stable")
        some = order[rng.random(rows) < share]
        return {"key": ids, "ts": times}, {"key": ids[some], "ts": later[some]}

    yield Streams("Zipf 1, same popular keys", {"key": zipf(1.0)}, {"key": zipf(1.0)})
    yield Streams("Zipf 1, different popular keys", permuted(1.0), permuted(1.0))
    yield Streams("Zipf 0.5", permuted(0.5), permuted(0.5))
    yield Streams("popular keys drift", *({"key": (zipf(1.0) + times // 20) % KEYS} for _ in range(2)))
    yield Streams("keys once, delays with a long tail", *clicks(rng.lognormal(6.5, 1.2, rows), 1.0))
    yield Streams("keys once, one in ten has a partner", *clicks(rng.lognormal(6.5, 1.2, rows), 0.1))
    few = permuted(0.8, rows // 10)
    yield Streams("one stream ten times the other", permuted(0.8), {**few, "ts": np.arange(rows // 10) * 10})
    yield Streams("all keys alike", {"key": rng.integers(0, KEYS, rows)}, {"key": rng.integers(0, KEYS, rows)})
    yield Streams("Zipf 1.3, slow drift", *({"key": (zipf(1.3) + times // 2000) % KEYS} for _ in range(2)))
    yield Streams("keys once, delays alike", *clicks(rng.integers(0, 8000, rows), 0.5))


def case(one: Streams, part: float, policy: sj.Policy, seed: int) -> Case | None:
    """The curve after all rows, and what other memories deliver of the same rows."""
    window = sj.TimeWindow(WINDOW)
    exact = sj.JoinSpec(window).engine(emit=False)
    batch = exact.batch({"left": one.left, "right": one.right})
    size = int(part * _exact_need(one))
    spec = sj.JoinSpec(window, sj.Budget(tuples=size), policy, what_if=sj.WhatIf(memory=4.0))
    engine = spec.build(seed)
    live = LiveRecall(spec, seed)
    begin = time.process_time()
    for start in range(0, len(batch), 20_000):
        rows = batch.take(slice(start, start + 20_000))
        live.follow(rows, engine.push(rows))
    seconds = time.process_time() - begin
    sums = engine.what_if_sums()
    if not sums["rows"]:
        return None
    assert engine.foreseeing is not None
    end = engine.foreseeing.due - engine.foreseeing.every  # type: ignore[attr-defined]
    now = engine.trying.now if engine.trying is not None else policy
    whole, _ = _found(None, None, batch, end - sums["rows"], end, 0)
    found = []
    for factor in FACTORS:
        results, _ = _found(sj.Budget(tuples=max(2, round(size * factor))), now, batch, end - sums["rows"], end, seed)
        found.append(results / max(whole, 1))
    _, alone = _found(sj.Budget(tuples=size), now, batch, 0, end, seed)
    recent = live.estimate(recent=True)
    return Case(
        one.name, part, type(policy).__name__, seed, sums, found, seconds, alone, engine.foreseeing.tuples,
        [recent.recall, recent.low, recent.high],
    )  # fmt: skip


def _exact_need(one: Streams) -> int:
    exact = sj.JoinSpec(sj.TimeWindow(WINDOW)).engine(emit=False)
    exact.push(left=one.left, right=one.right)
    return exact.counters["peak_tuples"]


def _found(
    budget: sj.Budget | None, policy: Any, batch: sj.Batch, start: int, end: int, seed: int
) -> tuple[int, float]:
    """Results of the rows from `start` to before `end`, and the CPU time."""
    engine = sj.JoinSpec(sj.TimeWindow(WINDOW), budget, policy).engine(seed, emit=False)
    begin = time.process_time()
    engine.push(batch.take(slice(0, start)))
    before = engine.counters["results"]
    engine.push(batch.take(slice(start, end)))
    return engine.counters["results"] - before, time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=150_000, help="rows a stream (default 150,000)")
    parser.add_argument("--seeds", default="100", help="seeds, such as 100,101 (default: 100)")
    parser.add_argument("--policies", type=int, default=len(POLICIES), help="how many policies (default: all)")
    parser.add_argument("--first", action="store_true", help="only the workloads that constants were chosen by")
    parser.add_argument("--last", action="store_true", help="only the workloads that are held out")
    parser.add_argument("--from-dump", type=Path, help="write the table of these runs, and run nothing")
    parser.add_argument("--dump", type=Path, help="also write all runs here, a line each")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the table goes")
    args = parser.parse_args()
    part = " --first" if args.first else " --last" if args.last else ""
    command = f"python benchmarks/what_if.py{part} --rows {args.rows} --seeds {args.seeds}"
    if args.from_dump is not None:
        known = [Case(**json.loads(text)) for text in args.from_dump.read_text().splitlines()]
        write_section(args.page, "what if", "\n".join(page(known, command)))
        return
    if args.dump is None:
        check_sections(args.page, ["what if"])
    found: list[Case] = []
    for seed in map(int, args.seeds.split(",")):
        for number, one in enumerate(streams(seed, args.rows)):
            if (args.first and number >= CHOSEN_BY) or (args.last and number < CHOSEN_BY):
                continue
            for part in PARTS:
                # Each with its own policy, in turn, so that all meet.
                policy = POLICIES[(number + PARTS.index(part) + seed) % args.policies]
                if (made := case(one, part, policy, seed)) is not None:
                    found.append(made)
                    Console().print(*line(made), soft_wrap=True)
                    if args.dump is not None:
                        with args.dump.open("a") as file:
                            file.write(json.dumps(made._asdict()) + "\n")
    if args.dump is None:
        write_section(args.page, "what if", "\n".join(page(found, command)))


def page(found: list[Case], command: str) -> list[str]:
    head = (
        f"Written by `{command}`. Memories of 10, 25 and 50% of what the exact join needs, a window of {WINDOW:,}, policies "
        f"{', '.join(dict.fromkeys(one.policy for one in found))} in turn. Width is that of the limits, error how far the "
        "curve is off:"
    )
    return [head, "", *table(found)]


def line(one: Case) -> list[str]:
    each = [
        f"{truth:.3f} in {point.low:.3f}..{point.recall:.3f}..{point.high:.3f}{'' if covers(point, truth) else '!'}"
        for point, truth in zip(recalls(one).values(), one.measured, strict=True)
    ]
    return [one.name, f"{one.part:.0%}", one.policy, *each]


def recalls(one: Case) -> dict[float, Point]:
    curve = curve_of([one.sums])
    assert curve is not None
    return curve.recall


def covers(point: Point, truth: float) -> bool:
    """Whether the limits cover what was measured, to a thousandth."""
    return point.low - 1e-3 <= truth <= point.high + 1e-3


def table(found: list[Case]) -> list[str]:
    """How often the limits cover, how wide they are, and how far the curve is off: by workload, and by memory."""
    lines = [
        "| | covered | mean width | mean error |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name in dict.fromkeys(one.name for one in found):
        lines.append(f"| {name} | {figures([one for one in found if one.name == name], FACTORS)} |")
    for factor in FACTORS:
        lines.append(f"| all, {factor:g} x the memory | {figures(found, (factor,))} |")
    whole = sum(all(covers(*pair) for pair in pairs(one, FACTORS)) for one in found)
    return [
        *lines,
        f"| all | {figures(found, FACTORS)} |",
        "",
        f"All five points were covered in {whole} of {len(found)} runs.",
    ]


def pairs(one: Case, factors: Sequence[float]) -> list[tuple[Point, float]]:
    measured = dict(zip(FACTORS, one.measured, strict=True))
    curve = recalls(one)
    return [(curve[factor], measured[factor]) for factor in factors]


def figures(some: list[Case], factors: Sequence[float]) -> str:
    known = [pair for one in some for pair in pairs(one, factors)]
    covered = sum(covers(point, truth) for point, truth in known)
    width = np.mean([point.high - point.low for point, _ in known])
    error = np.mean([abs(point.recall - truth) for point, truth in known])
    return f"{covered} of {len(known)} | {width:.3f} | {error:.3f}"


if __name__ == "__main__":
    main()
