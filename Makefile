# The two commands of the README, and the habits around them. Everything is installed into .venv.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin

# Where compiled modules may not be kept, every command of the tests compiles all of them anew: a second or two each.
unexport PYTHONDONTWRITEBYTECODE

PIP := -m pip --quiet --disable-pip-version-check
NOT_INSTALLED = echo "pip could not install the packages (see above): it needs PyPI, or a mirror in PIP_INDEX_URL" >&2; exit 1
# All but what builds real schedulers or needs a real control plane.
LOWEST_TESTS := $(addprefix tests/,api calibration cli cluster controllers execution experiments files kernel outputs platforms policies protobuf text workloads)

.PHONY: browser demo test test-all check format golden fuzz benchmark reality conformance docs dist lock test-lowest clean

demo: $(VENV)/.run ## run the main job: a workload on 32 machines under three policies, with a comparison and a chart
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo/demo.sh

# The tests of the page need a browser. In CI it is installed; elsewhere they are skipped with the reason.
browser:
	@if [ "$(CI)" = true ] && [ "$$(id -u)" = 0 ] && ! command -v chromium > /dev/null && command -v apt-get > /dev/null; then \
		apt-get update -q && apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core || true; fi

test: check browser ## everything CI runs: style, types, layers, tests; what was skipped is listed at the end, with the reason
	$(BIN)/python -m pytest -n 2

test-all: check browser ## the tests of other programs too: seven more kube-schedulers, Go 1.24 to 1.27, a real control plane (an hour)
	BATKUBE_SLOW_TESTS=1 $(BIN)/python -m pytest -n 2

check: $(VENV)/.dev ## style, types and layers only
	$(BIN)/ruff check src tests benchmarks examples scripts
	$(BIN)/ruff format --check src tests benchmarks examples scripts
	$(BIN)/mypy
	$(BIN)/lint-imports --config importlinter.toml

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

conformance: $(VENV)/.dev ## Kubernetes' own conformance suite against a served cluster, with a table (half an hour, and a quarter more to build it, once)
	$(BIN)/python scripts/conformance --out conformance-out

docs: $(VENV)/.dev ## build the documentation site into build/site; open build/site/index.html, no server is needed
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

DIST ?= dist
dist: $(VENV)/.release ## build sdist and wheel into dist, check them, and run the wheel from a clean virtualenv
	rm -rf $(DIST)
	PIP_CONSTRAINT="$(CURDIR)/constraints.txt" $(BIN)/python -m build --outdir $(DIST)
	$(BIN)/twine check --strict $(DIST)/*
	sh scripts/try_wheel.sh $(BIN)/python $(DIST)/*.whl

lock: ## take the newest versions of all dependencies into constraints.txt; review the difference
	rm -rf $(VENV)-lock && $(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python $(PIP) install -e '.[dev,release]'
	{ head -1 constraints.txt; $(VENV)-lock/bin/python $(PIP) freeze --exclude-editable; } > constraints.new
	mv constraints.new constraints.txt && rm -rf $(VENV)-lock

test-lowest: ## the tests that need no building, with the lowest versions that pyproject.toml allows
	rm -rf $(VENV)-lowest && $(PYTHON) -m venv $(VENV)-lowest
	$(PYTHON) scripts/lowest_versions.py > $(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/python $(PIP) install -c $(VENV)-lowest/lowest.txt -e '.[parquet,dask]' pytest hypothesis scipy
	$(VENV)-lowest/bin/python -m pytest -q -o filterwarnings=default -k 'not real_scheduler' $(LOWEST_TESTS)

clean:
	rm -rf $(VENV) $(VENV)-lock $(VENV)-lowest build dist demo-out reality-out conformance-out .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "batkube needs Python 3.11 or newer on the PATH, or: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); \
		echo "python3 -m venv does not work; trying to install the system's python3-venv" >&2; \
		apt-get update -q && apt-get install -y -q python3-venv && $(PYTHON) -m venv $(VENV); }

$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing batkube into $(VENV) (about a minute)"
	@$(BIN)/python $(PIP) install -c constraints.txt -e . || { $(NOT_INSTALLED); }
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing batkube and its test tools into $(VENV) (about a minute)"
	@$(BIN)/python $(PIP) install -c constraints.txt -e '.[dev]' || { $(NOT_INSTALLED); }
	@touch $@ $(VENV)/.run

$(VENV)/.release: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing the tools of a release into $(VENV)"
	@$(BIN)/python $(PIP) install -c constraints.txt -e '.[release]' || { $(NOT_INSTALLED); }
	@touch $@
