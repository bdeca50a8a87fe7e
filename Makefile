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
# Each worker loads all test modules first, and a test that waits for other processes leaves its core to another.
AT_ONCE := -n $(shell expr 2 '*' "$$(getconf _NPROCESSORS_ONLN)") --dist worksteal
# Tests that start no program never wait: one a core.
COMPUTING_AT_ONCE := -n $(shell getconf _NPROCESSORS_ONLN) --dist worksteal

.PHONY: help check format lint types rooms fast test every prepared agents-installed nothing-wrong real newest coverage fuzz bench demo wheel docs clean

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
	$(PYTEST) $(COMPUTING_AT_ONCE) --size=check

test: $(VENV)/.dev prepared ## every promise once, the real CLIs included: ten minutes; installs what it needs
	$(PYTEST) $(AT_ONCE) --size=test

every: $(VENV)/.dev prepared ## every case of every test: before a release
	$(PYTEST) $(AT_ONCE) --size=every

# What a run of more than the fast tests needs, and what is wrong without running anything.
prepared: $(VENV)/.dev
	.ci/system-packages
	$(MAKE) --no-print-directory --jobs=2 agents-installed nothing-wrong

# Installing waits for the network, and looking computes: beside each other they take as long as one.
agents-installed: $(VENV)/.dev
	$(BIN)/python tests/support/install_clis.py

nothing-wrong: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

real: $(VENV)/.dev agents-installed ## the tests that drive the four real CLIs
	$(PYTEST) $(AT_ONCE) tests/real

newest: $(VENV)/.dev ## play each agent's newest version through the scenes; WRITE=yes puts the table into docs/agents.md
	$(BIN)/python -m tests.support.newest $(if $(WRITE),--write) $(WITH)

coverage: $(VENV)/.dev ## branch coverage: 100 % of domain and session, 90 % of everything
	$(PYTEST) $(AT_ONCE) -m 'not timed' --ignore=tests/real --cov --cov-report=
	$(BIN)/coverage report --include='agent_relay/domain/*,agent_relay/session/*' --fail-under=100 --skip-covered
	$(BIN)/coverage report --fail-under=90 --skip-covered

fuzz: $(VENV)/.dev ## what terminals, agents and peers say: MINUTES=60 of inputs nobody planned
	$(BIN)/python -m tests.fuzz.holder --minutes $(or $(MINUTES),60) --seed $(or $(SEED),0)

bench: $(VENV)/.dev ## measure side by side with direct, script, dtach, tmux and screen
	.ci/system-packages
	$(PYTEST) --size=bench -s

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
