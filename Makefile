# `make demo` and `make test` do all set-up themselves: a virtual environment in .venv, pinned by constraints.txt.
# With another interpreter (`make test PYTHON=python3.13`) it is .venv-3.13, beside the other.
DEFAULT_PYTHON := $(shell command -v python3.11 || command -v python3)
PYTHON ?= $(DEFAULT_PYTHON)
ifeq ($(PYTHON),$(DEFAULT_PYTHON))
VENV ?= .venv
else
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("{}.{}".format(*sys.version_info))')
endif
BIN := $(VENV)/bin
# Also for the build backend, which pip installs out of sight.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start hundreds of Python processes: with this set, each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo screenshots test check tests quick soak bench frameworks schemas node chromium clean

help:
	@echo "make demo     the commands on bundled samples, a suite on bundled agents, a server that is killed"
	@echo "make screenshots  pictures of every page in docs/screenshots/ (NAMES=\"experiment case\": of some)"
	@echo "make test     format, lint, types, layers and all tests (what CI runs)"
	@echo "make check    only format, lint, types and layers"
	@echo "make tests    only the tests"
	@echo "make quick    only the tests of the core, on the newest Python that is there, in about a minute"
	@echo "make soak     the fault tests of the run service at their full size (about five minutes)"
	@echo "make bench    measure against the peers; writes bench/RESULTS.md"
	@echo "make frameworks  run the programs of docs/frameworks.md with the real frameworks"
	@echo "make schemas  generate schemas/ and the generated parts of docs/"
	@echo "make clean    remove the virtual environments and caches"

$(BIN)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	$(BIN)/python -m compileall -q src
	@touch $@

.cache/bench/bin/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .cache/bench
	.cache/bench/bin/python -m pip install --quiet -e ".[bench]"
	@touch $@

.cache/frameworks/bin/.ready: export PIP_CONSTRAINT := $(CURDIR)/examples/frameworks/constraints.txt
.cache/frameworks/bin/.ready: pyproject.toml examples/frameworks/constraints.txt
	$(PYTHON) -m venv .cache/frameworks
	.cache/frameworks/bin/python -m pip install --quiet -e ".[frameworks]"
	@touch $@

.cache/crewai/bin/.ready: export PIP_CONSTRAINT := $(CURDIR)/examples/frameworks/constraints-crewai.txt
.cache/crewai/bin/.ready: pyproject.toml examples/frameworks/constraints-crewai.txt
	$(PYTHON) -m venv .cache/crewai
	.cache/crewai/bin/python -m pip install --quiet -e ".[crewai]"
	@touch $@

test: check tests

check: $(BIN)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .cache/import-linter

# Four at once keep two cores busy: some tests wait for programs and time limits.
tests: $(BIN)/.dev node chromium
	$(BIN)/python -m pytest -n 4 --dist worksteal

# The core is pure Python over msgspec, where versions of the interpreter differ: limits, layouts, deprecations.
QUICK := tests/_support tests/test_generated.py tests/test_surface.py \
	tests/cli/test_help.py tests/transcript tests/events tests/formats tests/trajectory tests/runs tests/graders

quick: $(BIN)/.dev
	$(BIN)/python -m pytest -n 3 --dist worksteal $(QUICK)

soak: $(BIN)/.dev
	$(BIN)/python -m pytest tests/faults --soak -v

# For the tests with the real AG-UI client, which is a program for Node.
node:
	@command -v node >/dev/null && command -v npm >/dev/null \
	|| { apt-get update -q && apt-get install -y -q --no-install-recommends nodejs npm; } \
	|| { echo "the tests need Node and npm: install them, or run make as a user who may" >&2; exit 1; }

# For the tests of the pages, which look at them in a real browser.
chromium:
	@command -v chromium >/dev/null \
	|| { apt-get update -q && apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core; } \
	|| { echo "the tests need Chromium: install it, or run make as a user who may" >&2; exit 1; }

demo: $(BIN)/.dev
	$(BIN)/python scripts/demo.py

screenshots: $(BIN)/.dev node chromium
	$(BIN)/python scripts/screenshots.py $(NAMES)

frameworks: .cache/frameworks/bin/.ready .cache/crewai/bin/.ready
	@set -e; for program in examples/frameworks/*.py; do echo "== $$program"; \
		case $$program in *crewai*) used=crewai;; *) used=frameworks;; esac; .cache/$$used/bin/python $$program; done

schemas: $(BIN)/.dev
	$(BIN)/python scripts/generate.py

bench: .cache/bench/bin/.ready
	.cache/bench/bin/python -m bench

clean:
	rm -rf .venv .venv-* .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
