# `make demo` and `make test` install everything that they need.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
OLDEST_RQ := 2.9.0
TESTERS ?= 4  # most tests wait for processes, not for a processor

UV := 0.13.9

.PHONY: help install demo test tests real faults check collect bench prices lock clean

install: .venv/.installed  ## .venv with all tools

# pip uses one core. Beside it zig compiles the hook and, in a new environment, its C library.
.venv/.installed: pyproject.toml constraints.txt Makefile $(wildcard native/*.c native/*.h native/*.py)
	@$(PYTHON) -c 'import sys; sys.exit("hivepipe needs Python 3.11 or later: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(PIP) -c constraints.txt "ziglang; sys_platform == 'linux' or sys_platform == 'darwin'"
	$(BIN)/python native/build.py & \
	  $(PIP) -c constraints.txt -e '.[embedded,summaries,team,web,dev]' && \
	  $(PIP) --no-deps --upgrade --target .venv/rq-oldest rq==$(OLDEST_RQ) && wait $$!
	$(BIN)/python -m compileall -qq -j 0 .venv
	@touch $@

help:  ## this list
	@awk -F ':.*  ## ' '/^[a-z]+:.*  ## / { printf "make %-9s%s\n", $$1, $$2 }' Makefile

demo: install  ## a day of work through real hooks and a real stack, whose processes are killed
	$(BIN)/hivepipe demo

test: install  ## the checks and the tests; only .ci/run tests a hook for another machine
	$(MAKE) --no-print-directory -j2 check tests

# A test that fails on a loaded machine is run once more, alone and on the disk: a real fault fails again.
# Exit code 1 means that tests failed; after any other code nothing is run again.
tests: collect  ## the tests alone
	TEST_IN_MEMORY=1 $(BIN)/python -m pytest -q -n $(TESTERS) --dist worksteal || \
	  { [ $$? = 1 ] && $(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none; }

# Compile all test modules once, so that the test processes do not each compile them.
collect: .venv/collected.log

.venv/collected.log: .venv/.installed $(shell find hivepipe tests -name '*.py')
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -qq --collect-only > $@ || (cat $@; rm $@; exit 2)

faults: install  ## inject faults in seeded rounds and report them: tests/faults/README.md
	HIVEPIPE_TEST_ROUNDS=$${HIVEPIPE_TEST_ROUNDS:-160} \
	  $(BIN)/python -m pytest -q -p no:randomly -n $(TESTERS) tests/faults/test_rounds.py

real: install  ## play scripts with the real Claude Code from npm: tests/real/README.md; VERSION=latest, SHORT=yes
	$(BIN)/python -m tests.real.run $(if $(SHORT),--short) $(VERSION)

check: install  ## format, lint, types, layers, known vulnerabilities
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/audit.py

bench: install  ## all benchmarks, with a table and a picture; half an hour or more
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/run_all.py --page

prices: install  ## write the prices of the installed genai-prices into the price table
	$(BIN)/python .ci/prices.py

lock: install  ## write requirements.lock, after a change of pyproject.toml or constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV)
	printf 'hatchling>=1.26\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate -c constraints.txt --extra embedded --extra summaries --extra team --extra web pyproject.toml - -o requirements.lock

clean:  ## delete .venv and all caches
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
