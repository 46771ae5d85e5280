# The two commands of this project are `make demo` and `make test`; both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

# Without a GPU the CPU build of torch is enough and far smaller. Where pip would fetch the CUDA
# build all the same, name a source of CPU builds: make TORCH_ARGS="--index-url ..." demo
HAS_GPU := $(shell command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1 && echo yes)
TORCH ?= torch==2.13.0
TORCH_ARGS ?=

BUDGET ?= 9
DEMO_ARGS ?=

.PHONY: help setup demo test check lint format types imports wheel bench clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: $(INSTALLED) ## Create .venv and install the project with its development tools

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(if $(HAS_GPU),,$(BIN)/pip install --quiet $(TORCH_ARGS) "$(TORCH)")
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: setup ## Run a search of 9 trials on the embedded corpus and print its answer
	$(BIN)/search run --budget $(BUDGET) $(DEMO_ARGS)

test: setup ## Run the test suite
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

check: lint types imports ## Lint, format check, types and the direction of imports

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## Rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

bench: setup ## Measure a trial against a bare loop, and the store
	$(BIN)/python -m benchmarks.trial
	PYTHONPATH=tests/support $(BIN)/python -m benchmarks.store

clean: ## Remove what the targets above made
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
