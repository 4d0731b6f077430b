"""Bugs in the facts of operators, and in what planning concludes from them."""

from sabotage.bugs import Bug

_STAGES = ("tests/unit/plan/test_stages.py",)
_HOLDS = ("tests/unit/plan/test_holds.py",)
_UNBOUNDED = ("tests/unit/plan/test_live_refusals.py", "tests/unit/spark/test_live_unbounded.py")

BUGS = (
    Bug(
        "a user's operator passes its key on",
        "plan/operators/apply.py",
        "return {}  # a column that it emits may be called like a key, and hold anything",
        "return {key: key for key in self.keys[port]}",
        _STAGES,
    ),
    Bug(
        "a full join passes its left columns on",
        "plan/operators/join.py",
        "whole = False",
        "whole = port == 0",
        _STAGES,
    ),
    Bug(
        "DISTINCT and STITCH hold nothing back",
        "plan/operators/roles.py",
        "return UNBOUNDED",
        "return NONE",
        _HOLDS,
    ),
    Bug(
        "rows of CHOP meet",
        "plan/operators/chop.py",
        "return Meet.NEVER",
        "return Meet.ALL",
        _STAGES,
    ),
    Bug(
        "rows may be held back for ever",
        "plan/live_refusals.py",
        "== UNBOUNDED:",
        "is None:",
        _UNBOUNDED,
    ),
    Bug(
        "allow_unbounded is read by nobody",
        "plan/live_refusals.py",
        'if dict(program.settings).get("allow_unbounded"):',
        "if not program.outputs:",
        _UNBOUNDED,
    ),
    Bug(
        "generated rows have an end",
        "ingress/connectors/rate.py",
        "return self.rows is not None",
        "return True",
        _UNBOUNDED,
    ),
    Bug(
        "followed sources have an end",
        "ingress/connectors/connector.py",
        "has_end = False",
        "has_end = True",
        _UNBOUNDED,
    ),
)
