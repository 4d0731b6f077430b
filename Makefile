# Each command makes .venv if there is none and installs what it needs: uv when it is there,
# else Python's own venv and pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# One more than CI has cores: tests that start processes wait a good deal.
WORKERS ?= 3
# Processes read modules compiled, whatever the machine says of it: without, every start of `weir`
# and every worker of Spark takes 0.7 s longer.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help install test pytest lint types warm unit property spark conformance coverage demo figure docs bench fuzz sabotage chaos attack cluster night clean

help:  ## this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(INSTALLED): pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	  [ -x $(BIN)/python ] || uv venv --python $(PYTHON) $(VENV); \
	  uv pip install --quiet --python $(BIN)/python --editable '.[dev]'; \
	else \
	  [ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'; \
	fi
	@# On all cores, which pip does not; some files there are templates, and no Python.
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib || true
	@touch $@

install: $(INSTALLED)  ## .venv with the weir command and the development tools

test: $(INSTALLED)  ## everything that must hold: lint, types, all tests
	@$(MAKE) --no-print-directory -j2 lint warm
	@$(MAKE) --no-print-directory -j2 types pytest

pytest: $(INSTALLED)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

lint: $(INSTALLED)  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(INSTALLED)  ## mypy, strict
	@$(BIN)/mypy

warm: $(INSTALLED)  ## compile the kernels' loops and keep Spark's classes, once for all that runs
	@PYTHONPATH=tests $(BIN)/python -m warm

unit: $(INSTALLED)  ## the fast tests alone
	@$(BIN)/python -m pytest -q -n $(WORKERS) tests/unit src/weir

property: $(INSTALLED)  ## kernels against the oracle, random programs, cuts and restarts
	@$(BIN)/python -m pytest -q -n $(WORKERS) tests/property

spark: $(INSTALLED)  ## the tests on real Spark alone
	@$(BIN)/python -m pytest -q tests/spark

conformance: $(INSTALLED)  ## the cases with known answers, by the command line, on each runner
	@$(BIN)/weir conform tests/conformance/*.jsonl --cut 1,3,none --parallelism 1,3
	@$(BIN)/weir conform tests/conformance/*.jsonl --cut 1,3,none --parallelism 1,3 --runner offline
	@$(BIN)/weir conform tests/conformance/*.jsonl --cut 3 --parallelism 3 --runner live

coverage: $(INSTALLED)  ## all tests, with the lines of src that none of them reached
	@$(BIN)/python -m pytest -q -n $(WORKERS) --cov --cov-report=term

demo: $(INSTALLED)  ## a live pipeline on Spark, a host killed in its middle, the same log offline, a page
	@$(BIN)/python examples/ads/demo.py

figure: $(INSTALLED)  ## StreamScope's Figure 1 program on bundled data
	@sh examples/figure1/demo.sh $(CURDIR)/$(BIN)/weir

docs: $(INSTALLED)  ## the documentation as a site, in build/docs; a link that leads nowhere is an error
	@$(BIN)/python docs/pictures.py
	@$(BIN)/python docs/reference_pages.py
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs
	@echo build/docs/index.html

bench: $(INSTALLED)  ## kernels, offline and live side by side with Polars, DuckDB and Spark
	@PYTHONPATH=tests $(BIN)/python -m benchmarks

fuzz: $(INSTALLED)  ## 200 000 mutated programs, inputs, messages and objects of a store, of each kind
	@WEIR_FUZZ=$(or $(FUZZ),200000) $(BIN)/python -m pytest -q -n $(WORKERS) tests/property/test_script_fuzz.py tests/property/test_source_fuzz.py tests/fuzz

sabotage: $(INSTALLED)  ## plant known bugs one at a time: the tests must find each
	@PYTHONPATH=tests $(BIN)/python -m sabotage

chaos: $(INSTALLED)  ## kills of hosts, executors and drivers all through a live job: one answer
	@PYTHONPATH=tests $(BIN)/python -m chaos $(CHAOS)

cluster: $(INSTALLED)  ## machines in a box that fail, under live jobs on a Spark cluster: one answer
	@PYTHONPATH=tests $(BIN)/python -m cluster $(CLUSTER)
	@PYTHONPATH=tests $(BIN)/python -m cluster.store_faults $(CLUSTER)
	@PYTHONPATH=tests $(BIN)/python -m cluster.jobs $(JOBS)

attack: $(INSTALLED)  ## known attacks on real runs: no wrong answer, no loop, no traceback
	@PYTHONPATH=tests $(BIN)/python -m attack $(ATTACK)

night: $(INSTALLED)  ## all that takes hours: seeds, an adversary, fuzzing, attacks, kills, sabotage
	@$(BIN)/weir simulate --seeds 5000 --jobs 2
	@$(BIN)/weir simulate --seeds 5000 --harm 2 --jobs 2
	@WEIR_NIGHT=1 $(BIN)/python -m pytest -q tests/spark/test_golden_live.py tests/spark/test_large_window.py
	@WEIR_NIGHT=1 $(BIN)/python -m pytest -q tests/unit/test_wheel.py
	@WEIR_NIGHT=1 $(BIN)/python -m pytest -q tests/examples
	@WEIR_NIGHT=1 $(BIN)/python -m pytest -q -n $(WORKERS) tests/replay_oracle tests/python_apps
	@PYTHONPATH=tests $(BIN)/python -m replay_oracle.offline --seeds 1000
	@PYTHONPATH=tests $(BIN)/python -m replay_oracle.batches --programs 20
	@$(MAKE) --no-print-directory conformance fuzz
	@$(MAKE) --no-print-directory attack chaos sabotage

clean:  ## remove what the tools left behind, .venv included
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov
	@rm -rf build demo out examples/figure1/out
	@find examples -name figure1 -prune -o -type d \( -name data -o -name out -o -name what-if \) -prune -exec rm -rf {} +
	@find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
