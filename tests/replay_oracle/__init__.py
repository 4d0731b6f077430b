"""The oracle of replay: an app run as the plain serial loop that it means, written apart from
the engine.

`loop.py` runs an app's source text over logs with plain dicts, one event after the other; it
shares nothing with the engine but the specification (docs/design/0017-replay.md, "What an app
means"). `worked.py` has examples with answers by hand, `programs.py` draws random apps and
`logs.py` random logs, `shrinking.py` makes a failing one small, `wrong_loops.py` holds loops with
one mistake each, which the tests must tell from the right one. `engine.py` is the one place that
touches the engine; `offline.py` packs many apps into few Spark jobs.

`python -m replay_oracle --help` (with `tests` in PYTHONPATH) runs many programs, or one seed.
"""
