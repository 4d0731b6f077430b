"""How a tweet sounds: the words that please, less those that do not."""

from __future__ import annotations

import weir

GOOD = {"love", "great", "fast"}
BAD = {"hate", "slow", "broken"}


@weir.udf
def sentiment(text: str) -> int:
    words = text.split()
    return sum(word in GOOD for word in words) - sum(word in BAD for word in words)
