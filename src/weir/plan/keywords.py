"""The words of the script language that cannot be names, unless they are quoted."""

from __future__ import annotations

_WORDS = """SELECT FROM WHERE GROUP HAVING WITH ORDER LIMIT UNION JOIN INNER LEFT RIGHT FULL
CROSS CLIP ASOF ON AS PARTITION CASE WHEN THEN ELSE END AND OR NOT IN IS NULL TRUE FALSE LIKE RLIKE
BETWEEN DISTINCT"""
RESERVED_WORDS = frozenset(_WORDS.split())
WINDOW_COLUMNS = ("window_start", "window_end")
"""Columns that windows add, so that no input can have them."""
