# Playhead. `make run` speaks in a browser; `make test` runs everything there is to run.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # one environment, and one pip in it

VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -qq --require-virtualenv
# Byte code is made of what is imported, when it is: compiling all of it takes longer than the rest.
INSTALL := $(PIP) install --no-compile

HOST ?= 127.0.0.1
PORT ?= 8080
ARGS ?=
PYTEST_ARGS ?=
SECONDS_AT_MOST ?= 1800

.PHONY: help
help:
	@echo "make run     serve the demo page on http://$(HOST):$(PORT)/ (ARGS='...' goes to playhead serve)"
	@echo "make test    every test, speech recognition and browser included"
	@echo "make quick   the tests that need neither (seconds)"
	@echo "make check   what a change must pass before the tests: lint, format, types"
	@echo "make cover   each pure module fully covered by its own test file"
	@echo "make verify  types, coverage and every test, none twice: what .ci/run does"
	@echo "make torch   lets the tests of the accelerator model run too (on the CPU)"
	@echo "make acceptance  third-party voice clients, unmodified, against this server"
	@echo "make soak-page  ten minutes of speech in one page: its memory must not grow"
	@echo "make pictures  take the pictures of docs/demo.md again"
	@echo "make bench   the highest rate that this machine serves without a gap (ARGS='--lenient' and others)"
	@echo "make soak    half an hour of speech on loopback: memory, descriptors, tasks, loop lag"
	@echo "make reliability  faults, cuts, drains, liars, overload and soaks in full"
	@echo "make clean   forget the virtual environment and everything built"

# A stamp inside the environment is younger than pyproject.toml exactly when the environment
# holds what pyproject.toml asks for; removing the environment removes its stamps. What installs
# more sets the stamps of what it includes too: each call of pip resolves and builds anew.
$(PY):
	@python="$$(scripts/find-python)" && "$$python" -m venv $(VENV)
	@$(INSTALL) --upgrade 'pip>=24'

$(VENV)/.runtime: pyproject.toml | $(PY)
	@echo "Installing Playhead and its voice into $(VENV) (once, a minute or two) ..."
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(PY)
	@echo "Installing Playhead, its test tools and a speech recognizer into $(VENV) (once) ..."
	@$(INSTALL) --editable '.[dev]'
	@touch $(VENV)/.runtime $@

# Verifies the cached graphs by hash and does nothing more when they are good.
.PHONY: voice
voice: $(VENV)/.runtime
	@$(PY) -m playhead.engine.models.hibari.split

.PHONY: run
run: voice
	@$(PY) -c 'from playhead.codecs import opus; print(end=(opus.unavailable() or "") + "\n")' | grep . || true
	@exec $(VENV)/bin/playhead serve --host $(HOST) --port $(PORT) $(ARGS)

.PHONY: system
system:
	@scripts/install-system-packages

# In two lanes beside each other: see scripts/run-tests.
.PHONY: test
test: system $(VENV)/.dev voice
	@$(PY) scripts/run-tests $(PYTEST_ARGS)

.PHONY: verify
verify: system $(VENV)/.dev voice
	@$(PY) scripts/run-tests --all --seconds $(SECONDS_AT_MOST) $(PYTEST_ARGS)

.PHONY: quick
quick: $(VENV)/.dev voice
	@$(PY) -m pytest -m "not slow and not browser and not gpu" $(PYTEST_ARGS)

.PHONY: cover
cover: $(VENV)/.dev voice
	@$(PY) scripts/coverage-gate

# One release of torch for everybody who compares numbers; any build of it will do, also a CPU one.
# Triton comes with those for CUDA; its interpreter runs the kernels' tests on the CPU.
$(VENV)/.torch: pyproject.toml | $(PY)
	@echo "Installing Playhead, its test tools and torch into $(VENV) (once, some minutes) ..."
	@$(INSTALL) --editable '.[dev,qwen]' 'torch==2.13.0' "triton>=3.7; sys_platform == 'linux'"
	@touch $(VENV)/.runtime $(VENV)/.dev $@

.PHONY: torch
torch: $(VENV)/.torch

.PHONY: lint
lint: $(VENV)/.dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --output-format concise .

.PHONY: types
types: $(VENV)/.dev
	@$(PY) scripts/types

.PHONY: check
check: lint types

.PHONY: acceptance
acceptance: system $(VENV)/.dev voice
	@PYTHON=$(PY) scripts/acceptance $(PYTEST_ARGS)

.PHONY: bench
bench: voice
	@$(VENV)/bin/playhead bench search --window 30 --seeds 0 $(ARGS) --serve

.PHONY: soak-page pictures
soak-page: system $(VENV)/.dev voice
	@PYTHONPATH=tests:tests/web $(PY) tests/web/page_soak.py $(ARGS)

# Of docs/images, on a machine that does nothing else.
pictures: system $(VENV)/.dev voice
	@PYTHONPATH=tests:tests/web $(PY) tests/web/pictures.py

# The full forms of what tests/reliability does in brief: about an hour. soak_real alone takes half.
# 77: it cannot be run here, and said why.
.PHONY: reliability
reliability: $(VENV)/.dev voice
	@failed=""; for run in key_timing.py liars.py overload.py overload_batched.py cuts.py races.py unplug.py drain.py \
		"thundering.py --signal kill" "thundering.py --signal term" soak.py soak_real.py tls_records.py; do \
		echo "== bench/reliability/$$run"; \
		$(PY) bench/reliability/$$run || [ $$? -eq 77 ] || failed="$$failed $$run"; done; \
		[ -z "$$failed" ] || { echo "Failed:$$failed"; exit 1; }

# Four minutes of hurry, then thirty that are judged.
.PHONY: soak
soak: $(VENV)/.dev voice
	@$(PY) bench/reliability/soak_real.py $(ARGS)

.PHONY: clean
clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
