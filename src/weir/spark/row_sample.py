"""Samples the first rows to decide whether to aggregate before the shuffle.

The decision affects the cost only, not the values. If many rows of a window share a key,
aggregating them in the source's task leaves little to shuffle; if few do, it is double work.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from weir.errors import WeirError
from weir.events.batch import Batch, concat_batches, empty_batch
from weir.events.hashing import hash_rows
from weir.files.chunks import SourcePartition
from weir.kernels.structures.keys import each_once
from weir.local.runner import LocalRun
from weir.plan.operators import Aggregate, Source, schema
from weir.plan.program import Output, Program
from weir.plan.rewrites.two_phase import Pays
from weir.plan.traversal import ordered_nodes
from weir.plan.usercode.code_fingerprint import user_functions
from weir.plan.windows import Hopping
from weir.runtime.partitions import Partitions

SAMPLE_ROWS = 16_384
LEFT_OVER = 0.25
"""Two phases pay if at most this share of the rows is left after the first phase."""


def rows_share_keys(node: Aggregate, partitions: Partitions) -> bool:
    """Tell whether the first rows of the aggregate's source fall into few groups and panes.

    False if the aggregate reads more than one source through stateless operators, if it reads no
    files, or if there are user functions in between: these run in tasks only.
    """
    below = ordered_nodes([node.input])
    sources = [n for n in below if isinstance(n, Source)]
    if len(sources) != 1 or not all(n.stateless and len(n.inputs) < 2 for n in below):
        return False
    (source,) = sources
    if not source.has_origins or any(True for _ in user_functions(below)):
        return False
    rows = _first_rows(node, source, partitions[source.name][0])
    assert isinstance(node.window, Hopping)
    if not len(rows):
        return False
    names = schema(node.input).names
    panes = (rows.vs - node.window.offset) // node.window.hop
    keys = [rows.columns[names.index(key)] for key in node.keys]
    first, _ = hash_rows([*keys, pa.array(panes)], len(rows))
    return len(each_once(first.view(np.int64))) <= LEFT_OVER * len(rows)


def remembering(pays: Pays, answers: list[bool]) -> Pays:
    """Wrap `pays` so that each answer is also added to the list."""

    def asked(node: Aggregate) -> bool:
        answers.append(pays(node))
        return answers[-1]

    return asked


def repeating(answers: Iterable[bool]) -> Pays:
    """Return these answers again, in order; then False."""
    left = iter(answers)
    return lambda node: next(left, False)


def _first_rows(node: Aggregate, source: Source, partition: SourcePartition) -> Batch:
    """Run the first rows of the partition through the operators up to the aggregate."""
    batches: list[Batch] = []
    program = Program((source,), (), (Output("Sample", node.input, ""),))
    run = LocalRun(
        program,
        {source.name: [partition]},
        [lambda _, rows: batches.append(rows)],
        cut=SAMPLE_ROWS,
        optimise=False,
    )
    try:
        run.step()
    except WeirError:
        return empty_batch(())  # a bad row: the run itself will report it
    return concat_batches(batches) if batches else empty_batch(())
