# `make demo` and `make test` do their whole set-up: they need python3 (3.11 or newer), make and pip, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A folder with docs.parquet and the others; without it the benchmarks take text that every machine has.
CORPORA ?=

.PHONY: install demo test test-all check bench clean

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

install: $(BIN)/neardup  ## make .venv with the command .venv/bin/neardup

demo: $(BIN)/neardup  ## find the near-duplicates of a small built-in corpus
	$(BIN)/neardup demo

test: $(VENV)/dev  ## run every test but the long ones
	$(BIN)/python -m pytest

test-all: $(VENV)/dev  ## run every test, the long ones too: a minute of random cases
	$(BIN)/python -m pytest -m "long or not long"

check: $(VENV)/dev  ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/bench  ## run every benchmark, write benchmarks/results/*.json
	for benchmark in benchmarks/bench_*.py; do \
		$(BIN)/python $$benchmark $(if $(CORPORA),--corpora $(CORPORA)) || exit 1; done

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
