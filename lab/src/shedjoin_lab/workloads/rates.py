"""n streams of given rates and numbers of distinct values (golab2003, section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SpecError
from shedjoin.workloads.importance import draw
from shedjoin.workloads.workload import Workload, at_least, columns, generators, whole

ARRIVALS = ("one", "fixed", "poisson")


def at_rates(
    instants: int,
    *,
    seed: int,
    rates: Sequence[float],
    distinct: Sequence[int],
    arrivals: str = "one",
    importance: str = "one",
) -> Workload:
    """Uniform keys 1 .. v of each stream, so that smaller value sets are contained in larger ones.

    Parameters
    ----------
    instants
        Time units to generate.
    rates
        One number a stream. ``arrivals="one"``: the paper's loop, one tuple per time unit in all, of stream i with
        probability rates[i] / sum. ``"fixed"``: the k-th tuple of stream i comes at floor(k / rates[i]). ``"poisson"``:
        a Poisson number of tuples with mean rates[i] in each time unit.
    distinct
        Number of distinct values v of each stream.

    Examples
    --------
    >>> [s["ts"].tolist() for s in at_rates(4, seed=0, rates=[1, 0.5], distinct=[50, 50], arrivals="fixed").streams]
    [[0, 1, 2, 3], [0, 2]]
    """
    whole("instants", instants, 0)
    if not rates or len(rates) != len(distinct):
        raise SpecError(f"rates and distinct must have one number a stream, not {len(rates)} and {len(distinct)}")
    if min(rates) <= 0:
        raise SpecError(f"rates must be above 0, not {min(rates)}")
    at_least("distinct", min(distinct), 1)
    arrival_rng, *rngs = generators(seed, 1 + 2 * len(rates))
    times = _times(instants, rates, arrivals, arrival_rng)
    return Workload(
        tuple(
            columns(keys.integers(1, size + 1, ts.size), ts, draw(importance, worth, ts.size))
            for ts, size, keys, worth in zip(times, distinct, rngs[::2], rngs[1::2], strict=True)
        ),
        probabilities=tuple(np.concatenate(([0.0], np.full(size, 1.0 / size))) for size in distinct),
    )


def _times(instants: int, rates: Sequence[float], arrivals: str, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    clock = np.arange(instants, dtype=np.int64)
    if arrivals == "one":
        share = np.asarray(rates, dtype=np.float64)
        stream = rng.choice(share.size, size=instants, p=share / share.sum())
        return [clock[stream == number] for number in range(share.size)]
    if arrivals == "fixed":
        return [np.floor(np.arange(int(np.ceil(instants * rate))) / rate).astype(np.int64) for rate in rates]
    if arrivals == "poisson":
        return [np.repeat(clock, rng.poisson(rate, instants)) for rate in rates]
    raise SpecError(f"arrivals must be one of {', '.join(ARRIVALS)}, not {arrivals!r}")
