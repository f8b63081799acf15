"""Results that are known from elsewhere: a paper's example, small joins worked out by hand, and real streams."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import shedjoin as sj
from naive import Generator, Row, Twin, exact, interleave

DATA = Path(os.environ.get("SHEDJOIN_DATA", Path(__file__).parents[2] / "shared" / "data"))

Table = dict[str, Any]
Pairs = list[tuple[int, int]]
Left = tuple[int, int, int]  # stream, seq and tick of a row that was evicted

# ------------------------------------------------------------------------------------------------- das2003's example

R, S = [1, 1, 1, 3, 2], [2, 3, 1, 1, 3]
EXACT = [(0, 2), (1, 2), (1, 3), (2, 2), (2, 3), (3, 1), (3, 4)]
#: Keep r0 for s2, s1 for r3 and r2 for s3; r1 is never kept.
SCHEDULE = sj.Replay(left=[2, 1, 3, 4, 4], right=[0, 3, 2, 3, 4])


def pairs_of(run: Any) -> Pairs:
    left, right = run.pairs()
    return sorted(zip(left.tolist(), right.tolist(), strict=True))


@pytest.mark.small
@pytest.mark.parametrize("window", [sj.TimeWindow(3), sj.RowWindow(3)], ids=str)
def test_das2003_example_has_seven_results(window: sj.TimeWindow | sj.RowWindow) -> None:
    run = sj.simulate(sj.JoinSpec(window), {"key": R}, {"key": S})
    assert (run.matches, pairs_of(run)) == (7, EXACT)


@pytest.mark.small
def test_das2003_example_has_five_results_in_two_tuples() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(3), sj.Budget(tuples=2, allocation="fixed"), SCHEDULE)
    run = sj.simulate(spec, {"key": R}, {"key": S})
    assert run.matches == 5
    assert set(EXACT) - set(pairs_of(run)) == {(1, 2), (1, 3)}
    assert set(run.shed.why.tolist()) == {sj.WHY.index("schedule")}, "a schedule that fits leaves nothing to evict"
    assert run.peak_tuples <= 2


# ------------------------------------------------------------------------------------------------- worked out by hand


class Worked(NamedTuple):
    """One row a stream and instant: key or (key, importance). Who is evicted, and at which instant."""

    spec: sj.JoinSpec
    left: list[Any]
    right: list[Any]
    evicted: list[Left]
    pairs: Pairs


def table(rows: list[Any]) -> Table:
    return {
        "key": [row[0] if isinstance(row, tuple) else row for row in rows],
        "importance": [row[1] if isinstance(row, tuple) else 1.0 for row in rows],
    }


def rows_of(stream: int, columns: Table) -> list[Row]:
    keys, importances = columns["key"], columns["importance"]
    return [Row(stream, key, ts, value) for ts, (key, value) in enumerate(zip(keys, importances, strict=True))]


ONE_EACH = sj.Budget(tuples=2, allocation="fixed")
KNOWN = sj.Table({}, {1: 0.5, 2: 0.3})
WORKED = {
    # r1 (0.3) is lower than r0 (0.5); then r0 and r2 are equal and the older goes. Right: the older of the zeros.
    "prob": Worked(
        sj.JoinSpec(sj.TimeWindow(4), ONE_EACH, sj.Prob(KNOWN)),
        left=[1, 2, 1],
        right=[9, 9, 9],
        evicted=[(0, 1, 1), (1, 0, 1), (0, 0, 2), (1, 1, 2)],
        pairs=[],
    ),
    # Instant 1: r0 has 3 left, 3 x 0.5 = 1.5; r1 has 4, 4 x 0.3 = 1.2. Instant 2: r0 2 x 0.5 = 1.0; r2 1.2.
    "life": Worked(
        sj.JoinSpec(sj.TimeWindow(4), ONE_EACH, sj.Life(KNOWN)),
        left=[1, 2, 2],
        right=[9, 9, 9],
        evicted=[(0, 1, 1), (1, 0, 1), (0, 0, 2), (1, 1, 2)],
        pairs=[],
    ),
    # Importance alone: 1 and 2 are lower than 3; of two 3s the older goes. r2 meets s1 in the instant in which it goes.
    "simp": Worked(
        sj.JoinSpec(sj.TimeWindow(4), ONE_EACH, sj.Simp()),
        left=[(1, 3.0), (2, 1.0), (3, 2.0), (4, 3.0)],
        right=[(8, 1.0), (3, 2.0), (8, 1.0), (8, 1.0)],
        evicted=[(0, 1, 1), (1, 0, 1), (0, 2, 2), (1, 2, 2), (0, 0, 3), (1, 3, 3)],
        pairs=[(2, 1)],
    ),
    # Instant 1: r0 meets s1: 1 + 1 x 1 x 3/4 = 1.75 against r1 0.9; s1 has 1 + 1 = 2 against s0 1 x 0.5.
    # Instant 2: nothing meets: r0 0.875 falls below r2 0.9; s1 has 1.0 against s2 0.8.
    # Instant 3: r3 meets s1: 0.5 + 0.5 = 1 against r2 0.45; s1 has 1 + 1 x 1 x 2/4 = 1.5 against s3 1.
    "dgl": Worked(
        sj.JoinSpec(sj.TimeWindow(4), ONE_EACH, sj.Dgl(gain=1.0, loss=0.5)),
        left=[(1, 1.0), (2, 0.9), (2, 0.9), (1, 0.5)],
        right=[(9, 1.0), (1, 1.0), (9, 0.8), (9, 1.0)],
        evicted=[(0, 1, 1), (1, 0, 1), (0, 0, 2), (1, 2, 2), (0, 2, 3), (1, 3, 3)],
        pairs=[(0, 1), (3, 1)],
    ),
    # Rows find partners one step after they came. Instants 1 and 2: what has found one goes; nothing else is known to be worth
    # more. Instant 3: of rows one step old two of three have found one, 0.67; new ones can look forward to that in two steps,
    # 0.33: r3 goes. Instant 4: r2 is two steps old, of which little is known, 0.2; r4 has 0.33. The right finds none when stored.
    "age": Worked(
        sj.JoinSpec(sj.TimeWindow(4), ONE_EACH, sj.Age()),
        left=[1, 2, 3, 4, 5],
        right=[9, 1, 2, 9, 9],
        evicted=[(0, 0, 1), (1, 0, 1), (0, 1, 2), (1, 1, 2), (0, 3, 3), (1, 2, 3), (0, 2, 4), (1, 3, 4)],
        pairs=[(0, 1), (1, 2)],
    ),
    # Nothing is learned yet, so it is PROB by counts. Instant 1: key 2 has never come on the right, r1 goes; s0 and s1 are of
    # one key, the older goes. Instant 2: so it is with r0 and r2; key 9 has never come on the left, s2 goes.
    "prospect": Worked(
        sj.JoinSpec(sj.TimeWindow(4), ONE_EACH, sj.Prospect()),
        left=[1, 2, 1],
        right=[1, 1, 9],
        evicted=[(0, 1, 1), (1, 0, 1), (0, 0, 2), (1, 2, 2)],
        pairs=[(0, 0), (0, 1), (2, 1)],
    ),
    # The second rows are hardly ever there: whatever their lots are, w / u is lower.
    "sample": Worked(
        sj.JoinSpec(sj.TimeWindow(4), ONE_EACH, sj.Sample(sj.Table({8: 0.5, 9: 1e-12}, {1: 0.5, 2: 1e-12}))),
        left=[1, 2],
        right=[8, 9],
        evicted=[(0, 1, 1), (1, 1, 1)],
        pairs=[],
    ),
    # Two places for both: instant 0 fills them. Instant 1: r1 0.3, all of the right 0, s0 is the oldest, then s1.
    # Instant 2: s2 0 goes first, then of r0 0.5, r1 0.3 and r2 0.5 the 0.3.
    "prob, variable": Worked(
        sj.JoinSpec(sj.TimeWindow(4), sj.Budget(tuples=2, allocation="variable"), sj.Prob(KNOWN)),
        left=[1, 2, 1],
        right=[9, 9, 9],
        evicted=[(1, 0, 1), (1, 1, 1), (1, 2, 2), (0, 1, 2)],
        pairs=[],
    ),
}


@pytest.mark.small
@pytest.mark.parametrize("worked", WORKED.values(), ids=WORKED.keys())
def test_engine_does_as_worked_out_by_hand(worked: Worked) -> None:
    run = sj.simulate(worked.spec, table(worked.left), table(worked.right))
    shed = zip(run.shed.stream.tolist(), run.shed.seq.tolist(), run.shed.tick.tolist(), strict=True)
    assert (list(shed), pairs_of(run)) == (worked.evicted, worked.pairs)


@pytest.mark.small
@pytest.mark.parametrize("worked", WORKED.values(), ids=WORKED.keys())
def test_twin_does_as_worked_out_by_hand(worked: Worked) -> None:
    out = Twin(worked.spec).push(interleave(rows_of(0, table(worked.left)), rows_of(1, table(worked.right))))
    shed = [(record.stream, record.seq, record.tick) for record in out.shed]
    assert (shed, sorted(out.pairs)) == (worked.evicted, worked.pairs)


@pytest.mark.small
def test_twin_draws_from_the_published_generator() -> None:
    """splitmix64's first output for 0 is in its author's reference; xorshift64's first step from 1 is made by hand:
    1 ^ 1<<13 = 0x2001, ^ >>7 = 0x2041, ^ <<17 = 0x40822041."""
    generator = Generator(0)
    assert generator.state == 0xE220A8397B1DCDAF
    generator.state = 1
    assert generator.draw() == 0x40822041


# --------------------------------------------------------------------------------------------------------- real data


class Real(NamedTuple):
    """A join whose exact size is known. `folder` is None for what is generated here."""

    folder: str | None
    load: Callable[[], tuple[Table, Table]]
    window: sj.TimeWindow | sj.RowWindow
    size: int


def microseconds(times: pd.Series, since: str = "1970-01-01") -> NDArray[np.int64]:
    elapsed: NDArray[np.timedelta64] = times.to_numpy().astype("datetime64[us]") - np.datetime64(since, "us")
    return elapsed.astype(np.int64)


def of_year(folder: str, name: str, key: str, year: int) -> Table:
    """A year's rows, timed from the year's start so that years lie on one another."""
    frame = pd.read_parquet(DATA / folder / f"{name}_{year}.parquet", columns=["ts", key])
    return {"key": frame[key].to_numpy(dtype=np.int64), "ts": microseconds(frame["ts"], f"{year}-01-01")}


def flux() -> tuple[Table, Table]:
    left, right = (of_year("flux_tower_tharandt", "tharandt", "tair_d10", year) for year in (1996, 1998))
    return left, right


def flux_rows() -> tuple[Table, Table]:
    """One row a stream and instant, for as long as the shorter year lasts."""
    left, right = ({"key": side["key"][:16_527]} for side in flux())
    return left, right


def ships() -> tuple[Table, Table]:
    left, right = (of_year("ship_weather_ww2", "ships", "cell10", year) for year in (1942, 1943))
    return left, right


def numbered(left: pd.DataFrame, right: pd.DataFrame, key: str) -> tuple[Table, Table]:
    """Text keys as numbers, alike on both sides."""
    codes, _ = pd.factorize(pd.concat([left[key], right[key]]))
    sides = (codes[: len(left)], codes[len(left) :])
    first, second = (
        {"key": code.astype(np.int64), "ts": microseconds(side["ts"])}
        for code, side in zip(sides, (left, right), strict=True)
    )
    return first, second


def network() -> tuple[Table, Table]:
    folder = DATA / "network_wrccdc_2018"
    dns, ssl = (pd.read_parquet(folder / f"{name}.parquet", columns=["ts", "orig_h"]) for name in ("dns", "ssl"))
    return numbered(dns, ssl, "orig_h")


def flights() -> tuple[Table, Table]:
    frame = pd.read_parquet(DATA / "us_flights_2001q1" / "flights.parquet", columns=["ts", "origin", "destination"])
    ord_, dfw = (frame[frame["origin"] == hub].sort_values("ts", kind="stable") for hub in ("ORD", "DFW"))
    return numbered(ord_, dfw, "destination")


def generated() -> tuple[Table, Table]:
    """What stands in where the data is not there: skewed keys, bursts of rows of one instant."""
    random = Random(2003)
    sides = [
        {"key": [int(random.paretovariate(0.8)) for _ in range(300)], "ts": sorted(random.choices(range(150), k=300))}
        for _ in range(2)
    ]
    return sides[0], sides[1]


def by_brute_force(window: sj.TimeWindow | sj.RowWindow) -> int:
    sides = [
        [Row(stream, key, ts) for key, ts in zip(side["key"], side["ts"], strict=True)]
        for stream, side in enumerate(generated())
    ]
    return len(exact(sj.JoinSpec(window), [interleave(*sides)]))


SECOND, MINUTE, HOUR, DAY = 10**6, 60 * 10**6, 3600 * 10**6, 86_400 * 10**6
JOINS = {
    "flux, 1 day": Real("flux_tower_tharandt", flux, sj.TimeWindow(DAY), 7_686),
    "flux, 7 days": Real("flux_tower_tharandt", flux, sj.TimeWindow(7 * DAY), 57_657),
    "flux, 600 instants": Real("flux_tower_tharandt", flux_rows, sj.TimeWindow(600), 108_373),
    "flux, 1000 instants": Real("flux_tower_tharandt", flux_rows, sj.TimeWindow(1000), 171_131),
    "flux, 600 rows": Real("flux_tower_tharandt", flux_rows, sj.RowWindow(600), 108_373),
    "flux, 1000 rows": Real("flux_tower_tharandt", flux_rows, sj.RowWindow(1000), 171_131),
    "ships, 6 hours": Real("ship_weather_ww2", ships, sj.TimeWindow(6 * HOUR), 3_389_786),
    "network, 1 second": Real("network_wrccdc_2018", network, sj.TimeWindow(SECOND), 220_341),
    "flights, 30 minutes": Real("us_flights_2001q1", flights, sj.TimeWindow(30 * MINUTE), 41_182),
    "generated, time": Real(None, generated, sj.TimeWindow(12), by_brute_force(sj.TimeWindow(12))),
    "generated, rows": Real(None, generated, sj.RowWindow(25), by_brute_force(sj.RowWindow(25))),
}
#: What is not on this machine is left out; what is generated is always there.
PRESENT = {name: real for name, real in JOINS.items() if real.folder is None or (DATA / real.folder).is_dir()}


@pytest.mark.parametrize("real", PRESENT.values(), ids=PRESENT.keys())
def test_exact_size(real: Real) -> None:
    left, right = real.load()
    run = sj.simulate(sj.JoinSpec(real.window), left, right)
    assert run.matches == real.size
    assert len(run.shed) == 0


#: With nothing expiring, a ship's report walks past a whole year of its cell: correct, but a minute long.
TIMED = {
    name: real
    for name, real in PRESENT.items()
    if isinstance(real.window, sj.TimeWindow) and real.folder != "ship_weather_ww2"
}


@pytest.mark.parametrize("real", TIMED.values(), ids=TIMED.keys())
def test_exact_size_when_one_file_is_read_before_the_other(real: Real) -> None:
    left, right = real.load()
    engine = sj.JoinSpec(real.window).build()
    first, second = engine.push(right=right), engine.push(left=left)
    assert (len(first.left), len(second.left)) == (0, real.size)
