"""Fuzzing: bytes of any kind to whatever reads bytes of others.

`targets.py` has what is fuzzed, `mutating.py` how samples are changed, `test_fuzz.py` a few seconds
of it for each target (`WEIR_FUZZ=200000` for so many executions, as `make fuzz` does), and
`python -m fuzz TARGET` the same guided by coverage, where atheris is installed.
"""
