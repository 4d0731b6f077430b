"""Forms of statements.

Holes are those of expressions, and: `{!x:int}` a new variable that later holes and statements may
use, `{%x:int}` one that only later holes of this form may, `{?int}` a variable that is there and
may be set, `{B}` a line for a block of statements, `{L}` for one in a loop, `{F}` for one in
a function inside of this one.
"""

from __future__ import annotations

PLAIN = (
    *("{!x:KIND} = {KIND}",) * 4, "{?int} += {int}", "{?int} = {int}", "{?str} = {str}",
    "if {bool}:\n    {B}", "if {bool}:\n    {B}\nelse:\n    {B}",
    "if {bool}:\n    {B}\nelif {bool}:\n    {B}\nelse:\n    {B}", "if {bool}:\n    return",
    "{!x:int}, {!y:str} = {int}, {str}", "pass", "for {%x:int} in [*{ints}]:\n    {L}",
    "assert {int} < 10**9, {str}",
)  # fmt: skip
"""Statements of handlers that are meant to run in columns."""

WIDE = (
    # Assignments.
    *("{!x:KIND} = {KIND}",) * 10, "{!x:int}: int = {int}", "{!x:strs}: 'list[str]' = {strs}", "{!x:int} = {!y:int} = {int}",
    "{!x:int}, {!y:str} = {tis}", "({!x:int}, {!y:int}) = ({int}, {int})", "[{!x:int}, *{!y:ints}] = [{int}, *{ints}]", "*{!x:ints}, {!y:int} = (*{ints}, {int})",
    "({!x:int}, ({!y:str}, {!z:int})) = {int}, ({str}, {int})", "{?int} = {int}", "{?str} = {str}", "{?ints} = {ints}", "{?float} = {float}", "{?int}, {!x:int} = {int}, {int}",
    "{?int} += {int}", "{?int} -= {int}", "{?int} *= {small}", "{?int} //= {pos}", "{?int} %= {pos}", "{?int} |= {small}", "{?int} &= {int}", "{?int} ^= {small}", "{?int} <<= 1", "{?int} >>= {small}",
    "{?float} /= {pos}", "{?float} -= {float}", "{?float} **= 2" , "{?str} += {str}", "{?ints} += {ints}", "{?ints} *= 2", "{?sint} |= {sint}", "{?dsi} |= {dsi}",
    "{?int} = {?int}", "{!x:ints} = {?ints}\n{x}.append({int})", "{!x:ints} = {ints}\n{!y:ints} = {x}\n{y}.append({int})",
    # Objects that are changed in place.
    "{?ints}.append({int})", "{?ints}.extend({ints})", "{?ints}.insert(0, {int})", "{?ints}.sort()", "{?ints}.reverse()", "{?ints}.clear()", "{?ints}[:0] = {ints}", "{?ints}[1:2] = [{int}]", "del {?ints}[:1]",
    "{!x:ints} = [{int}, {int}]\n{x}[0] += {int}\n{x}[-1] = {int}", "{!x:ints} = [{int}, *{ints}]\ndel {x}[0]", "{!x:ints} = [{int}, *{ints}]\n{!y:int} = {x}.pop()",
    "{?strs}.append({str})", "{?dsi}[{str}] = {int}", "{?dsi}.update({dsi})", "{?dsi}.update(a={int})", "{?dsi}.setdefault({str}, {int})", "{?dsi}.pop({str}, None)", "{?dsi}[{str}] = {?dsi}.get({str}, 0) + {int}",
    "{!x:sint} = {{int}}\n{x}.add({int})", "{!x:sstr} = {{str}}\n{x}.update({strs})", "{?counter}.update({strs})", "{?counter}[{str}] += {int}", "{?ddict}[{str}] += {int}", "{?ddict}[{str}]",
    "{?deq}.append({int})", "{?deq}.appendleft({int})", "{?deq}.rotate(1)", "{?sio}.write({str})", "{!x:nested} = [[{int}] for _ in range(2)]\n{x}[1].append({int})", "{!x:nested} = [[]] * 2\n{x}[0].append({int})",
    "{!x:nested} = [{ints}]\nfor {%y:ints} in [*{x}]:\n    {y}.append({int})", "{%f:any} = {?ints}.append\n{f}({int})", "{!x:ints} = {ints} if {bool} else {ints}\n{x}.append({int})", "list(map({?ints}.append, [*{ints}]))", "[{?ints}.append({x}) for {$x:int} in [*{^ints}]]",
    "heapq.heapify({?ints})\nheapq.heappush({?ints}, {int})", "bisect.insort({?ints}, {int})", "{%x:ints} = [{int}, *{ints}]\nheapq.heapify({x})\n{!y:int} = heapq.heappop({x})", "{!x:bytes} = bytearray(b'ab')\n{x}[0] = 65",
    "{!x:ints} = {ints}\n{x}.__iadd__({ints})", "operator.iadd({?ints}, {ints})", "{!x:int} = 0\nfor {x} in [*{ints}]:\n    pass",
    "{%x:it} = {it}\n{!y:int} = next({x}, 0)\n{!z:ints} = list({x})", "{%x:it} = map({fii}, {ints})\n{!y:ints} = [*{x}, *{x}]", "{!x:dsi} = {}\nfor {%y:str} in [*{strs}]:\n    {x}[{y}] = {x}.get({y}, 0) + 1", "{!x:strs} = []\n[{x}.append(c) for c in {str}]",
    # Flow.
    *("if {bool}:\n    {B}", "if {bool}:\n    {B}\nelse:\n    {B}") * 2, "if {bool}:\n    {B}\nelif {bool}:\n    {B}\nelse:\n    {B}", "if ({%x:int} := {int}) > 2:\n    {B}", "if {bool}:\n    return", "if {bool}:\n    return {any}",
    "for {%x:int} in [*{ints}]:\n    {L}", "for {%x:str} in [*{strs}]:\n    {L}\nelse:\n    {B}", "for {%x:int} in range({small} % 4):\n    if {bool}:\n        continue\n    {L}", "for {%x:int}, {%y:str} in enumerate([*{strs}]):\n    {L}",
    "for {%x:str}, {%y:int} in [*{pairs}]:\n    {L}\n    if {bool}:\n        break\nelse:\n    {B}", "for {%x:int} in itertools.islice({it}, 9):\n    if {bool}:\n        break\n    {L}", "for {%x:ints} in [*{nested}]:\n    for {%y:int} in [*{x}]:\n        if {bool}:\n            break\n    else:\n        continue\n    {L}",
    "{%x:any} = {small} % 5\nwhile {x} > 0:\n    {x} -= 1\n    {L}", "{%x:any} = 0\nwhile True:\n    {x} += 1\n    if {x} > 3 or ({bool}):\n        break\n    {L}", "{%x:any} = {ints}[:4]\nwhile {x}:\n    {%y:int} = {x}.pop()\n    {L}\nelse:\n    {B}", "while ({%x:int} := {int}) > 10**6:\n    break",
    "{!x:int} = 0\nfor {%y:int} in [*{ints}]:\n    {x} += {y}\n    {L}", "{!x:ints} = [0]\nfor {x}[0] in [*{ints}]:\n    pass", "for *{%x:ints}, {%y:int} in [(1, {int}), (2, 3, {int})]:\n    {L}", "pass", "...", "{any}", "'a text'",
    # Exceptions.
    "try:\n    {B}\nexcept ValueError:\n    {B}", "try:\n    {!x:int} = int({str})\nexcept ValueError:\n    {x} = {int}", "try:\n    {!x:int} = {int} // {int}\nexcept (ZeroDivisionError, TypeError) as {$e:any}:\n    {x} = len(str({e}))",
    "try:\n    {!x:int} = {dsi}[{str}]\nexcept KeyError as {$e:any}:\n    {x} = len({e}.args)\nelse:\n    {B}\nfinally:\n    {B}", "try:\n    {B}\nfinally:\n    {B}", "for {%x:int} in [*{ints}]:\n    try:\n        if {bool}:\n            continue\n        if {bool}:\n            break\n        {L}\n    finally:\n        {B}",
    "try:\n    raise KeyError({str})\nexcept LookupError as {$e:any}:\n    {!x:str} = repr({e})", "try:\n    try:\n        raise ValueError({int})\n    except ValueError as {$e:any}:\n        raise TypeError('t') from {e}\nexcept TypeError as {$f:any}:\n    {!x:str} = type({f}.__cause__).__name__",
    "try:\n    raise ExceptionGroup('g', [ValueError({int}), KeyError('k')])\nexcept* ValueError as {$e:any}:\n    {!x:int} = len({e}.exceptions)\nexcept* KeyError:\n    {B}", "try:\n    {B}\nexcept* (ValueError, TypeError):\n    {B}\nelse:\n    {B}\nfinally:\n    pass", "try:\n    {B}\nexcept Exception:\n    pass",
    "try:\n    assert {bool}, {str}\nexcept AssertionError:\n    {B}", "assert {int} < 10**9", "assert isinstance({int}, int), {str}", "if {int} > 10**9:\n    raise RuntimeError({str})", "if {bool} and {int} == 77:\n    raise ValueError({str}) from None", "try:\n    {!x:int} = [{int}][{small}]\nexcept IndexError:\n    {x} = -1",
    "try:\n    raise\nexcept RuntimeError:\n    {B}", "try:\n    {B}\nexcept:\n    raise", "{!x:int} = 0\nwith contextlib.suppress(ValueError):\n    {x} = int({str})\n    {B}",
    # Match.
    "match {int}:\n    case 0:\n        {B}\n    case 1 | 2:\n        {B}\n    case {%x:int} if {bool}:\n        {B}\n    case _:\n        {B}", "match {any}:\n    case None:\n        {B}\n    case True | False:\n        {B}\n    case int({%x:any}) | float({x}):\n        {B}\n    case str() as {%y:str}:\n        {B}\n    case [_, *_]:\n        {B}\n    case {'a': {%z:int}, **{%w:any}}:\n        {B}",
    "match {ints}:\n    case []:\n        {B}\n    case [{%x:int}]:\n        {B}\n    case [{%y:int}, *{%z:ints}]:\n        {B}", "match {dsi}:\n    case {'a': 1}:\n        {B}\n    case {'a': {%x:int}, **{%y:dsi}}:\n        {B}\n    case _:\n        {B}", "match {tis}:\n    case (0, _):\n        {B}\n    case ({%x:int}, 'a' | 'b' as {%y:str}):\n        {B}\n    case [{%z:int}, str({%w:str})] if {bool}:\n        {B}",
    "match {str}:\n    case string.digits:\n        {B}\n    case 'a' | 'b':\n        {B}\n    case {%x:str} if {x}.isalpha():\n        {B}", "match {int}, {str}:\n    case -1, _:\n        {B}\n    case int(real={%x:int}), 'a':\n        {B}", "match {frac}:\n    case fractions.Fraction(numerator={%x:int}, denominator=1):\n        {B}",
    # Functions, classes, generators.
    "def {!f:fii}({$a:int}, {$b:int}={int}):\n    {F}\n    return {int}", "def {!f:fii}({$a:int}, /, *{$b:tints}, {$c:int}={int}, **{$d:dsi}):\n    {F}\n    return {int}", "def {!f:fss}({$a:str}):\n    '''Says a text.'''\n    if {bool}:\n        return {str}\n    return {str}",
    "def {!f:fii}({$a:int}):\n    return {a} if {a} <= 1 else {a} % 50 + {f}({a} % 50 - 1) % 1000", "{!x:int} = {int}\ndef {%f:f0i}():\n    nonlocal {x}\n    {x} += {small}\n    return {x}\n{f}()\n{!y:int} = {f}()", "def {%f:any}({$a:int}):\n    def {$g:f0i}():\n        nonlocal {a}\n        {a} += 1\n        return {a}\n    return {g}\n{!h:f0i} = {f}({int})\n{h}()",
    "def {%g:any}({$a:ints}):\n    for {%i:int} in [*{a}]:\n        yield {int}\n    return {int}\n{!x:ints} = list({g}({ints}))", "def {%g:any}({$a:int}):\n    {%b:int} = yield {a}\n    while {b}:\n        {b} = yield {b} - 1\n{%c:any} = {g}({int})\nnext({c})\n{!x:any} = {c}.send(0 if {bool} else 2) if False else {small}\n{c}.close()",
    "def {%g:any}({$a:ints}):\n    {%b:int} = yield from {a}\n    yield {int}\n{!x:ints} = [*{g}({ints})]", "def {%g:any}():\n    try:\n        yield {int}\n    finally:\n        {?ints}.append({int})\nfor {%x:int} in {g}():\n    {L}", "def {%g:any}():\n    {%r:int} = 0\n    while True:\n        {%v:int} = yield {r}\n        if {v} is None:\n            return {r}\n        {r} += {v}\n{%c:any} = {g}()\nnext({c})\n{!x:int} = {c}.send({int})",
    "def {%d:any}({$f:fii}):\n    @functools.wraps({f})\n    def {$g:any}(*args, **more):\n        return {f}(*args, **more) + 1\n    return {g}\n@{d}\ndef {!h:fii}({$a:int}):\n    return {int}", "@functools.lru_cache(maxsize=None)\ndef {!f:fii}({$a:int}):\n    return {a} % 7", "@functools.cache\ndef {!f:fii}({$a:int}):\n    {F}\n    return {int}", "{!f:fii} = (lambda {$a:int}: {int})",
    "class {%C:any}:\n    a = {int}\n    def __init__(self, b):\n        self.b = b\n    def get(self):\n        return self.a + self.b\n{%o:any} = {C}({int})\n{o}.b += {int}\n{!x:int} = {o}.get()", "class {%C:any}:\n    __slots__ = ('n',)\n    def __init__(self):\n        self.n = 0\n    def hit(self, by):\n        self.n += by\n        return self\n{%o:any} = {C}()\n{o}.hit({int}).hit({int})\n{!x:int} = {o}.n",
    "class {%A:any}:\n    def f(self, x):\n        return x + 1\nclass {%B:any}({A}):\n    def f(self, x):\n        return super().f(x) * 2\n    @property\n    def p(self):\n        return {int}\n    @staticmethod\n    def s(x):\n        return x\n    @classmethod\n    def c(cls):\n        return cls()\n{!x:int} = {B}.c().f({int}) + {B}().p + {B}.s({int})",
    "class {%C:any}(Exception):\n    pass\ntry:\n    if {bool}:\n        raise {C}({str})\n    {B}\nexcept {C} as {$e:any}:\n    {B}", "@dataclasses.dataclass\nclass {%D:any}:\n    a: int\n    b: list = dataclasses.field(default_factory=list)\n    def note(self, x):\n        self.b.append(x)\n{%o:any} = {D}({int})\n{o}.note({int})\n{!x:ints} = [{o}.a, *{o}.b]\n{!y:str} = repr({o}.b)",
    "class {%M:any}:\n    def __matmul__(self, o):\n        return {int}\n    def __rmatmul__(self, o):\n        return 2\n    def __imatmul__(self, o):\n        return self\n    def __getitem__(self, at):\n        return {int} if isinstance(at, slice) else 1\n    def __len__(self):\n        return {small}\n    def __bool__(self):\n        return {bool}\n    def __call__(self, *a):\n        return len(a)\n    def __contains__(self, x):\n        return {bool}\n    def __iter__(self):\n        return iter({ints})\n    def __eq__(self, o):\n        return {bool}\n{%m:any} = {M}()\n{m} @= 1\n{!x:int} = {m} @ {m} + 1 @ {m} + {m}[1:2, ::3] + len({m}) + {m}(*{ints})\n{!y:ints} = [*{m}] if {m} else [int(1 in {m})]",
    "class {%W:any}:\n    def __enter__(self):\n        self.n = {int}\n        return self\n    def __exit__(self, kind, error, trace):\n        self.n += 1\n        return {bool}\nwith {W}() as {%w:any}:\n    {B}\n    {w}.n += 2\n{!x:int} = {w}.n", "@contextlib.contextmanager\ndef {%w:any}({$a:ints}):\n    {a}.append(1)\n    try:\n        yield {a}\n    finally:\n        {a}.append({int})\n{!x:ints} = []\nwith {w}({x}) as {%y:ints}, contextlib.nullcontext({int}) as {%z:int}:\n    {B}",
    "with io.StringIO() as {%o:any}:\n    {o}.write({str})\n    {!x:str} = {o}.getvalue()", "with contextlib.ExitStack() as {%o:any}:\n    {o}.callback({?ints}.append, {int})\n    {B}", "class {%E:any}(enum.Enum):\n    A = 1\n    B = 2\n{!x:str} = {E}(1 + ({int} & 1)).name\nmatch {E}[{x}]:\n    case {E}.A:\n        {B}\n    case _:\n        {B}", "class {%N:any}(typing.NamedTuple):\n    a: int\n    b: str = 'q'\n{%n:any} = {N}({int})\n{!x:int} = {n}.a\n{!y:str} = {n}._replace(b={str}).b",
    # Asynchronous code, driven by hand.
    "async def {%a:any}({$x:int}):\n    return {int}\nasync def {%b:any}():\n    return await {a}({int}) + 1\ntry:\n    {b}().send(None)\nexcept StopIteration as {$s:any}:\n    {!x:int} = {s}.value",
    "async def {%a:any}():\n    for {%i:int} in [*{ints}]:\n        yield {i}\nclass {%W:any}:\n    async def __aenter__(self):\n        return {int}\n    async def __aexit__(self, *a):\n        return False\nasync def {%b:any}():\n    {%r:ints} = [{y} async for {$y:int} in {a}()]\n    async for {%z:int} in {a}():\n        {r}.append({z})\n    async with {W}() as {%w:int}:\n        {r}.append({w})\n    return {r}\ntry:\n    {b}().send(None)\nexcept StopIteration as {$s:any}:\n    {!x:ints} = {s}.value",
    # Names.
    "{%x:int} = {int}\ndel {x}", "{%x:int}, {%y:ints} = {int}, {ints}\ndel {x}, {y}[:1]", "{!x:dsi} = {'a': {int}, 'b': 2}\ndel {x}['a']", "import math as {%m:any}\n{!x:int} = {m}.floor({float})", "from itertools import chain as {%c:any}\n{!x:ints} = list({c}({ints}, {ints}))", "import collections.abc\n{!x:bool} = isinstance({ints}, collections.abc.Sequence)", "import json, re", "global LIMIT\nLIMIT = {int}",
)  # fmt: skip

SINCE_3_12 = (
    "type {%T:any} = list[int]\n{!x:str} = {T}.__name__", "def {!f:fii}[{$T:any}]({$a:int}) -> {T}:\n    return {int}",
    "class {%C:any}[{$T:any}, *{$U:any}, **{$V:any}]:\n    a = {int}\n{!x:int} = {C}.a",
)  # fmt: skip
"""Statements that Python 3.11 does not have."""
