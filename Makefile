# make sweep CONFIG=config/quickstart.yaml   from a YAML file to results/NAME: dataset, figures, report
# From another folder: make -C HERE sweep CONFIG=$PWD/mine.yaml RESULTS=$PWD/results
# make test | test-long | bench | check | format | docs | clean
# Another interpreter, another environment: make test PYTHON=python3.13 VENV=.venv-3.13

PYTHON ?= python3
VENV ?= .venv
CONFIG ?= config/quickstart.yaml
RESULTS ?= results
PROFILE ?= workflow/profiles/local

BIN := $(VENV)/bin
# Bytecode is compiled where and when a module is first imported: at install it would take longer than all the rest.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt

.PHONY: sweep plan test test-long bench check format docs clean
.DELETE_ON_ERROR:

sweep plan: export PYTHONSAFEPATH := 1

# No shell stays in between, as it would not pass on the signals that end a sweep.
sweep: $(VENV)/.run
	@exec $(BIN)/python workflow/start.py --profile $(PROFILE) --no-hooks --config sweep="$(CONFIG)" results="$(RESULTS)"
	@exec $(BIN)/sweeplib summary "$(CONFIG)" --results "$(RESULTS)"

plan: $(VENV)/.run
	$(BIN)/sweeplib plan "$(CONFIG)" --results "$(RESULTS)"

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not long" --numprocesses 2 --dist loadfile --no-loadscope-reorder

test-long: $(VENV)/.test
	$(BIN)/python -m pytest -m long --timeout 3600

bench: export OPENBLAS_NUM_THREADS := 1
bench: $(VENV)/.run
	$(BIN)/python -m benchmarks

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/sweeplib schema --check

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

docs: $(VENV)/.run
	$(BIN)/sweeplib schema

clean:
	rm -rf $(VENV) .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path "./.git/*" -prune -exec rm -rf {} +

# Each stamp is an installed set of extras, as old as the files that say what is in it.
$(VENV)/.run: EXTRAS :=
$(VENV)/.test: EXTRAS := [test]
$(VENV)/.dev: EXTRAS := [dev]
$(VENV)/.run $(VENV)/.test $(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) --editable ".$(EXTRAS)"
	@touch $@

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) pip
