# `make demo` and `make test` do their whole set-up: they need python3 (3.11 or newer), make and pip, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A folder with docs.parquet and the others; without it the benchmarks take text that every machine has.
CORPORA ?=

# Three processes for two cores, because a third of their time is waiting, for the disk, the browser or Java.
# One has all of Spark, and no file is cut in two.
# What is compiled of tests, and of the package, is kept for the next time, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder

.PHONY: install demo test test-all check wheel bench clean

$(BIN)/neardup: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/dev: $(BIN)/neardup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

$(VENV)/bench: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	@touch $@

# Kernels, a browser, then the tests themselves: compiled or installed once, before tests run side by side and are timed.
$(VENV)/warm: $(VENV)/dev $(wildcard src/neardup/kernels/*.py)
	PYTHONPATH=tests $(BIN)/python -m support.warm
	$(BIN)/python -m pytest --collect-only -qq > $(VENV)/collected
	@touch $@

install: $(BIN)/neardup  ## make .venv with the command .venv/bin/neardup

demo: $(BIN)/neardup  ## find the near-duplicates of a small built-in corpus
	$(BIN)/neardup demo

test: $(VENV)/warm  ## run every test but the long ones
	$(PYTEST)

test-all: $(VENV)/warm  ## run every test, the long ones too: kill sweeps, thousands of seeds, large corpora
	$(PYTEST) -m "long or not long"

check: $(VENV)/dev  ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel: $(BIN)/neardup  ## build dist/, and try the wheel without extras in an empty environment
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	rm -rf dist $(VENV)/wheel
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv $(VENV)/wheel
	$(VENV)/wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	$(VENV)/wheel/bin/python tools/try_core.py

bench: $(VENV)/bench  ## run every benchmark, write benchmarks/results/*.json
	for benchmark in benchmarks/bench_*.py; do \
		$(BIN)/python $$benchmark $(if $(CORPORA),--corpora $(CORPORA)) || exit 1; done

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
