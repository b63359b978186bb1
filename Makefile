# The two commands of the README, and the habits around them. Everything is installed into .venv.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check format golden fuzz benchmark reality clean

demo: $(VENV)/.run ## run the main job: a workload on 32 machines under three policies, with a comparison and a chart
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo/demo.sh

test: check ## everything CI runs: style, types, layers, tests
	$(BIN)/python -m pytest -n 2

check: $(VENV)/.dev ## style, types and layers only
	$(BIN)/ruff check src tests benchmarks examples scripts
	$(BIN)/ruff format --check src tests benchmarks examples scripts
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## apply the style
	$(BIN)/ruff check --fix src tests benchmarks examples scripts
	$(BIN)/ruff format src tests benchmarks examples scripts

golden: $(VENV)/.dev ## rewrite the examples' expected outputs; review the difference
	$(BIN)/python tests/examples/rewrite.py

SEED ?= 0
INPUTS ?= 200000
fuzz: $(VENV)/.dev ## hostile inputs of every kind, for some minutes; SEED= and INPUTS= choose which and how many
	$(BIN)/python tests/hostile/fuzz.py --seed $(SEED) --inputs $(INPUTS)

benchmark: $(VENV)/.run ## measure; appends to benchmarks/results
	$(BIN)/python benchmarks/policies.py

reality: $(VENV)/.dev ## a real control plane in real time, next to the simulation (twenty minutes, on a quiet machine)
	$(BIN)/python scripts/reality.py --out reality-out

clean:
	rm -rf $(VENV) demo-out reality-out .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "batkube needs Python 3.11 or newer on the PATH, or: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); \
		echo "python3 -m venv does not work; trying to install the system's python3-venv" >&2; \
		apt-get update -q && apt-get install -y -q python3-venv && $(PYTHON) -m venv $(VENV); }

$(VENV)/.run: pyproject.toml | $(BIN)/python
	@echo "installing batkube into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing batkube and its test tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.run
