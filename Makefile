# Two commands do everything: `make check` measures this machine, `make test` tests the project.
PYTHON ?= python3
VENV := .venv
MODE ?= smoke
# Who provides the MPI stacks of this machine: wheels, or spack.
PROVIDER ?= $(or $(CLUSTERGATE_PROVIDER),wheels)
PACKAGES := pyproject.toml setup.py evaluations/pyproject.toml evaluations/setup.py
PATHS := setup.py clustergate evaluations reframe_checks site_configs tests tools docs ci/virtual-cluster \
  ci/virtual_cluster.py ci/virtual_schedulers.py ci/gitlab/example/site_configs
SCRIPTS := bin/clustergate clustergate/machine/node_state.sh .ci/run ci/airgap ci/bootstrap ci/make-venv \
  ci/gitlab/job ci/gitlab/propose-baseline ci/github/measure
PIPELINES := ci/gitlab/*.yml ci/gitlab/example/.gitlab-ci.yml
# Given to make only: clusters have variables of this name.
NAMED_SITE = $(if $(filter command line,$(origin SITE)),--site $(SITE))
NAMED_STACKS = $(if $(filter command line,$(origin STACK)),$(STACK))
SINCE ?= main
# Launches of MPI are measured, and need the machine for themselves.
SIDE_BY_SIDE := -q -rs -n 2 --dist=worksteal -m
# The second part runs whatever the first says, unless that was interrupted (2); the worse status counts.
define BOTH_PARTS
@$(VENV)/bin/pytest $(SIDE_BY_SIDE) "not mpi$(1)"; first=$$?; [ $$first -ne 2 ] || exit 2; \
  $(VENV)/bin/pytest -q -rs -m "mpi$(1)"; second=$$?; \
  echo "$@: exit status $$first without MPI, $$second with MPI"; \
  [ $$first -gt $$second ] || first=$$second; exit $$first
endef
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CLUSTERGATE_PROVIDER := $(PROVIDER)
# Compiled once, a command starts in a third of the time.
unexport PYTHONDONTWRITEBYTECODE
# Neither starts another Python than its own.
unexport PYTHONHOME
unexport PYTHONPATH

BUILD = $(VENV)/bin/python -m build --no-isolation --outdir dist

NPM = .clustergate/npm

PIN = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make constraints'

.DEFAULT_GOAL := help
.PHONY: help check test test-all gitlab-ci-local test-fast test-cluster attack bench record bench-verdicts \
  bench-gate bench-screening lint docs dry-run release setup constraints clean

help:
	@echo "make check    measure this machine under every MPI stack and say what is wrong (MODE=$(MODE))"
	@echo "              SITE=NAME: with this site config (default: the one that fits)"
	@echo "              STACK=NAME: under this one alone"
	@echo "              PROVIDER=spack: with stacks that Spack builds (PROVIDER=$(PROVIDER))"
	@echo "make test     run the project's tests, but for those that take long"
	@echo "make test-all      run them all"
	@echo "make test-fast     the tests nearest to what changed since SINCE=$(SINCE), without MPI"
	@echo "make test-cluster  only the tests that run on a virtual cluster (root, Slurm; says what lacks)"
	@echo "                   CLUSTERGATE_TEST_OPENPBS=FILE: also those on OpenPBS, of an archive of its sources"
	@echo "make attack   attack the suite with outputs that lie (ATTACK=--texts: launch nothing)"
	@echo "make bench    measure what the suite itself costs, beside the recorded commit (QUICK=1: in five minutes)"
	@echo "make record MINUTES=3  record launches of this machine for bench-verdicts"
	@echo "make bench-verdicts  how often verdicts are wrong (BENCH=--help: what else it takes)"
	@echo "make bench-gate  how often a gate opens on a simulated cluster (BENCH=--help: what it takes)"
	@echo "make bench-screening  what a screening finds, at what cost, beside simple rules"
	@echo "make lint     ruff, the type checker, import contracts, shellcheck, schemas, licences"
	@echo "make docs     the documentation as pages to browse offline: .clustergate/docs/index.html"
	@echo "make dry-run  ReFrame's dry run of every check on every site config"
	@echo "make release  source archive and wheels in dist/, checked, with an SBOM"
	@echo "make clean    what takes space: builds and stages (YES=1: remove them; results stay)"

# A recipe's own status is lost in make's 2, so the last line says which it was.
check: $(VENV)/ready
	@$(VENV)/bin/clustergate check --mode $(MODE) $(NAMED_SITE) $(addprefix --stack ,$(NAMED_STACKS))

test: $(VENV)/ready-dev
	$(call BOTH_PARTS, and not long)

test-all: $(VENV)/ready-dev gitlab-ci-local
	$(call BOTH_PARTS,)

# By which tests run whole pipelines; where it cannot be had they are skipped, and say so.
gitlab-ci-local:
	@[ -x $(NPM)/node_modules/.bin/gitlab-ci-local ] || { \
	  command -v npm >/dev/null && echo "bringing gitlab-ci-local into $(NPM) (once)" && \
	  timeout 300 npm install --prefix $(NPM) --no-save --no-audit --no-fund --fetch-retries=0 \
	  gitlab-ci-local@4.75.1 node@22 >/dev/null 2>&1; } || \
	  echo "no gitlab-ci-local: npm is not here, or reaches no registry; whole pipelines are not tested"

test-fast: $(VENV)/ready-dev
	@$(VENV)/bin/python -m tools.nearest_tests $(SINCE) $(SIDE_BY_SIDE) "not mpi"

test-cluster: $(VENV)/ready-dev
	@ci/virtual-cluster missing
	@$(VENV)/bin/pytest -q -m cluster

attack: $(VENV)/ready-dev
	@$(VENV)/bin/python -m tools.attack $(ATTACK)

record: setup
	@$(VENV)/bin/python -m tools.bench.record --minutes $(or $(MINUTES),3)

bench-verdicts: setup
	@$(VENV)/bin/python -m tools.bench.verdicts $(BENCH)

bench-gate: $(VENV)/ready-dev
	@$(VENV)/bin/python -m tools.bench.gate $(BENCH)

bench-screening: $(VENV)/ready-dev
	@$(VENV)/bin/python -m tools.bench.screening $(BENCH)

bench: setup
	@$(VENV)/bin/python -m tools.bench $(if $(QUICK),--quick) $(if $(RECORD),--record)

lint: $(VENV)/ready-dev
	@$(VENV)/bin/ruff check $(PATHS)
	@$(VENV)/bin/ruff format --check $(PATHS)
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/python -m tools.docstring_names
	@$(VENV)/bin/shellcheck $(SCRIPTS)
	@$(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.gitlab-ci \
	  --data-transform gitlab-ci $(PIPELINES)
	@$(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.github-actions ci/github/action.yml
	@$(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	@$(VENV)/bin/reuse lint --quiet
	@$(VENV)/bin/hadolint ci/container/Dockerfile

docs: $(VENV)/ready-dev
	@$(VENV)/bin/sphinx-build -q -W --keep-going -d .clustergate/docs/.doctrees docs .clustergate/docs
	@echo "the documentation: .clustergate/docs/index.html"

dry-run: $(VENV)/ready
	@$(VENV)/bin/clustergate dry-run

release: export PACKAGE_ORIGIN = $(shell git remote get-url origin 2>/dev/null)
release: $(VENV)/ready-dev
	@rm -rf build dist
	@$(BUILD) .
	@$(BUILD) --wheel evaluations
	@rm -rf *.egg-info  # they would name this version's commands to later tests
	@$(VENV)/bin/twine check --strict dist/*
	@$(VENV)/bin/check-wheel-contents dist/clustergate-*.whl
	@$(VENV)/bin/check-wheel-contents --toplevel clustergate,evaluations dist/clustergate_*.whl
	@$(PYTHON) -m venv .clustergate/sbom
	@.clustergate/sbom/bin/pip install --quiet --require-hashes -r ci/sbom.txt
	@version=$$(ls dist/clustergate-*.whl | cut -d- -f2) && sed "s/^dynamic = .*/version = \"$$version\"/" \
	  pyproject.toml > .clustergate/sbom/pyproject.toml
	@PYTHONWARNINGS=ignore .clustergate/sbom/bin/cyclonedx-py requirements --pyproject .clustergate/sbom/pyproject.toml \
	  --output-reproducible --output-file dist/clustergate.cdx.json ci/requirements.txt
	@ls dist/*

setup: $(VENV)/ready
	@$(VENV)/bin/clustergate setup

# What measures a machine, and what more the project's own work takes.
$(VENV)/ready: ci/requirements.txt $(PACKAGES) ci/make-venv
	@PYTHON="$(PYTHON)" ci/make-venv $(VENV)

$(VENV)/ready-dev: ci/constraints.txt $(PACKAGES) ci/make-venv
	@PYTHON="$(PYTHON)" ci/make-venv $(VENV) ci/constraints.txt ready-dev

constraints: $(VENV)/ready-dev
	@$(PIN) pyproject.toml --group dev --output-file ci/constraints.txt
	@$(PIN) pyproject.toml --group build --constraint ci/constraints.txt --output-file ci/requirements.txt
	@$(PIN) --group sbom --constraint ci/constraints.txt --output-file ci/sbom.txt

CLEANED = $(wildcard $(addprefix .clustergate/,builds stage prefixes manifests))
clean:
	@$(if $(CLEANED),du -sh $(CLEANED),echo "there is nothing to remove")
	@$(if $(CLEANED),$(if $(YES),rm -rf $(CLEANED) && echo "removed: $(CLEANED)",\
	  echo "nothing was removed; \`make clean YES=1\` removes these" >&2 && exit 2))
