# Everything from one command: `make demo` or `make test` on a fresh machine with Python 3.11+ (and Java 17+ for Spark).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
FLINK := .venv-flink
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt
# Tests wait for Spark now and then: three processes keep two cores busy.
WORKERS ?= 3
# Sources are compiled once, not anew in each of the many processes that tests and Spark start.
unexport PYTHONDONTWRITEBYTECODE

say = @printf '\n== %s\n' '$(1)'

.PHONY: help
help: ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

# What kernels are made with comes first: they are compiled while the rest is installed.
$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "shedjoin needs Python 3.11 or newer, but $(PYTHON) is %d.%d: name another with make PYTHON=python3.12" % sys.version_info[:2])'
	$(call say,making $(VENV) and installing the pinned packages (a few minutes the first time))
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"])')
	@touch $@

$(READY): $(CORE) lab/pyproject.toml
	@$(INSTALL) --editable '.[dev]' --editable lab
	@touch $@

.PHONY: demo
demo: $(READY) ## a streaming join on Spark with a quarter of the memory it needs
	@$(BIN)/shedjoin demo

.PHONY: test
test: $(CORE) ## lint, types, import layers, doctests, tests; twice: compiled and with the JIT off
	@$(MAKE) --no-print-directory --jobs 2 kernels interpreted
	$(call say,tests and doctests - compiled)
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal --durations 25
	$(call say,all good)

.PHONY: test-page
test-page: $(READY) ## the page of `shedjoin dashboard` in Chromium (Debian's package)
	@command -v chromium chromium-browser >/dev/null || { echo 'make test-page needs Chromium: apt-get install chromium'; exit 1; }
	@$(INSTALL) --editable '.[page]'
	$(call say,the dashboard in Chromium)
	@NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -m page tests/dashboard

.PHONY: site
site: $(READY) ## the documentation as a site, in build/site
	@$(INSTALL) --editable '.[site]'
	$(call say,the site)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo build/site/start.html

.PHONY: kernels
kernels: $(CORE) ## compile all kernels, once: they are kept on disk
	$(call say,kernels (compiled beside what comes next))
	@PYTHONPATH=src $(BIN)/python -m shedjoin.cli warm

.PHONY: checks
checks: $(READY) ## lint, types, import layers
	$(call say,what is there)
	@$(BIN)/shedjoin check
	$(call say,lint)
	@$(BIN)/ruff check .
	$(call say,format)
	@$(BIN)/ruff format --check .
	$(call say,types)
	@$(BIN)/mypy
	$(call say,import layers)
	@$(BIN)/lint-imports

.PHONY: interpreted
interpreted: checks ## the tests that are quick enough with the JIT off
	$(call say,tests - with the JIT off)
	@NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -n 2 --dist worksteal -m small

.PHONY: matrix
matrix: $(READY) ## hold the laws against all random inputs and combinations in which any four settings meet, and write docs/matrix.md
	$(call say,every combination of settings)
	@PYTHONPATH=src $(BIN)/python tests/run_matrix.py --jobs 2 $(MATRIX)
	$(call say,all random inputs of the laws)
	@EXAMPLES=all $(BIN)/pytest -q -n $(WORKERS) --dist worksteal tests/test_twin.py tests/test_laws.py tests/engine tests/offline

.PHONY: compare
compare: $(READY) ## compare hundreds of joins on Spark with Spark's own, row for row (goes on where it stopped)
	$(call say,joins beside Spark's own)
	@PYTHONPATH=src $(BIN)/python tests/run_compare.py $(COMPARE)

# PyFlink needs older versions of what shedjoin needs: it has an environment of its own.
$(FLINK)/.ready:
	$(call say,making $(FLINK) and installing PyFlink (some hundred megabytes))
	@$(PYTHON) -m venv $(FLINK)
	@$(FLINK)/bin/python -m pip install --quiet --disable-pip-version-check apache-flink==2.3.0
	@touch $@

.PHONY: flink
flink: $(FLINK)/.ready ## install PyFlink, a peer in make bench

.PHONY: bench
bench: $(READY) $(FLINK)/.ready ## tuples/s of every policy; joins on sets; the join on Spark beside Spark's own, Flink and DuckDB
	@$(BIN)/python benchmarks/policies.py
	@$(BIN)/python benchmarks/predicates.py
	@$(BIN)/shedjoin check
	@$(BIN)/python benchmarks/spark_join.py --flink $(FLINK)/bin/python --page docs/benchmarks-spark.md
	@$(BIN)/python benchmarks/spark_start.py --page docs/benchmarks-spark.md
	@$(BIN)/python benchmarks/spark_time.py --page docs/benchmarks-spark.md
	@$(BIN)/python benchmarks/spark_bytes.py --page docs/benchmarks-spark.md
	@$(BIN)/python benchmarks/spark_nway.py --page docs/benchmarks-nway.md
	@$(BIN)/python benchmarks/spark_sets.py
	@$(BIN)/python benchmarks/spark_deadline.py --page docs/benchmarks-deadline.md

.PHONY: lab
lab: $(READY) ## run the papers experiments, draw the figures, check the claims (goes on where it stopped)
	@$(BIN)/shedjoin check
	@$(BIN)/shedjoin lab run all
	@$(BIN)/shedjoin lab plot all --page docs/figures.md
	@$(BIN)/shedjoin lab claims --write docs/claims.md
	@$(BIN)/shedjoin lab report

.PHONY: lab-quick
lab-quick: $(READY) ## a small version of make lab: few seeds, short sweeps
	@$(BIN)/shedjoin lab run all --quick --seeds 1
	@$(BIN)/shedjoin lab report --quick

.PHONY: format
format: $(READY) ## let ruff put the code in order
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: clean
clean: ## remove the environment and everything made
	rm -rf $(VENV) $(FLINK) dist build lab/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src lab tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
