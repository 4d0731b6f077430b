"""Functions of other SQL dialects that Weir does not have, and what to use instead.

Scripts accept those that it has under other names (`script/sql_functions.py`).
"""

from __future__ import annotations

_NO_CLOCK = (
    "a program has no clock, so that it gives the same answer again: `vs` is the time of the "
    "event; a time of the run's is a parameter, DECLARE @now TIMESTAMP = TIMESTAMP '…';"
)
_NO_RANDOM = "a program has no random values: XXHASH64(key) gives numbers that look like it"
_WINDOW = "a window follows GROUP BY: WITH TUMBLING(5m), and window_start is its start"
_HOP = "a window follows GROUP BY: WITH HOPPING(size, hop), as in WITH HOPPING(1h, 5m)"
_COLLECT = "write COLLECT(x), which leaves NULLs out"
_LIST = "a list has ARRAY_LENGTH, ARRAY_CONTAINS, ELEMENT_AT, and EXPLODE in a select list"
_EPOCH = "TO_TIMESTAMP(x * 1000000) makes a TIMESTAMP of seconds, TO_TIMESTAMP(x * 1000) of ms"
_JSON = "declare the column as STRUCT(a BIGINT, …) in STREAM, and read s.a"

_HINTS = {
    **dict.fromkeys(
        ("now", "current_timestamp", "current_date", "current_time", "localtimestamp", "localtime",
         "getdate", "sysdate", "today", "curdate", "curtime", "proctime",
         "get_current_timestamp"),
        _NO_CLOCK,
    ),
    **dict.fromkeys(("rand", "random", "uuid", "gen_random_uuid", "rand_integer"), _NO_RANDOM),
    **dict.fromkeys(("tumble", "window", "time_bucket", "tumble_table"), _WINDOW),
    **dict.fromkeys(("hop", "slide", "hopping", "cumulate"), _HOP),
    "tumbling": _WINDOW,
    "session": "a window follows GROUP BY: WITH SESSION(30m)",
    "session_window": "a window follows GROUP BY: WITH SESSION(30m)",
    **dict.fromkeys(
        ("tumble_start", "hop_start", "session_start", "tumble_rowtime", "hop_rowtime"),
        "write window_start",
    ),
    **dict.fromkeys(("tumble_end", "hop_end", "session_end"), "write window_end"),
    **dict.fromkeys(
        ("row_number", "rank", "dense_rank", "ntile"),
        "the first k of each window: WITH TUMBLING(5m) ORDER BY x DESC LIMIT k",
    ),
    **dict.fromkeys(
        ("lag", "lead"),
        "the row before: LEFT ASOF JOIN with the stream itself, shifted by WITH SHIFT(1us)",
    ),
    **dict.fromkeys(("first_value", "any_value"), "write FIRST(x), the value of the earliest"),
    "last_value": "write LAST(x), the value of the latest",
    **dict.fromkeys(
        ("arg_max", "max_by", "arg_min", "min_by"),
        "the row with the largest x of each window: ORDER BY x DESC LIMIT 1",
    ),
    **dict.fromkeys(("array_agg", "collect_list", "list", "group_array"), _COLLECT),
    "collect_set": "write COLLECT(x) over a SELECT DISTINCT",
    **dict.fromkeys(
        ("string_agg", "listagg", "group_concat"),
        f"{_COLLECT}; joining its texts is a function of your own (@weir.udf)",
    ),
    **dict.fromkeys(
        ("approx_count_distinct", "approx_distinct", "uniq"), "write COUNT(DISTINCT x)"
    ),
    **dict.fromkeys(("count_if", "countif"), "write COUNT(*) FILTER (WHERE condition)"),
    **dict.fromkeys(("sum_if", "sumif"), "write SUM(x) FILTER (WHERE condition)"),
    **dict.fromkeys(("mean", "average"), "write AVG(x)"),
    **dict.fromkeys(("var_samp", "var_pop", "var"), "write VARIANCE(x), which is a sample's"),
    **dict.fromkeys(
        ("stddev_samp", "stddev_pop", "std", "stdev"), "write STDDEV(x), which is a sample's"
    ),
    **dict.fromkeys(
        ("percentile", "percentile_cont", "approx_percentile", "percentile_approx", "quantile"),
        "write QUANTILE_CONT(x, p), or QUANTILE_DISC(x, p)",
    ),
    "percentile_disc": "write QUANTILE_DISC(x, p)",
    **dict.fromkeys(("dayofweek", "day_of_week", "weekday", "isodow"),
                    "write EXTRACT(dow FROM t), which is 0 on Sunday and 6 on Saturday"),
    **dict.fromkeys(("dayname", "day_name"), "write DATE_FORMAT(t, 'EEEE')"),
    **dict.fromkeys(("monthname", "month_name"), "write DATE_FORMAT(t, 'MMMM')"),
    **dict.fromkeys(("epoch", "to_unixtime"), "write EXTRACT(epoch FROM t)"),
    "unix_timestamp": f"write EXTRACT(epoch FROM t) of a time t; {_NO_CLOCK}",
    "epoch_ms": "write EXTRACT(epoch FROM t) * 1000 + EXTRACT(millisecond FROM t)",
    "epoch_us": "write CAST(t AS BIGINT)",
    **dict.fromkeys(("from_unixtime", "to_timestamp_ltz", "make_timestamp", "timestamp_seconds",
                     "timestamp_millis"), _EPOCH),
    **dict.fromkeys(
        ("datediff", "date_diff", "timestampdiff", "timestamp_diff", "months_between", "age"),
        "the difference of two TIMESTAMPs is BIGINT ticks: (a - b) // 1h, (a - b) // 1d",
    ),
    **dict.fromkeys(
        ("date_sub", "dateadd", "timestampadd", "timestamp_add", "adddate", "add_months"),
        "write t + 5m, t - 1d, or DATE_ADD(t, n, 'month')",
    ),
    **dict.fromkeys(("to_date", "date", "makedate", "make_date"), "write CAST(x AS DATE)"),
    "timestamp": "write CAST(x AS TIMESTAMP), or TO_TIMESTAMP(x, format)",
    **dict.fromkeys(("to_char", "format_datetime", "formatdatetime", "date_to_str"),
                    "write DATE_FORMAT(t, 'yyyy-MM-dd HH:mm:ss')"),
    **dict.fromkeys(("strptime", "str_to_date", "parse_datetime", "try_strptime"),
                    "write TO_TIMESTAMP(text, '%Y-%m-%d %H:%M:%S')"),
    **dict.fromkeys(("trunc", "truncate"), "write DATE_TRUNC('hour', t) of a time, or FLOOR(x)"),
    "log": "write LN(x) or LOG10(x)",
    "log2": "write LN(x) / LN(2)",
    **dict.fromkeys(("size", "cardinality", "array_size", "list_length"), "write ARRAY_LENGTH(l)"),
    **dict.fromkeys(("list_contains", "array_position", "array_has"), "write ARRAY_CONTAINS(l, x)"),
    **dict.fromkeys(("element", "list_extract", "array_extract", "get"), "write ELEMENT_AT(l, n)"),
    **dict.fromkeys(("transform", "filter", "reduce", "array_sort", "list_sort", "array_join",
                     "array_distinct", "sequence", "generate_series"), _LIST),
    **dict.fromkeys(("unnest", "flatten", "posexplode", "explode_outer"),
                    "write EXPLODE(list) in the select list"),
    **dict.fromkeys(("get_json_object", "json_extract", "json_value", "from_json", "json_query",
                     "json_extract_string", "parse_json"), _JSON),
    **dict.fromkeys(("regexp_like", "regexp_matches", "regexp", "regexp_full_match"),
                    "write s RLIKE 'pattern'"),
    **dict.fromkeys(("instr", "position", "locate", "strpos", "charindex"),
                    "write CONTAINS(s, what), or SPLIT_PART(s, what, 1) for what is before it"),
    "concat_ws": "write a || ', ' || b",
    "initcap": "write UPPER(SUBSTRING(s, 1, 1)) || LOWER(SUBSTRING(s, 2))",
    "left": "write SUBSTRING(s, 1, n)",
    "right": "write SUBSTRING(s, -n)",
    **dict.fromkeys(("format", "printf", "format_string", "format_number"),
                    "write CAST(x AS STRING) and ||"),
    **dict.fromkeys(("isnull", "is_null"), "write x IS NULL"),
    **dict.fromkeys(("isnotnull", "notnull"), "write x IS NOT NULL"),
    "isnan": "write x = CAST('NaN' AS DOUBLE): NaN equals itself here",
    **dict.fromkeys(("decode", "nvl2", "choose", "multiif"), "write CASE WHEN … THEN … ELSE … END"),
    **dict.fromkeys(("hash", "murmur_hash", "farm_fingerprint", "xxhash"), "write XXHASH64(s)"),
    **dict.fromkeys(("sha2", "sha1", "sha"), "write SHA256(s)"),
    **dict.fromkeys(("int", "bigint", "double", "string", "float"), "write CAST(x AS TYPE)"),
    "row": "a STRUCT is declared in STREAM; select its fields one by one",
    "struct": "a STRUCT is declared in STREAM; select its fields one by one",
    **dict.fromkeys(("grouping_sets", "rollup", "cube", "grouping"),
                    "write one query for each grouping, with UNION ALL between them"),
    "descriptor": _WINDOW,
    "table": _WINDOW,
}  # fmt: skip


def function_hint(name: str) -> str:
    """Say what Weir has for a function of another dialect; '' for one that none has.

    >>> function_hint("TUMBLE_START")
    'write window_start'
    """
    return _HINTS.get(name.lower(), "")
