"""Auto beside the single policies: how far below the best of them, chosen afterwards, and what trying costs.

`python benchmarks/auto.py --data FOLDER` writes the tables of docs/policies.md. FOLDER has the real streams
(docs/data.md); without it the generated ones are run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from page_sections import check_sections, write_section
from rich.console import Console

import shedjoin as sj
from shedjoin_lab.papers.prospect.auto import OF_ALL, SINGLES
from shedjoin_lab.papers.prospect.streams import REAL, SYNTHETIC

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "policies.md"
SECTIONS = ("long", "short", "speed")
PARTS = (0.1, 0.25, 0.5)
KEYS, WINDOW = 20_000, 10_000
#: The lab's streams are short, and their memories hold 80 to 800 rows: there, miniatures may have all rows.
AUTO, AUTO_OF_ALL = sj.Auto(), OF_ALL


class Input(NamedTuple):
    """Two streams, and from when on results count."""

    name: str
    left: Any
    right: Any
    window: int
    warmup: int
    is_short: bool


class Outcome(NamedTuple):
    """Results as a share of what is attainable: OPT's for short streams, the exact join's for long ones."""

    name: str
    part: float
    singles: dict[str, float]
    auto: float
    changes: int

    @property
    def best(self) -> str:
        return max(self.singles, key=lambda name: self.singles[name])

    @property
    def behind(self) -> float:
        """How far Auto is below the best single policy, as a part of that."""
        return 1.0 - self.auto / self.singles[self.best]


def long_inputs(rows: int) -> Iterator[Input]:
    """Streams that are long against their windows."""
    rng = np.random.default_rng(1)

    def zipf(skew: float) -> np.ndarray[Any, np.dtype[np.int64]]:
        sums = np.cumsum(1.0 / np.arange(1, KEYS + 1) ** skew)
        return np.minimum(np.searchsorted(sums / sums[-1], rng.random(rows)), KEYS - 1)

    def permuted(skew: float) -> Any:
        return {"key": rng.permutation(KEYS)[zipf(skew)]}

    def drifting() -> Any:
        return {"key": (zipf(1.0) + np.arange(rows) // 20) % KEYS}

    ids, times = rng.permutation(10 * rows)[:rows], np.arange(rows)
    later = times + np.minimum(rng.lognormal(6.5, 1.2, rows), WINDOW - 1).astype(np.int64)
    order = np.argsort(later, kind="stable")
    clicked = order[rng.random(rows) < 0.1]
    every, some = ({"key": ids[one], "ts": later[one]} for one in (order, clicked))
    made: dict[str, tuple[Any, Any]] = {
        "Zipf 1, same popular keys": ({"key": zipf(1.0)}, {"key": zipf(1.0)}),
        "Zipf 1, different popular keys": (permuted(1.0), permuted(1.0)),
        "Zipf 0.5, different popular keys": (permuted(0.5), permuted(0.5)),
        "popular keys drift": (drifting(), drifting()),
        "every key once, long tail of delays": ({"key": ids, "ts": times}, every),
        "the same, one in ten has a partner": ({"key": ids, "ts": times}, some),
    }
    for name, (left, right) in made.items():
        yield Input(name, left, right, WINDOW, 2 * WINDOW, is_short=False)


def short_inputs(data: Path | None) -> Iterator[Input]:
    """The lab's workloads."""
    stages = {name: make(0) for name, make in SYNTHETIC.items()}
    stages |= {} if data is None else {name: make(data) for name, make in REAL.items()}
    for name, stage in stages.items():
        left, right = stage.workload.streams[:2]
        yield Input(name, left, right, stage.window, 2 * stage.window, is_short=True)


def outcomes(one: Input) -> Iterator[Outcome]:
    window = sj.TimeWindow(one.window)
    exact = sj.simulate(sj.JoinSpec(window), one.left, one.right, warmup=one.warmup)
    for part in PARTS:
        budget = sj.Budget(tuples=max(4, int(part * exact.peak_tuples)))
        whole = exact.matches
        if one.is_short:
            whole = sj.optimum(sj.JoinSpec(window, budget), one.left, one.right, warmup=one.warmup).matches

        def found(policy: sj.Policy, budget: sj.Budget = budget, whole: int = whole) -> tuple[float, sj.Engine]:
            engine = sj.JoinSpec(window, budget, policy).engine(warmup=one.warmup, emit=False)
            engine.push(left=one.left, right=one.right)
            return engine.counters["matches"] / whole, engine

        singles = {name: found(policy)[0] for name, policy in SINGLES.items()}
        auto, engine = found(AUTO_OF_ALL if one.is_short else AUTO)
        assert engine.trying is not None
        yield Outcome(one.name, part, singles, auto, len(engine.trying.changes))


