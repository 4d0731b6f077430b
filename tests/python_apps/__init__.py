"""Random apps drawn from Python's grammar: the engine against the plain serial loop.

A typed grammar (`*_forms.py`, `grammar.py`) draws handlers, helpers and classes from all statements
and expressions of Python, with reads, merges and emits anywhere in them (`accesses.py`). The loop
of the product (`weir.shadow.serial_loop`) runs each app; the engine must give the same, fail on the
same event, or refuse the app before it runs.

    kinds.py           the types that values of drawn code have
    templates.py       forms of code with holes
    grammar.py         fills them: expressions, statements, blocks
    apps.py            whole apps, with logs; all of it follows from a seed
    verdicts.py        runs a case both ways and compares
    node_kinds.py      which kinds of AST nodes were drawn, accepted, staged
    shrinking.py       makes a failing case small
    found.py           small apps that the engine once had wrong

`python -m python_apps --help` (with `tests` in PYTHONPATH) runs many, or shows and shrinks one.
"""
