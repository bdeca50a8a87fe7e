# agent-relay's commands for people who change it. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Many images set it. Each worker of each run then compiles all tests again: 12 s of processor time each.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
PYTHON ?= $(shell .ci/find-python)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest -q
# Many tests wait for other processes: four of them keep one core at work.
AT_ONCE := -n $(shell expr 4 '*' "$$(getconf _NPROCESSORS_ONLN)") --dist worksteal
# Tests that start no program never wait, and each worker has to load all test modules first: one a core.
COMPUTING_AT_ONCE := -n $(shell getconf _NPROCESSORS_ONLN) --dist worksteal
# The real agents compute more while they start. Each worker loads what it is given: their own folder is enough.
REAL := -n $(shell expr 2 '*' "$$(getconf _NPROCESSORS_ONLN)") --dist worksteal -m real tests/real
# What failed beside other tests is run once more, alone, and decides: a machine that stood still for seconds
# is no fault of the product. Both runs stay in the output; a run that ended in any other way has failed.
AGAIN := || { [ $$? = 1 ] && echo 'Running the failed tests once more, alone.' && \
	$(PYTEST) --last-failed --last-failed-no-failures=none

.PHONY: help check format lint types rooms fast test every agents-installed nothing-wrong real newest coverage fuzz bench demo wheel docs clean

help: ## list these commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1\t/' | expand -t 16

# The environment that only runs the product: what `make demo` needs.
$(VENV)/.runtime: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --editable .
	touch $@

# The same environment with the tools of the house.
$(VENV)/.dev: pyproject.toml
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	$(PIP) install --editable '.[dev]'
	touch $(VENV)/.runtime $@

check: format lint types rooms fast ## format, lint, types, rooms and the fast tests

format: $(VENV)/.dev ## put every file into the one layout
	$(BIN)/ruff format .

lint: $(VENV)/.dev ## ruff, all rules
	$(BIN)/ruff check .

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

rooms: $(VENV)/.dev ## the import contracts between rooms
	$(BIN)/lint-imports

fast: $(VENV)/.dev ## the tests that start no programs
	$(PYTEST) $(COMPUTING_AT_ONCE) --hypothesis-profile=quick -m 'not slow and not real and not bench'

test: $(VENV)/.dev ## everything; installs what it needs
	.ci/system-packages
	$(MAKE) --no-print-directory --jobs=2 agents-installed nothing-wrong
	$(PYTEST) $(AT_ONCE) -m 'not real and not bench' $(AGAIN) -m 'not real and not bench'; }
	$(PYTEST) $(REAL) $(AGAIN) -m real tests/real; }

every: ## the same with every case of every test (`make test` plays a share of the long rows of cases)
	EVERY=1 $(MAKE) --no-print-directory test

# Installing waits for the network, and looking computes: beside each other they take as long as one.
agents-installed: $(VENV)/.dev
	$(BIN)/python tests/support/install_clis.py

nothing-wrong: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

real: $(VENV)/.dev agents-installed ## the tests that drive the four real CLIs
	$(PYTEST) $(REAL)

newest: $(VENV)/.dev ## play each agent's newest version through the scenes; WRITE=yes puts the table into docs/agents.md
	$(BIN)/python -m tests.support.newest $(if $(WRITE),--write) $(WITH)

coverage: $(VENV)/.dev ## branch coverage: 100 % of domain and session, 90 % of everything
	$(PYTEST) $(AT_ONCE) -m 'not real and not bench and not timed' --cov --cov-report=
	$(BIN)/coverage report --include='agent_relay/domain/*,agent_relay/session/*' --fail-under=100 --skip-covered
	$(BIN)/coverage report --fail-under=90 --skip-covered

fuzz: $(VENV)/.dev ## what terminals, agents and peers say: MINUTES=60 of inputs nobody planned
	$(BIN)/python -m tests.fuzz.holder --minutes $(or $(MINUTES),60) --seed $(or $(SEED),0)

bench: $(VENV)/.dev ## measure side by side with direct, script, dtach, tmux and screen
	.ci/system-packages
	$(PYTEST) -m bench -s

demo: $(VENV)/.runtime ## a real failover between two scripted agents; no account
	@$(BIN)/agent-relay demo

wheel: $(VENV)/.dev ## build the wheel, install it on the oldest and newest Python here, run the demo
	$(BIN)/python tests/support/try_wheel.py

docs: $(VENV)/.dev ## write the generated pages and the example folder again
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/example_folder.py
	$(BIN)/python docs/failover_picture.py
	$(BIN)/python docs/timeline_picture.py
	$(BIN)/python docs/tried_by_hand.py

clean: ## remove what these commands made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks .coverage
