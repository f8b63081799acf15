"""The arguments `on`, `predicate` and `rates`: what rows are joined on, as far as it is known without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shedjoin.engine.graph import Graph, is_predicate, parse
from shedjoin.errors import SpecError
from shedjoin.meaning import Dials, why_not
from shedjoin.predicates import PREDICATES, Equal, Predicate
from shedjoin.spark.keys import key_pairs, per_stream


class On(NamedTuple):
    """What rows are joined on; one of these."""

    keys: tuple[tuple[str, ...], ...] = ()  # for each key column one name a stream
    graph: tuple[str, ...] | None = None  # predicates between streams
    predicate: Predicate | None = None

    def parsed(self, names: Sequence[str]) -> Graph | None:
        """The join graph, if this is one."""
        return None if self.graph is None else parse(self.graph, names)


def read_on(on: Any, predicate: Any, names: Sequence[str]) -> On:
    """What the arguments mean. Predicates that equate attributes of all streams throughout are keys.

    Examples
    --------
    >>> read_on(["a.x = b.x", "b.y < c.y"], None, "abc").graph
    ('a.x = b.x', 'b.y < c.y')
    >>> read_on(["a.x = b.z", "b.z = c.x"], None, "abc").keys
    (('x', 'z', 'x'),)
    """
    if on is None and predicate is None:
        raise SpecError("on is missing: name the key columns, or give a predicate")
    if on is not None and predicate is not None:
        raise SpecError(
            "on and predicate cannot both be given: join on the predicate and filter the result on equal keys, or join on the "
            "keys and filter by the predicate"
        )
    found = None if predicate is None else read_predicate(predicate)
    if isinstance(found, Equal):  # the same join, by the same names
        return On(keys=key_pairs(found.column, names))
    if found is not None:
        if (reason := why_not(Dials(streams=len(names), condition=found.name))) is not None:
            raise SpecError(f"{reason.argument}: {reason.sentence}")
        return On(predicate=found)
    texts = [on] if isinstance(on, str) else list(on) if isinstance(on, list | tuple) else []
    if not any(is_predicate(text) for text in texts):
        return On(keys=key_pairs(on, names))
    keys = _as_keys(parse(texts, names))
    return On(graph=tuple(texts)) if keys is None else On(keys=keys)


def _as_keys(graph: Graph) -> tuple[tuple[str, ...], ...] | None:
    """The same join on keys, one name a stream; None if it is none."""
    streams = range(len(graph.columns))
    common = all(len(part) == len(streams) for part in graph.parts)
    each = all(len(columns) == len(graph.parts) for columns in graph.columns)
    if graph.thetas or not common or not each:
        return None
    return tuple(tuple(graph.columns[stream][part[stream]] for stream in streams) for part in graph.parts)


def read_predicate(value: Any) -> Predicate:
    """A predicate, or a table of its name and settings."""
    if isinstance(value, Predicate):
        return value
    if not isinstance(value, Mapping) or value.get("name") not in PREDICATES:
        raise SpecError(
            "predicate must be a predicate such as Overlap('tags', at_least=2), or a table with a name, one of "
            f"{', '.join(PREDICATES)}, not {value!r}"
        )
    settings = {name: setting for name, setting in value.items() if name != "name"}
    if isinstance(settings.get("column"), Mapping):
        settings["column"] = per_stream("predicate.column", settings["column"])
    try:
        return PREDICATES[value["name"]](**settings)
    except TypeError as reason:
        raise SpecError(f"predicate {value['name']} does not take these settings: {reason}") from None
    except SpecError as reason:
        raise SpecError(f"predicate: {reason}") from None


def rates_of(rates: Any, names: Sequence[str]) -> tuple[float, ...]:
    """The relative arrival rates of the streams; equal by default."""
    given = per_stream("rates", 1.0 if rates is None else rates, names)
    for name, rate in zip(names, given, strict=True):
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1e18:
            raise SpecError(f"rates must be a number above 0 for each stream, not {rate!r} for {name}")
    return tuple(map(float, given))
