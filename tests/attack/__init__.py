"""Attacks on real runs: a wrong answer, an endless loop or a traceback is a failure."""
