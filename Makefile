# ascend-compat: `make demo` and `make test` need only Python 3.10+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
RUNNERS := .venv-runners

.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz test-browser mutants check bench docs clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

setup: $(STAMP) ## create .venv with everything the project needs

demo: $(STAMP) ## build the database and check real job files
	@BIN=$(BIN) sh docs/demo.sh

test: $(STAMP) ## run all tests
	$(BIN)/python -m pytest -n auto

mutants: $(STAMP) ## change every rule and cell of a copy of the matrix, and see that each change is told
	MUTANTS=all $(BIN)/python -m pytest tests/data/test_regress.py -s -k "caught or few"

check: $(STAMP) ## format, lint, types, data lint, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/ascend-compat matrix lint
	$(BIN)/ascend-compat docs check README.md docs/*.md

docs: $(STAMP) ## make the support documentation, in both languages, in site/
	$(BIN)/ascend-compat docs build --out site

fuzz: $(STAMP) ## attack every reader for long: FUZZ_SECONDS each (default 60), and kill hundreds of times
	$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-5000} FAULTS=$${FAULTS:-100} $(BIN)/python -m pytest -n auto tests/trust/test_fuzz.py tests/trust/test_faults.py
	for target in shell verl yaml npu-smi table; do $(BIN)/python tests/trust/fuzz.py $$target $${FUZZ_SECONDS:-60} || exit 1; done

browser: $(STAMP) ## get Chromium (Debian's package; root installs it where it is missing) and what drives it
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || { echo "chromium is missing: apt-get install chromium" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'

test-browser: browser ## look at the site in Chromium
	$(BIN)/python -m pytest tests/browser --override-ini addopts= -q -p no:cacheprovider

$(RUNNERS)/.ready: runners/requirements.txt runners/requirements-bare.txt runners/constraints.txt
	$(PYTHON) -m venv $(RUNNERS)
	$(RUNNERS)/bin/python -m pip install --quiet --disable-pip-version-check -c runners/constraints.txt -r runners/requirements.txt
	$(RUNNERS)/bin/python -m pip install --quiet --disable-pip-version-check -c runners/constraints.txt --no-deps -r runners/requirements-bare.txt
	@touch $@

runners: $(RUNNERS)/.ready ## make .venv-runners: CPU torch, LLaMA-Factory and verl, to run recipes here

test-runners: $(STAMP) $(RUNNERS)/.ready ## really train: recipes on the CPU, through the runners
	$(BIN)/python -m pytest tests/runners --override-ini addopts= -q -p no:cacheprovider

bench: $(STAMP) ## measure (ratios within one run), write the table of docs/performance.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python -m pytest tests/bench --override-ini addopts= -q

clean: ## remove what was made here
	rm -rf $(VENV) $(RUNNERS) build dist site *.egg-info
