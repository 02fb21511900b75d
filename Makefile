# Thin targets: each says in one line what it is for; the work is in tools/ and tests/.
PYTHON ?=
RUN_PYTHON := $(or $(PYTHON),python3)
VENV := .venv/bin
PYTEST := $(VENV)/python -m pytest
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: setup run test full unit check interop sim chaos fuzz bench docs help

setup: ## make .venv with everything; does nothing when nothing is to do
	@PYTHON="$(PYTHON)" $(RUN_PYTHON) tools/setup.py

run: ## a cluster on this machine, from 127.0.0.1:9092 on, a web console, and a stream on Spark over sample data
	@PYTHON="$(PYTHON)" $(RUN_PYTHON) tools/setup.py --cluster
	@PYTHON="$(PYTHON)" exec $(VENV)/ottla up --console --demo --demo-setup "$(RUN_PYTHON) tools/setup.py"

test: setup ## everything that must hold, but for what takes minutes; JOBS=4 at a time (ARGS="..." goes to pytest)
	@$(PYTEST) tests -n $(or $(JOBS),4) $(ARGS)

full: setup ## the same and what takes minutes: CONTRIBUTING.md lists it
	@$(PYTEST) tests --full -n $(or $(JOBS),4) $(ARGS)

unit: setup ## the fast loop: unit tests, scenarios, architecture
	@$(PYTEST) $(wildcard tests/unit tests/scenarios tests/architecture) $(ARGS)

check: setup ## before every commit: lint, format, types, layers, architecture, unit tests
	@$(VENV)/python tools/check.py $(ARGS)

interop: setup ## the long comparisons with Apache Kafka and with other clients
	@$(PYTEST) --long $(wildcard tests/interop tests/integration) $(ARGS)

sim: setup ## whole clusters in virtual time: SEEDS=100 of them, or SEED=7 with its story
	@$(VENV)/ottla sim $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),100) --jobs 2)

chaos: setup ## real processes under faults, checked: SECONDS=900 SEED=7 MIXED=1 SOAK=1 (ARGS=--help for all)
	@PYTHONPATH=tests $(VENV)/python -m chaos $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(if $(MIXED),--mixed) $(if $(SOAK),--soak) $(ARGS)

fuzz: setup ## N=200000 mutated frames, batches and files; CRASHES=5 lives of a log cut at every step
	@OTTLA_FUZZ_FRAMES=$(or $(N),200000) OTTLA_FUZZ_N=$(or $(N),200000) OTTLA_CRASH_SEEDS=$(or $(CRASHES),5) \
		$(PYTEST) tests/fuzz tests/crash tests/unit/wire/test_hostile_bytes.py $(ARGS)

bench: setup ## benchmarks, Ottla and its peers side by side in one run (NAME=part of a name for some)
	@$(VENV)/python tools/bench.py $(NAME)

docs: setup ## write docs/reference, and the tables of docs/proof.md from bench/history.jsonl
	@$(VENV)/python tools/docs.py

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
