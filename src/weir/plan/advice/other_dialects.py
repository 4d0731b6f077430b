"""Functions of other SQL dialects that Weir does not have, and what to use instead.

Functions that Weir has under another name are translated in `script/expression_translation.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

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


def by_name(names_of: Mapping[str, str]) -> dict[str, str]:
    """Invert a table of hints, each with the names that it is for: return the hint of each name.

    >>> by_name({"write AVG(x)": "mean average"})
    {'mean': 'write AVG(x)', 'average': 'write AVG(x)'}
    """
    return {name: hint for hint, names in names_of.items() for name in names.split()}


_HINTS = by_name(
    {
        _NO_CLOCK: (
            "now current_timestamp current_date current_time localtimestamp localtime getdate "
            "sysdate today curdate curtime proctime get_current_timestamp"
        ),
        _NO_RANDOM: "rand random uuid gen_random_uuid rand_integer",
        _WINDOW: "tumble window time_bucket tumble_table tumbling descriptor table",
        _HOP: "hop slide hopping cumulate",
        "a window follows GROUP BY: WITH SESSION(30m)": "session session_window",
        "write window_start": "tumble_start hop_start session_start tumble_rowtime hop_rowtime",
        "write window_end": "tumble_end hop_end session_end",
        "the first k of each window: WITH TUMBLING(5m) ORDER BY x DESC LIMIT k": (
            "row_number rank dense_rank ntile"
        ),
        "the row before: LEFT ASOF JOIN with the stream itself, shifted by WITH SHIFT(1us)": (
            "lag lead"
        ),
        "write FIRST(x), the value of the earliest": "first_value any_value",
        "write LAST(x), the value of the latest": "last_value",
        "the row with the largest x of each window: ORDER BY x DESC LIMIT 1": (
            "arg_max max_by arg_min min_by"
        ),
        _COLLECT: "array_agg collect_list list group_array",
        "write COLLECT(x) over a SELECT DISTINCT": "collect_set",
        f"{_COLLECT}; joining its texts is a function of your own (@weir.udf)": (
            "string_agg listagg group_concat"
        ),
        "write COUNT(DISTINCT x)": "approx_count_distinct approx_distinct uniq",
        "write COUNT(*) FILTER (WHERE condition)": "count_if countif",
        "write SUM(x) FILTER (WHERE condition)": "sum_if sumif",
        "write AVG(x)": "mean average",
        "write VARIANCE(x), the sample variance": "var_samp var_pop var",
        "write STDDEV(x), the sample standard deviation": "stddev_samp stddev_pop std stdev",
        "write QUANTILE_CONT(x, p), or QUANTILE_DISC(x, p)": (
            "percentile percentile_cont approx_percentile percentile_approx quantile"
        ),
        "write QUANTILE_DISC(x, p)": "percentile_disc",
        "write EXTRACT(dow FROM t), which is 0 on Sunday and 6 on Saturday": (
            "dayofweek day_of_week weekday isodow"
        ),
        "write DATE_FORMAT(t, 'EEEE')": "dayname day_name",
        "write DATE_FORMAT(t, 'MMMM')": "monthname month_name",
        "write EXTRACT(epoch FROM t)": "epoch to_unixtime",
        f"write EXTRACT(epoch FROM t) of a time t; {_NO_CLOCK}": "unix_timestamp",
        "write EXTRACT(epoch FROM t) * 1000 + EXTRACT(millisecond FROM t)": "epoch_ms",
        "write CAST(t AS BIGINT)": "epoch_us",
        _EPOCH: "from_unixtime to_timestamp_ltz make_timestamp timestamp_seconds timestamp_millis",
        "the difference of two TIMESTAMPs is BIGINT ticks: (a - b) // 1h, (a - b) // 1d": (
            "datediff date_diff timestampdiff timestamp_diff months_between age"
        ),
        "write t + 5m, t - 1d, or DATE_ADD(t, n, 'month')": (
            "date_sub dateadd timestampadd timestamp_add adddate add_months"
        ),
        "write CAST(x AS DATE)": "to_date date makedate make_date",
        "write CAST(x AS TIMESTAMP), or TO_TIMESTAMP(x, format)": "timestamp",
        "write DATE_FORMAT(t, 'yyyy-MM-dd HH:mm:ss')": (
            "to_char format_datetime formatdatetime date_to_str"
        ),
        "write TO_TIMESTAMP(text, '%Y-%m-%d %H:%M:%S')": (
            "strptime str_to_date parse_datetime try_strptime"
        ),
        "write DATE_TRUNC('hour', t) of a time, or FLOOR(x)": "trunc truncate",
        "write LN(x) or LOG10(x)": "log",
        "write LN(x) / LN(2)": "log2",
        "write ARRAY_LENGTH(l)": "size cardinality array_size list_length",
        "write ARRAY_CONTAINS(l, x)": "list_contains array_position array_has",
        "write ELEMENT_AT(l, n)": "element list_extract array_extract get",
        _LIST: (
            "transform filter reduce array_sort list_sort array_join array_distinct sequence "
            "generate_series"
        ),
        "write EXPLODE(list) in the select list": "unnest flatten posexplode explode_outer",
        _JSON: (
            "get_json_object json_extract json_value from_json json_query json_extract_string "
            "parse_json"
        ),
        "write s RLIKE 'pattern'": "regexp_like regexp_matches regexp regexp_full_match",
        "write CONTAINS(s, what), or SPLIT_PART(s, what, 1) for what is before it": (
            "instr position locate strpos charindex"
        ),
        "write a || ', ' || b": "concat_ws",
        "write UPPER(SUBSTRING(s, 1, 1)) || LOWER(SUBSTRING(s, 2))": "initcap",
        "write SUBSTRING(s, 1, n)": "left",
        "write SUBSTRING(s, -n)": "right",
        "write CAST(x AS STRING) and ||": "format printf format_string format_number",
        "write x IS NULL": "isnull is_null",
        "write x IS NOT NULL": "isnotnull notnull",
        "write x = CAST('NaN' AS DOUBLE): NaN equals itself here": "isnan",
        "write CASE WHEN … THEN … ELSE … END": "decode nvl2 choose multiif",
        "write XXHASH64(s)": "hash murmur_hash farm_fingerprint xxhash",
        "write SHA256(s)": "sha2 sha1 sha",
        "write CAST(x AS TYPE)": "int bigint double string float",
        "a STRUCT is declared in STREAM; select its fields one by one": "row struct",
        "write one query for each grouping, with UNION ALL between them": (
            "grouping_sets rollup cube grouping"
        ),
    }
)


def function_hint(name: str) -> str:
    """Return what Weir has for a function of another dialect; '' if no dialect has it.

    >>> function_hint("TUMBLE_START")
    'write window_start'
    """
    return _HINTS.get(name.lower(), "")
