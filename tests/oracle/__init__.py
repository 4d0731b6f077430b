"""The slow oracle: what a plan means, by the definition, over complete inputs.

Contract
1. It shares no code with `weir.kernels` and reads nothing of `weir` but the plan's classes
   (`weir.plan.operators`, `weir.plan.expressions`) and what they are made of.
2. Everything is plain Python: rows are `Row`, numbers are ints and Fractions, every operator
   looks at all rows and, where its meaning is per instant, at every instant at which anything
   changes. It is quadratic or worse, and must stay obvious rather than fast.
3. `evaluate` gives the multiset of a node's rows; in which order they are emitted is not its
   business. What must end in an error raises `OracleError`.

It follows docs/reference/semantics.md; the section numbers in the modules are that page's.
"""

from oracle.evaluate import evaluate
from oracle.rows import OPEN, Cti, OracleError, Row, canonical

__all__ = ["OPEN", "Cti", "OracleError", "Row", "canonical", "evaluate"]