def speeds(memory: int, rows: int, rounds: int) -> tuple[float, float, int]:
    """Million tuples a second of Prospect and of Auto, the best of several rounds in turn; tuples that miniatures held."""
    rng = np.random.default_rng(7)
    sums = np.cumsum(1.0 / np.arange(1, 10 * KEYS + 1))
    left, right = (
        {
            "key": rng.permutation(10 * KEYS)[
                np.minimum(np.searchsorted(sums / sums[-1], rng.random(rows)), 10 * KEYS - 1)
            ]
        }
        for _ in range(2)
    )
    best, held = [float("inf")] * 2, 0
    for _ in range(rounds):
        for place, policy in enumerate((sj.Prospect(), AUTO)):
            spec = sj.JoinSpec(sj.TimeWindow(memory), sj.Budget(tuples=memory), policy)
            engine = spec.engine(emit=False)
            batch = engine.batch({"left": left, "right": right})
            begin = time.process_time()
            engine.push(batch)
            best[place] = min(best[place], time.process_time() - begin)
            held = engine.trying.tuples if engine.trying is not None else held  # type: ignore[attr-defined]
    return 2 * rows / best[0] / 1e6, 2 * rows / best[1] / 1e6, held


def table(found: list[Outcome], of: str) -> list[str]:
    lines = [
        f"| workload | memory | best single | {of} | PROSPECT | RAND | AUTO | behind the best | changes |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one in found:
        row = (one.singles[one.best], one.singles["PROSPECT"], one.singles["RAND"], one.auto)
        figures = " | ".join(f"{value:.3f}" for value in row)
        lines.append(f"| {one.name} | {one.part:.0%} | {one.best} | {figures} | {one.behind:.1%} | {one.changes} |")
    return lines


def summary(found: list[Outcome]) -> str:
    near = sum(one.behind <= 0.02 for one in found)
    mean, prospect, best = (
        np.mean([value(one) for one in found])
        for value in (lambda one: one.auto, lambda one: one.singles["PROSPECT"], lambda one: one.singles[one.best])
    )
    return (
        f"Mean: Auto {mean:.3f}, Prospect {prospect:.3f}, the best single one chosen afterwards {best:.3f}. Auto is within "
        f"2% of that in {near} of {len(found)} settings, and at most {max(one.behind for one in found):.1%} behind."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the real streams")
    parser.add_argument("--rows", type=int, default=200_000, help="rows a stream of the long inputs (default 200,000)")
    parser.add_argument("--memory", type=int, default=100_000, help="tuples, where speed is measured")
    parser.add_argument("--only", choices=SECTIONS, help="one section (default: all)")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the tables go")
    args = parser.parse_args()
    wanted = [args.only] if args.only else list(SECTIONS)
    check_sections(args.page, [f"auto: {section}" for section in wanted])
    made = {"long": lambda: long_section(args.rows), "short": lambda: short_section(args.data)}
    made["speed"] = lambda: speed_section(args.memory)
    for section in wanted:
        write_section(args.page, f"auto: {section}", "\n".join(made[section]()))


def told(inputs: Iterator[Input]) -> Iterator[Outcome]:
    for one in inputs:
        for found in outcomes(one):
            Console().print(found.name, f"{found.part:.0%} {found.best} {found.auto:.3f} {found.behind:.1%}")
            yield found


def long_section(rows: int) -> list[str]:
    found = list(told(long_inputs(rows)))
    head = (
        f"Written by `python benchmarks/auto.py`. Streams of {rows:,} rows, window {WINDOW:,}; recall, with memory as a part of "
        "what the exact join needs:"
    )
    return [head, "", *table(found, "its recall"), "", summary(found)]


def short_section(data: Path | None) -> list[str]:
    found = list(told(short_inputs(data)))
    head = (
        "The lab's workloads, as a share of OPT. They are short and their memories hold 80 to 800 rows, so `Auto()` tries "
        "nothing there. Here it is `Auto(memory=8.0)`, whose miniatures have all rows:"
    )
    return [head, "", *table(found, "of OPT"), "", summary(found)]


def speed_section(memory: int) -> list[str]:
    alone, trying, held = speeds(memory, 4 * memory, rounds=3)
    return [
        f"Speed with {memory:,} tuples, CPU time, the best of 3: Prospect {alone:.2f} M tuples/s, Auto {trying:.2f} "
        f"({trying / alone - 1:+.0%}). Miniatures held {held:,} tuples ({held / memory:.1%})."
    ]


if __name__ == "__main__":
    main()
