"""Hints for users of Spark, Pandas or Polars: what they type, and what Weir has for it.

These are the names that a stream, a selection, a term or the module `weir` does not have. The error
says what to write instead. It is also an AttributeError, because `hasattr`, copies and notebooks
look up names that may not exist, and expect one. (Hints for words of a script are in
`script/habits.py`, for functions of other dialects in `plan/advice/other_dialects.py`.)
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from weir.errors import PlanError, UnknownAttribute
from weir.plan.advice.other_dialects import by_name, function_hint
from weir.plan.functions import is_called

Options = ParamSpec("Options")
Returned = TypeVar("Returned")

_WINDOWED = '.group_by("k").window(weir.tumbling("5m")).agg(total=col("v").sum())'
_OWN_CODE = (
    "weir.call(f, col('v')) with your function, decorated by @weir.udf; state over rows is an "
    "operator of yours, @weir.operator, and .reduce('k', using=Op())"
)
_BEFORE = "the row before is that of an operator of your own: @weir.operator and .reduce"
_FUNCTIONS = 'weir.call("upper", col("k")), or weir.expr("UPPER(k)"), with the functions of scripts'


def _by_name(table: Mapping[str, str]) -> dict[str, str]:
    return {name: f"write {hint}" for name, hint in by_name(table).items()}


# The names are lower-case without underscores, so `withColumn` and `with_column` are the same.
STREAM_HABITS = _by_name(
    {
        '.where(col("v") > 3), or .where("v > 3")': "filter query loc",
        '.select("*", w=col("v") + 1)': "withcolumn withcolumns assign mutate",
        '.select("k", w=col("v")), with the names that are wanted': "withcolumnrenamed rename",
        '.select("k", "v"), with the columns that are wanted': "drop",
        '.group_by("k")': "groupby keyby",
        '.as_("B")': "alias",
        ".collect().to_pandas()": "topandas todf",
        "polars.from_arrow(s.collect())": "topolars",
        ".collect(), which returns an Arrow table": "toarrow compute execute fetch",
        ".collect().to_pylist(), which has the rows as dicts": (
            "topylist todicts todict tolist iterrows itertuples rows values tonumpy"
        ),
        ".head(5), or .show()": "take limit tail sample display",
        ".top(3, by=col('v').desc()), the largest of each window or instant; rows come in order of "
        "time": "sort orderby sortvalues nlargest nsmallest",
        ".union(other)": "unionall unionbyname concat append vstack",
        '.join(b, "A.k = B.k")': "merge",
        '.join(b, kind="cross")': "crossjoin",
        '.join(b, "A.k = B.k", kind="asof")': "joinasof mergeasof",
        '.join(b, "A.k = B.k", kind="anti")': "subtract except exceptall",
        '.join(b, "A.k = B.k", kind="semi")': "intersect",
        ".distinct()": "dropduplicates unique deduplicate",
        '.where(col("v").is_not_null())': "dropna dropnulls",
        '.select("k", v=weir.call("coalesce", col("v"), 0))': "fillna fillnull",
        _WINDOWED: "resample groupbydynamic tumbling hopping session tumble hop",
        '.duration("5m").agg(mean=col("v").avg()), the mean of the last five minutes': (
            "rolling groupbyrolling"
        ),
        '.window(weir.tumbling("5m")).agg(n=weir.count())': "count size height shape",
        '.window(weir.tumbling("5m")).agg(total=col("v").sum())': (
            "sum mean avg min max std var median quantile nunique describe aggregate"
        ),
        'delay="10s" at the input: weir.stream(…, delay="10s")': "withwatermark watermark",
        'weir.run(s.to("out.parquet")), or .csv, .jsonl, .arrow': (
            "write writestream tocsv toparquet tojson writecsv writeparquet writejson "
            "sinkparquet sinkcsv save saveas sink sinkto addsink run start"
        ),
        _OWN_CODE: (
            "map flatmap apply foreach foreachbatch mappartitions pipe transform mapbatches "
            "applyinpandas mapinpandas mapinarrow"
        ),
        _BEFORE: "diff lag lead pctchange cumsum",
        "print(s), which shows columns and types, or s.schema": "printschema dtypes info",
        "nothing: a stream is a plan, and lazy": "lazy cache persist",
        '.group_by("k").having("COUNT(*) > 3").agg(n=weir.count())': "having",
        '.partition_by("k", into=4, uid="by_k")': "repartition",
        ".agg(a=weir.count().filter(\"k = 'a'\"), …), an aggregate for each column": "pivot",
    }
)
TERM_HABITS = _by_name(
    {
        '.as_("w"), or .select(w=…)': "alias name label rename",
        ".avg()": "mean average",
        ".count_distinct()": "nunique approxcountdistinct",
        ".stddev()": "std",
        ".variance()": "var",
        '.quantile_cont("0.9")': "quantile percentile",
        ".is_null()": "isnull isna",
        ".is_not_null()": "isnotnull notnull notna",
        ".isin([1, 2])": "isin",
        '.cast("DOUBLE")': "astype",
        'weir.call("coalesce", col("v"), 0)': "fillna fillnull",
        'weir.case((col("v") > 3, "large"), otherwise="small")': "when then otherwise",
        "nothing: the smallest comes first": "asc",
        _FUNCTIONS: "str dt list arr struct",
        'weir.call("starts_with", col("k"), "x")': "startswith",
        'weir.call("ends_with", col("k"), "x")': "endswith",
        'weir.call("substring", col("k"), 1, 3)': "substr slice",
        'weir.call("trim", col("k"))': "strip",
        "weir.expr(\"k RLIKE 'x'\")": "rlike match regexp",
        'weir.call("element_at", col("l"), 1), or col("s.f") of a STRUCT': "getitem getfield field",
        'weir.explode("l")': "explode",
        _OWN_CODE: "map apply mapelements mapbatches",
        f"a window of the stream: s{_WINDOWED}": "over rolling window",
        _BEFORE: "shift diff lag lead cumsum pctchange",
        "col('v') == 3, & | ~, and Python's other operators": (
            "eq ne lt le gt ge add sub mul div and or not"
        ),
    }
)
MODULE_HABITS = _by_name(
    {
        'weir.case((col("v") > 3, "large"), otherwise="small")': "when",
        "weir.parse_program(text), weir.run(text), or weir.expr(text) for an expression": (
            "sql query script"
        ),
        'weir.col("v")': "column field",
        _FUNCTIONS: "functions f fn",
        'weir.tumbling("5m"), hopping("1h", "5m") or session("30m")': (
            "window windows tumble hop slide sliding sessionwindow"
        ),
        'weir.stream("A", {"at": "TIMESTAMP", "k": "STRING"}, "a.csv", vs="at")': (
            "readcsv readjson readparquet readndjson scancsv scanparquet scanndjson read "
            "readstream source fromcsv load"
        ),
        'weir.from_rows(rows, vs="at")': (
            "dataframe lazyframe table frompandas frompolars fromarrow fromdicts fromdict "
            "frompylist createdataframe"
        ),
        "a.union(b)": "union concat",
        'a.join(b, "A.k = B.k")': "join merge mergeasof",
        'col("v").avg()': "avg mean average",
        'col("v").sum(); so min, max, median, stddev, variance, first, last': (
            "sum min max median stddev variance first last"
        ),
        'col("v").count_distinct()': "countdistinct nunique",
        'col("v").desc()': "desc",
        "weir.run_offline(…) or weir.run_live(…), which take the Spark session": (
            "spark sparksession"
        ),
        '"5s", "10m", "1h", or a timedelta': "seconds minutes hours days duration interval",
        '"BIGINT", "STRING", "TIMESTAMP" …, or int, str, datetime': (
            "types int64 string timestamp structtype schema"
        ),
    }
)
KIND_HABITS = _by_name(
    {
        'kind="full"': "outer fullouter",
        'kind="left"': "leftouter",
        'kind="right"': "rightouter",
        'kind="semi"': "leftsemi",
        'kind="anti"': "leftanti",
        'kind="left_asof"': "leftasof",
    }
)


def no_attribute(
    what: str, name: str, habits: Mapping[str, str], attributes: Iterable[str]
) -> AttributeError:
    """Return the error for a name that `what` does not have.

    It says what to write instead, or suggests a similar name. For a name that starts with an
    underscore, which only tools look up, it does neither."""
    if name.startswith("_"):
        return AttributeError(f"{what} has no attribute '{name}'")
    hint = habit(name, habits) or near(name, (k for k in attributes if not k.startswith("_")))
    return UnknownAttribute(f"{what} has no `{name}`", name, hint=hint)


def habit(name: str, habits: Mapping[str, str]) -> str:
    """Return what the table says for a name, or '' if the name is not in it.

    >>> habit("withColumn", STREAM_HABITS)
    'write .select("*", w=col("v") + 1)'
    """
    return habits.get(_plain(name), "")


def near(name: str, names: Iterable[str]) -> str:
    """Return a hint with the most similar of these names, or '' if there is none."""
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean `{close[0]}`?" if close else ""


def functions_as_habits(name: str) -> dict[str, str]:
    """Return the hint for a name that is a function of scripts or of another dialect, if it is one.

    >>> functions_as_habits("upper")
    {'upper': 'write weir.call("upper", col("k")), or weir.expr("UPPER(k)")'}
    """
    lower = name.lower()
    if is_called(lower):
        hint = f'write weir.call("{lower}", col("k")), or weir.expr("{lower.upper()}(k)")'
        return {_plain(name): hint}
    hint = function_hint(lower)
    return {_plain(name): f'in weir.expr("…"): {hint}'} if hint else {}


def instead(**options: str) -> Callable[[Callable[Options, Returned]], Callable[Options, Returned]]:
    """Return a decorator that makes the error for unknown keywords say what to write instead."""

    def decorated(function: Callable[Options, Returned]) -> Callable[Options, Returned]:
        @wraps(function)
        def called(*args: Options.args, **keywords: Options.kwargs) -> Returned:
            for name in keywords:
                if name in options:
                    what = f"`{function.__name__}` has no option `{name}`"
                    raise PlanError(what, hint=f"write {options[name]}")
            return function(*args, **keywords)

        return called

    return decorated


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
