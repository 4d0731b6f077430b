"""The facts that every operator states; walks over a plan use them.

Contract
1. A node is fully bound: its expressions are typed, and its column names exist in its inputs. Only
   the builder (`binding/`) makes nodes; rewrites make new ones from old.
2. Keys, aggregate arguments, filters and order columns are *column names* of the input: if they are
   computed, the builder puts a `Project` below.
3. An operator states every fact in its own module, or names the role that the fact follows from
   (`roles.py`); there are no defaults. An operator that lacks a fact cannot be created (`Operator`
   is abstract), and mypy reports it earlier.
4. A fact follows from the node and from facts of its inputs that are passed in (their schemas, how
   long their rows are valid); it never walks further down. So the walks, from the inputs up or from
   the outputs down, visit each node once and need no deep stack.

What each operator means is in the reference (docs/reference/semantics.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from weir.plan.operators.facts import HorizonStep, Meeting, Names, Predicates, Pushed
from weir.plan.operators.spans import Span
from weir.plan.schema import Schema

if TYPE_CHECKING:
    from weir.plan.operators import Node


class Operator(ABC):
    """A node of a plan, which states the facts about itself.

    `lives` are the longest lifetimes of its inputs' rows.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # every operator is a `node_class`

    # --- the graph -----------------------------------------------------------------------

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """Return the nodes whose rows it reads, by port."""

    @abstractmethod
    def over(self, inputs: Sequence[Node]) -> Self:
        """Return the same operator over other inputs."""

    # --- rows ----------------------------------------------------------------------------

    @abstractmethod
    def schema_over(self, below: Sequence[Schema]) -> Schema:
        """Return the payload columns of its rows and the type of its time columns."""

    @abstractmethod
    def passed_columns(self, port: int) -> Mapping[str, str]:
        """Return the columns that its rows have in common with the input rows they are made of.

        The keys are the columns' names here, the values their names in the input.
        """

    @property
    @abstractmethod
    def stateless(self) -> bool:
        """Tell whether it keeps nothing from one row to the next."""

    @abstractmethod
    def meeting(self) -> Meeting:
        """Return which rows it brings together."""

    @abstractmethod
    def sees_order(self, port: int) -> bool:
        """Tell whether the order of rows within an instant of this input can change the answer."""

    @abstractmethod
    def origin_depth(self, below: Sequence[int]) -> int:
        """Return how many origin columns its rows can have, for those of its inputs.

        0 means that it drops origins."""

    # --- time ----------------------------------------------------------------------------

    @abstractmethod
    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        """Return how long its rows can be valid.

        It is `UNBOUNDED` if the program makes rows that may be open."""

    @abstractmethod
    def longest_hold(self, lives: Sequence[Span]) -> Span:
        """Return how long it can hold a row back."""

    @abstractmethod
    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        """Return what it adds to how far back its stage depends on input."""

    # --- rewrites ------------------------------------------------------------------------

    @property
    @abstractmethod
    def by_position(self) -> bool:
        """Tell whether it reads columns by position, so that its inputs must not have others."""

    @abstractmethod
    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        """Return the columns of each input that it, or a reader that needs `wanted`, reads."""

    @abstractmethod
    def slimmed(self, wanted: Names) -> Self:
        """Return the operator without columns that it computes but `wanted` lacks."""

    @abstractmethod
    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        """Return where predicates can move that hold for all rows that the reader uses.

        None of them can fail."""

    # --- words ---------------------------------------------------------------------------

    @abstractmethod
    def kept(self) -> str:
        """Return a text with what a vertex keeps for it; empty if it keeps nothing."""

    @abstractmethod
    def detail(self) -> str:
        """Return a text with what it does, shown after its name; empty if the name is enough."""


# --- what a node remembers -----------------------------------------------------------------

T = TypeVar("T")


def schema(node: Node) -> Schema:
    """Return the payload columns of a node's rows and the type of its time columns."""
    return computed(node, "_schema", lambda n: n.schema_over([schema(i) for i in n.inputs]))


def computed(node: Node, name: str, compute: Callable[[Node], T]) -> T:
    """Compute a fact of a node from the same fact of its inputs, and store it at each node.

    The inputs come first, so that deep plans need no deep stack.
    """
    stack = [] if name in node.__dict__ else [node]
    while stack:
        unknown = [i for i in stack[-1].inputs if name not in i.__dict__]
        if unknown:
            stack += unknown
        else:
            top = stack.pop()
            object.__setattr__(top, name, compute(top))
    fact: T = node.__dict__[name]
    return fact
