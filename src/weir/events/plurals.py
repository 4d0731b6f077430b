"""Counts things in messages for people."""

from __future__ import annotations


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Say how many there are of something; `nouns` is its plural where that is not `noun` + s.

    >>> counted(1, "row"), counted(0, "row"), counted(1200, "recovery", "recoveries")
    ('1 row', '0 rows', '1,200 recoveries')
    """
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"
