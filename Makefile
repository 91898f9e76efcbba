# make sweep CONFIG=config/quickstart.yaml   from a YAML file to results/NAME: dataset, figures, report
# With other values:   make sweep SET="seeds=256 grid.d=300,1000"
# From another folder: make -C HERE sweep CONFIG=$PWD/mine.yaml RESULTS=$PWD/results
# make test | test-rest | test-slow | test-long | test-oldest | test-newest | test-slurm | test-s3 | test-kubernetes | bench | check | format | docs | pictures | schema | clean
# Another interpreter, another environment: make test PYTHON=python3.13 VENV=.venv-3.13

PYTHON ?= python3
VENV ?= .venv
CONFIG ?= config/quickstart.yaml
RESULTS ?= results
PROFILE ?= local
SET ?=
PINS ?= constraints.txt

BIN := $(VENV)/bin
# Bytecode is compiled at the first import of a module: at installation it would take longer than everything else.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(if $(PINS),--constraint $(PINS),--upgrade --upgrade-strategy eager)

.PHONY: sweep plan test test-rest test-slow test-long test-oldest test-newest test-slurm test-s3 test-kubernetes bench check format docs pictures schema clean
.DELETE_ON_ERROR:

sweep plan: export PYTHONSAFEPATH := 1

# No shell process remains in between: it would not pass on the signals that end a sweep.
sweep: $(VENV)/.run
	@exec $(BIN)/sweeplib sweep "$(CONFIG)" $(SET) --results "$(RESULTS)" --profile "$(PROFILE)"

plan: $(VENV)/.run
	$(BIN)/sweeplib plan "$(CONFIG)" $(SET) --results "$(RESULTS)"

# Two processes on two cores leave none for a second thread of linear algebra.
test test-rest test-slow: export OPENBLAS_NUM_THREADS := 1
TWO_PROCESSES := --numprocesses 2 --dist loadfile --no-loadscope-reorder

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not rest and not slow and not long" $(TWO_PROCESSES)

# What `make test` leaves out to stay short, for a change that is about to be merged: first what has quicker tests, then what is slow.
test-rest: $(VENV)/.test
	$(BIN)/python -m pytest -m "rest and not slow and not long" $(TWO_PROCESSES)

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m "slow and not long" $(TWO_PROCESSES)

test-long: $(VENV)/.test
	$(BIN)/python -m pytest -m long --timeout 3600

# The oldest packages that pyproject.toml allows, and the newest that there are, in environments of their own.
test-oldest:
	$(MAKE) test test-rest PINS=constraints-oldest.txt VENV=$(VENV)-oldest

test-newest:
	rm -f $(VENV)-newest/.test # so that newer ones are asked for
	$(MAKE) test test-rest PINS= VENV=$(VENV)-newest

# As root, with Debian's slurm-wlm and munge: starts a SLURM of one machine.
test-slurm: $(VENV)/.test
	$(BIN)/python -m pytest tests/slurm/on_slurm.py --timeout 1800

# With a local S3 server, a hundred megabytes of packages.
test-s3: $(VENV)/.test-s3
	$(BIN)/python -m pytest tests/unit/test_publish_s3.py -m long

# The pods that docs/how-to/clusters.md asks Kubernetes for; no Kubernetes is needed.
test-kubernetes: $(VENV)/.test-kubernetes
	$(BIN)/python -m pytest tests/unit/test_kubernetes.py -m long

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

# The site, in build/docs: no network is needed, and a warning is an error.
docs: $(VENV)/.docs
	rm -rf build/docs
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --fresh-env --quiet \
		--doctree-dir build/doctrees docs build/docs
	@echo build/docs/index.html

# The pictures of docs that differ from what they were made from, drawn again by their configs. PICTURES="staircase reuse": these.
pictures: $(VENV)/.run
	$(BIN)/python docs/extensions/pictures.py $(PICTURES)

schema: $(VENV)/.run
	$(BIN)/sweeplib schema

clean:
	rm -rf $(VENV) .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path "./.git/*" -prune -exec rm -rf {} +

# Each stamp file records an installed set of dependency groups and is compared in age to the files that list their contents.
$(VENV)/.test: GROUP := test
$(VENV)/.dev: GROUP := dev
$(VENV)/.docs: GROUP := docs
$(VENV)/.test-s3: GROUP := test-s3
$(VENV)/.test-kubernetes: GROUP := test-kubernetes
$(VENV)/.run $(VENV)/.test $(VENV)/.dev $(VENV)/.docs $(VENV)/.test-s3 $(VENV)/.test-kubernetes: pyproject.toml $(PINS) | $(BIN)/pip
	$(INSTALL) "pip >=25.1" # which knows groups
	$(INSTALL) --editable . $(addprefix --group ,$(GROUP))
	@touch $@

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
