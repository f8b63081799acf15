"""The arguments of a join, written once: `shed_join`, `start` and the table [join] of job files take them from here.

To add an argument, add it to `JoinArgs` and use it where the join is planned. Signatures, docstrings, checks of names and job
files follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, cleandoc, signature
from textwrap import fill
from typing import Annotated, Any, Required, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from shedjoin.cpu.settings import Selective
from shedjoin.engine.reordering import Reordering
from shedjoin.errors import SpecError
from shedjoin.parse import nearest
from shedjoin.policies import Policy
from shedjoin.predicates import Predicate
from shedjoin.what_if import WhatIf

#: The default of `lateness`: the delay of the inputs' watermarks.
WATERMARK = "watermark"
INDENT = "    "
#: A column of each stream: one name for all, one each, or a dict by the streams' names.
Columns = str | Sequence[str] | Mapping[str, str]
Function = TypeVar("Function", bound=Callable[..., Any])


class JoinArgs(TypedDict, total=False):
    """The arguments of a join as the user passes them: type, meaning, and default (None if omitted).

    A TypedDict, because type checkers read the arguments of `**args` from one (PEP 692).
    """

    on: Annotated[
        Columns | list[Columns] | None,
        "The key: a column name, a pair (left name, right name), a dict by the streams' names, or a list of these. Or a join "
        "graph: predicates between streams, such as 'left.x < right.y' or ['a.x = b.x', '|b.y - c.y| <= 5']. Nulls match "
        "nothing.",
    ]
    predicate: Annotated[
        Predicate | dict[str, Any] | None,
        'Instead of a key: `Overlap("tags", at_least=2)` and other predicates. Each row is stored in one shard and '
        "compared in all.",
    ]
    where: Annotated[
        str | None,
        "A further condition on the rows of a result, in SQL: \"left.bid < right.price AND right.country IN ('DE', 'FR')\". "
        "Qualify columns by the streams' names, unless only one stream has them. As in SQL a pair is a result if the condition "
        "is true, not if it is null.",
    ]
    time: Annotated[
        Required[Columns],
        "The event time: a column name, a pair (left, right), or a dict by the streams' names. Timestamps, or whole numbers "
        "in any unit.",
    ]
    window: Annotated[
        Any,
        'Rows join if their times differ by less than this: "10 minutes", a timedelta, a `TimeWindow` (of microseconds), a '
        "number if times are whole numbers, or a pair of these (how long a left row and a right row are stored). Three and "
        "more rows join if none is older than the newest by its window or more. A number of rows, such as "
        '"1000 rows", counts the rows of all shards.',
    ]
    between: Annotated[
        Sequence[Any] | None,
        'Instead of `window`, for two streams: a pair (low, high) such as ("0 seconds", "10 minutes"). Rows join if low <= '
        "right time - left time <= high, as with SQL's BETWEEN; both ends may be negative. A row is kept only while it can still "
        "find a partner.",
    ]
    how: Annotated[
        str,
        "The join type, by Spark's names: inner, left_semi, left_anti, left_outer, right_outer, full_outer (or left, semi, "
        "outer, ...). A row without a partner is delivered when it leaves its window, and only if it certainly has none. Under a "
        "budget others are logged as unknown, and `refine` resolves them. For three and more streams: inner, left_semi, "
        "left_outer.",
        "inner",
    ]
    matches: Annotated[
        Sequence[int | None] | None,
        "A number for each stream, or None (0 in job files): its rows leave once they have found that many partners, such as "
        "(1, None) for orders that are paid once. The join is exact if no row has more partners.",
    ]
    budget: Annotated[
        Any,
        'The most that all shards together may store: "200k tuples", "512 MB", a number of tuples, a `Budget`. None: no limit, '
        "and the join is exact.",
    ]
    target: Annotated[
        Any,
        'The share of results to deliver, such as "95% recall". Memory follows it in each shard, and the budget is its upper '
        "limit; metrics have the memory in use. For streaming joins. May change on the same checkpoint.",
    ]
    error: Annotated[
        Any,
        'The largest width of the intervals of sums: {"by": "campaign", "sum": "price", "within": 0.02}. The target: 1.96 '
        "standard errors of each group's sum over the results of one window's time are at most 2% of the sum. `by` is a column "
        "of the results or a list of them, `sum` is a column. Without them there is one group, and results are counted. Memory "
        "follows it in each shard, and the budget is its upper limit. For streaming joins of two streams with `weights`. May "
        "change on the same checkpoint.",
    ]
    policy: Annotated[
        str | dict[str, Any] | Policy | None,
        'Which rows stay when the budget is exceeded: a name, a table of settings, or a policy. Default: "prospect"; "prob" for '
        'three and more streams and for row windows over several shards; "simp_prob" with partners found for a predicate.',
    ]
    importance: Annotated[
        str | Sequence[str | None] | Mapping[str, str] | None,
        "A column of positive numbers with the importance of each row: a name, or a pair (left, right). None: all rows "
        "have the same importance.",
    ]
    allocation: Annotated[
        str | None,
        '"variable" (default): streams compete for one memory. "fixed": each stream has its share (see `Budget`).',
    ]
    lateness: Annotated[
        Any,
        "How far a row may lag behind the newest row of its stream, from one micro-batch to the next, without missing results: "
        '"5 minutes"; 0 if rows arrive in the order of their times; None if rows never expire. Default: the delay of the '
        "inputs' watermarks. Required for streams without a watermark. Later rows join only rows that are still stored; they are "
        "counted and logged, with a warning.",
        WATERMARK,
    ]
    max_skew: Annotated[
        Any,
        "A stream that lags behind the other by more than this is treated as idle; expiry does not wait for it.",
    ]
    shards: Annotated[
        int | None,
        "The number of parts that keys are split into; for a join graph the maximum. Default: Spark's parallelism, at "
        "most its shuffle partitions. If there are more shards than partitions, they share tasks. A checkpoint keeps its "
        "number, unless you pass another one to `start`.",
    ]
    rates: Annotated[
        float | Sequence[float] | Mapping[str, float] | None,
        "For a join graph: the relative arrival rates of the streams, which determine its shards. Default: equal rates.",
    ]
    select: Annotated[
        list[str] | dict[str, str] | None,
        'The columns of the result: names ("left.x" or "right.x" where both sides have x), or a dict from new names to such '
        "names. Default: all, as in Spark's own joins (keys of one name once and first, then left's, then right's).",
    ]
    suffixes: Annotated[
        Sequence[str] | None,
        'Suffixes for columns that both sides have, such as ("_left", "_right"). Without them such columns are an error.',
    ]
    combine: Annotated[
        str, "How the importance of a result is computed from its rows: min, max, sum, product, mean.", "min"
    ]
    seed: Annotated[int, "The seed of policies that draw random numbers.", 0]
    shares: Annotated[
        str | None,
        'How shards share the budget: "adaptive" (default) gives each shard the part that a single join of all rows would use '
        'there, by the rows that arrive (for a join graph: by the rows in its windows). "equal" gives all shards the same, as in '
        "joins with a predicate. May change on the same checkpoint.",
    ]
    cache: Annotated[
        str | bool | None,
        "Where workers keep copies of the state, in addition to Spark's state store: a directory, False for none, None for the "
        "default.",
    ]
    deadline: Annotated[
        Any,
        'The longest time that a micro-batch may take: "2 seconds", a timedelta, or a number of seconds. If there are too many '
        "rows, each is compared only with the most profitable part of the window. May change on the same checkpoint.",
    ]
    selective: Annotated[
        Selective | dict[str, Any] | None,
        "How that part is chosen: a `Selective`, or a table of its settings, such as {'basic': '30 seconds', 'sample': 0.2}. "
        "Default: basic windows of a twentieth of the window, ranked by a sample of a tenth of the rows. Without a deadline rows "
        "are always compared with the part `fraction`.",
    ]
    weights: Annotated[
        bool,
        "With policy='sample': results have two more columns. `sj_weight` is the number of exact results that each represents, "
        "so that weighted sums are unbiased; `sj_row` is the number of the stored row of the pair (two streams). See `estimate`.",
        False,
    ]
    kind: Annotated[
        str | Sequence[str | None] | Mapping[str, str] | None,
        "A column with the type of each row, whole numbers from 0 on: with selective={'types': N} windows are searched first "
        "where the importance of results is highest for the type. A name, or a pair (left, right).",
    ]
    front: Annotated[
        float | Sequence[float] | Mapping[str, float] | None,
        "The share of rows, from 0 to 1, that is dropped at random before rows are sent to shards (dual2006's front shedding): a "
        "number, or a pair (left, right). Dropped rows are logged, and `refine` joins them later. May change on the same "
        "checkpoint.",
    ]
    rear: Annotated[
        float | None,
        "The share of rows, from 0 to 1, that is stored without a probe (dual2006's rear shedding): those that would find the "
        "fewest partners. To count partners, all rows wait for one window in an aux-window, and results come that much later.",
    ]
    what_if: Annotated[
        bool | WhatIf | dict[str, Any] | None,
        "Estimate the recall of other memory sizes, with miniatures of the join: True, a `WhatIf`, or a table of "
        "its settings. `shedjoin top`, metrics and the end of a run show it. May change on the same checkpoint.",
    ]
    order: Annotated[
        str | Sequence[str] | Mapping[str, Sequence[str]] | None,
        "The join order of three and more streams, in each shard: a list of all streams, or one for each. Default: chosen from "
        "statistics while the join runs (see `JoinSpec`).",
    ]
    reordering: Annotated[
        Reordering | dict[str, Any] | None,
        "When to search for a better join order: a `Reordering`, or a table such as {'every': 5000, 'drift': 0.1}.",
    ]
    index: Annotated[
        str | int | Mapping[str, str | int] | None,
        "How windows are searched: 'scan' (nested loops), a number of hash buckets, or a dict from streams to these. Default: by "
        "indexes that grow with the windows.",
    ]
    evaluate_every: Annotated[
        Any,
        "Join new rows in rounds of this much event time (lazy evaluation): results are delayed by at most this time.",
    ]
    expire_every: Annotated[Any, "How often expired rows are removed, in event time. They never join. Default: always."]
    names: Annotated[
        Sequence[str] | None,
        "The names of three and more streams in `select`, the shed log, metrics and the archive. Default: s0, s1, s2, "
        "... Two streams are left and right.",
    ]


#: Settings of `JoinSpec` that have no meaning on Spark, with a sentence each.
NOT_ON_SPARK = {
    "cpu": "A virtual CPU works in virtual time, and shards in real time: set deadline.",
    "queue": "A queue holds the rows that a virtual CPU has not reached. On Spark rows wait in their source: set deadline, or "
    "drop some with front.",
    "dual": "The two parts of dual windows are separate arguments: set front and rear.",
    "counted_elsewhere": "Whether rows are counted over all shards follows from the windows and the number of shards.",
}


def check_known(names: Iterable[str]) -> None:
    """Refuse settings that have no meaning on Spark."""
    for name in names:
        if name in NOT_ON_SPARK:
            raise SpecError(f"{name}: {NOT_ON_SPARK[name]}")


def _parameter(name: str, hint: Any) -> Parameter:
    """An argument as signatures have it."""
    kind, _, default = (*get_args(hint), None)[:3]
    if get_origin(kind) is Required:
        (kind,), default = get_args(kind), Parameter.empty
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_HINTS = get_type_hints(JoinArgs, include_extras=True)
PARAMETERS = {name: _parameter(name, hint) for name, hint in _HINTS.items()}
DOCS: dict[str, str] = {name: get_args(hint)[1] for name, hint in _HINTS.items()}


def takes_join_args(function: Function) -> Function:
    """Show the arguments of a join in the signature and the docstring of a function that has them as `**args`.

    Its docstring must end with its own parameters.
    """
    whole = signature(function)
    own = [one for one in whole.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    function.__signature__ = whole.replace(parameters=[*own, *PARAMETERS.values()])  # type: ignore[attr-defined]
    docs = [f"{name}\n{fill(doc, 120, initial_indent=INDENT, subsequent_indent=INDENT)}" for name, doc in DOCS.items()]
    function.__doc__ = "\n".join([cleandoc(function.__doc__ or ""), *docs])
    return function


def complete(args: JoinArgs, function: Callable[..., Any]) -> JoinArgs:
    """All arguments of a join that a function was called with; defaults where they are not given."""
    check_known(args)
    known = [one.name for one in signature(function).parameters.values() if one.kind is Parameter.KEYWORD_ONLY]
    for name in args:
        if name not in PARAMETERS:
            perhaps = f" (perhaps {near}?)" if (near := nearest(name, known)) else ""
            raise SpecError(f"{function.__name__} has no argument {name!r}{perhaps}: it takes {', '.join(known)}")
    missing = [name for name, one in PARAMETERS.items() if one.default is Parameter.empty and name not in args]
    if missing:
        raise SpecError(f"{missing[0]} is missing. {DOCS[missing[0]]}")
    if args.get("window") is None and args.get("between") is None:
        raise SpecError(
            "window is missing: give a window such as '10 minutes' (a number, where times are whole numbers), or "
            "between=('0 seconds', '10 minutes')"
        )
    return cast(JoinArgs, {**{name: one.default for name, one in PARAMETERS.items()}, **args})
