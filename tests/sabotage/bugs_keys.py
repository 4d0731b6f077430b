"""Bugs that would let somebody make keys equal or slow, or let a secret show."""

from sabotage.bugs import Bug

_HASHES, _LOOPS = "kernels/structures/key_hashes.py", "kernels/structures/key_hashes_loops.py"
_HASH_TESTS = ("tests/unit/kernels/test_key_hashes.py",)
_CRAFTED = ("tests/unit/kernels/test_crafted_keys.py",)
_SECRETS = ("tests/unit/kernels/test_secrets_stay_inside.py",)

BUGS = (
    Bug(
        "all indexes have one secret",
        "kernels/structures/key_secrets.py",
        "return os.urandom(SECRET_BYTES)",
        "return bytes(SECRET_BYTES)",
        _SECRETS,
    ),
    Bug(
        "a number alone is searched for at its own bits",
        _HASHES,
        "hash_numbers(words, state, first)",
        "first[:] = words.view(np.uint64)",
        _CRAFTED,
    ),
    Bug(
        "NULL is the number 0",
        _HASHES,
        "np.invert(first, out=first, where=null_mask(column))",
        "pass",
        _HASH_TESTS,
    ),
    Bug(
        "NULLs of a row do not count",
        _HASHES,
        "flags |= mask.astype(np.uint64) << np.uint64(bit)",
        "pass",
        _HASH_TESTS,
    ),
    Bug(
        "a round is left out at the end",
        _LOOPS,
        "    a, b, c, d = _round(a, b, c, d)\n    a, b, c, d = _round(a, b, c, d)\n"
        "    return _round(a, b, c, d)",
        "    a, b, c, d = _round(a, b, c, d)\n    return _round(a, b, c, d)",
        _HASH_TESTS,
    ),
    Bug(
        "panes of all groups are one",
        "kernels/structures/panes.py",
        "missing_panes = self._index.encode(*self._index.number_hashes(groups, starts, ends))",
        "missing_panes = self._index.encode(*self._index.number_hashes(starts, ends))",
        _CRAFTED,
    ),
    Bug(
        "groups are listed as they lie in the table",
        "kernels/structures/cell_groups.py",
        "return np.flatnonzero(self._slots >= 0)",
        "return self._index._table[self._index._table >= 0]",
        _SECRETS,
    ),
    Bug(
        "priorities of a tree are foretold",
        "kernels/structures/treap_nodes.py",
        "first_state(fresh_secret())",
        "first_state(bytes(16))",
        ("tests/unit/kernels/test_treap.py",),
    ),
    Bug(
        "equal digests are no difference",
        "files/output_diff.py",
        "            is_new[tied] = here != before",
        "            is_new[tied] = False",
        ("tests/unit/conform/test_verify.py",),
    ),
)
