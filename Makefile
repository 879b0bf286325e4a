# Every target works on a fresh machine with Python 3.11 or newer: what it needs is installed
# into .venv on first use, and again only when pyproject.toml or constraints.txt change.
#
#   make PYTHON=/path/to/python3 demo     to choose the Python
#   make test PYTEST_ARGS="-k widths -n 0"

VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3 python; do \
    $$python -c "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))" 2>/dev/null \
    && echo $$python && break; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help install demo quick test test-slow test-all test-minimum test-numerics lint format types notebooks docs wheel-check benchmarks-smoke gpu check clean

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## /\1 | /p' Makefile | awk -F'[|]' '{ printf "  make %-18s%s\n", $$1, $$2 }'

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
	    echo "Needs Python 3.11 or newer with venv (on Debian and Ubuntu: apt install python3-venv)."; \
	    exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(VENV)/.installed-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[plot,studies]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(VENV)/.installed-demo $@

install: $(VENV)/.installed-dev ## Make .venv with everything the other targets use.

demo: $(VENV)/.installed-demo ## Tune a classifier with late results: a table, a picture. Killed, it goes on.
	MPLBACKEND=Agg $(BIN)/python -m benchmarks.demo

# One thread in each of several test processes: the tests' matrices are small. Those of a module stay
# together while all processes are busy, and what they share is made once.
IN_PROCESSES := -n logical --maxprocesses 4 --dist worksteal
quick: lint ## Check lint, the types and the tests of what differs from the main branch.
	files=$$({ git diff --name-only --diff-filter=d $$(git merge-base HEAD main || echo HEAD) -- \
	    'botorch_ext/*.py'; git ls-files --others --exclude-standard 'botorch_ext/*.py'; }) \
	    && { test -z "$$files" || $(BIN)/pyright --pythonpath $(BIN)/python $$files; }
	tests=$$($(BIN)/python -m tests.touched) && { test -z "$$tests" || OMP_NUM_THREADS=1 \
	    $(BIN)/python -m pytest -q $(IN_PROCESSES) -m "not slow" $(PYTEST_ARGS) $$tests; }

test: $(VENV)/.installed-dev ## Run the tests, without the slow ones.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(IN_PROCESSES) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.installed-dev ## Run the slow tests.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(IN_PROCESSES) -m slow $(PYTEST_ARGS)

# In one run, as each process collects all tests first. SETTING=plain runs them in a setting of
# tests/numerics.py.
test-all: $(VENV)/.installed-dev ## Run all tests.
	OMP_NUM_THREADS=1 $(BIN)/python -m $(if $(SETTING),tests.numerics $(SETTING) --,pytest) \
	    $(IN_PROCESSES) $(PYTEST_ARGS)

test-numerics: $(VENV)/.installed-dev ## Run the tests with the rounding of other processors.
	$(BIN)/python -m tests.numerics -- $(IN_PROCESSES) -m "not slow" $(PYTEST_ARGS)

# The oldest versions that pyproject.toml allows, in an environment of their own.
test-minimum: | $(BIN)/python ## Run the tests with the oldest versions of what the package needs.
	test -x $(VENV)-minimum/bin/uv || { $(BIN)/python -m venv $(VENV)-minimum && \
	    $(VENV)-minimum/bin/python -m pip install --disable-pip-version-check uv; }
	$(VENV)-minimum/bin/uv pip install --python $(VENV)-minimum/bin/python \
	    --resolution lowest-direct -e ".[dev]"
	OMP_NUM_THREADS=1 $(VENV)-minimum/bin/python -m pytest $(IN_PROCESSES) -m "not slow" $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev ## Check format, lint and what imports what.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-dev ## Format, and fix what can be fixed by itself.
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

types: $(VENV)/.installed-dev ## Check the types.
	$(BIN)/pyright --pythonpath $(BIN)/python

# The errors-for-warnings of the tests do not concern the machinery that runs a notebook.
notebooks: $(VENV)/.installed-dev ## Run every notebook from its first cell to its last.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(IN_PROCESSES) --nbmake --nbmake-kernel=python3 \
	    --nbmake-timeout=600 -o filterwarnings=default notebooks

docs: $(VENV)/.installed-dev ## Build the pages into build/docs; every warning is an error; check their layout.
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs build/docs
	PAGES_ARE_BUILT=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 0 tests/documentation/test_built_pages.py
	@echo "build/docs/index.html"

# The environment sees the dependencies of $(VENV), and not the checkout: a path file's folder is
# searched for modules, and path files in it (such as that of the editable install) are not read.
wheel-check: $(VENV)/.installed-dev ## Build a wheel and run the README's examples with it alone.
	rm -rf build/wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation -w build/wheel .
	$(BIN)/python -m venv build/wheel/env
	build/wheel/env/bin/python -m pip install --quiet --no-deps --no-index build/wheel/*.whl
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
	    > "$$(build/wheel/env/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/dependencies.pth"
	cd build/wheel && env/bin/python -I "$(CURDIR)/tests/documentation/run_examples.py" "$(CURDIR)/README.md"

benchmarks-smoke: $(VENV)/.installed-dev ## Run every benchmark with --smoke.
	OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m benchmarks.smoke

gpu: $(VENV)/.installed-dev ## Measure this machine's GPU: tests, parts, hot paths, beside BoTorch.
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.gpu

check: lint types test-all notebooks docs wheel-check benchmarks-smoke ## Everything a change must pass.

clean: ## Remove .venv and caches.
	rm -rf $(VENV) $(VENV)-minimum build dist out docs/notebooks docs/results docs/history docs/api/names .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
