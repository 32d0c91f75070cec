# Poolwright: build, test, demo. `make` lists what there is.
#
# Needed: Rust (rustup), Go, Python 3, gcc, cmake, make. Everything else is pinned and installed on first use into a
# cache that all checkouts share. POOLWRIGHT_CACHE moves that cache; CARGO_TARGET_DIR, KUBEBUILDER_ASSETS and
# LIBCLANG_PATH are honoured where they are set.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

POOLWRIGHT_CACHE ?= $(HOME)/.cache/poolwright
CARGO_TARGET_DIR ?= $(POOLWRIGHT_CACHE)/target
PYTHONDONTWRITEBYTECODE := 1
# As tests/run.py has it: what one target has compiled the others need not. `CARGO_INCREMENTAL=1 make ...` for who changes a line at a time.
CARGO_INCREMENTAL ?= 0
export POOLWRIGHT_CACHE CARGO_TARGET_DIR CARGO_INCREMENTAL PYTHONDONTWRITEBYTECODE

# Runs a command with the pinned tools found.
WITH_TOOLS := python3 tests/tools.py run
# KUBERNETES=1.33 (or 1.34, 1.35) runs e2e, differential, realise and demo-cluster on that version instead of the newest.
ifneq ($(KUBERNETES),)
WITH_TOOLS := KUBEBUILDER_ASSETS="$$(python3 tests/control-plane/build.py --kubernetes $(KUBERNETES) --print)" $(WITH_TOOLS)
# No older one has PodGroups.
NEWEST_ONLY := tests/plane/tests/pod_groups.rs
endif
# The tests that start a control plane, as arguments of cargo test.
E2E := $(patsubst tests/plane/tests/%.rs,--test %,$(sort $(filter-out $(NEWEST_ONLY),$(wildcard tests/plane/tests/*.rs)))) --test node_lifecycle --test scale_up

.PHONY: help demo demo-cluster test soak build lint unit control-plane e2e kills differential bench bench-ablation bench-mix bench-scale bench-nodes bench-aws realise crds clean

help: ## this list
	@echo "make <target>:"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: ## the main job in a simulated cluster: pods of a real GPU trace, nodes bought for them and given back
	@echo "Building Poolwright for the demo (up to half an hour when nothing is compiled yet, on two cores; then seconds)"
	@# One small test is built along: with it cargo takes the same features of our dependencies as `make test` does,
	@# and whoever runs both compiles them once.
	@$(WITH_TOOLS) cargo build --locked --workspace --bins --test architecture
	@$(WITH_TOOLS) "$(CARGO_TARGET_DIR)/debug/poolwright-demo"

demo-cluster: control-plane ## the same on a real control plane, in real time; KEEP=1 leaves it running
	@$(WITH_TOOLS) cargo build --locked --workspace --bins --test architecture
	@KEEP="$(KEEP)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/debug/poolwright-demo" --cluster

test: ## everything that continuous integration checks; says what each step took and counts what passed
	@python3 tests/run.py

soak: ## what only repeats: more seeds, more kills, more random cases and simulated worlds; prints its seed, SEED=n plays the same again
	@SEED="$(SEED)" python3 tests/run.py control-plane soak

build: ## the release binary
	@$(WITH_TOOLS) cargo build --locked --release -p poolwright-cli
	@echo "$(CARGO_TARGET_DIR)/release/poolwright"

lint: ## format, clippy, licences, sources, advisories
	@python3 tests/run.py format clippy deny advisories

unit: ## the tests that need no control plane
	@$(WITH_TOOLS) cargo test --locked --workspace --exclude poolwright-plane

control-plane: ## etcd, kube-apiserver, kube-scheduler, kube-controller-manager and KWOK, built once (7 min cold)
	@python3 tests/control-plane/build.py
ifneq ($(KUBERNETES),)
	@python3 tests/control-plane/build.py --kubernetes $(KUBERNETES)
endif

e2e: control-plane ## the tests on a real control plane; KUBERNETES=1.33 on an older one
	@$(WITH_TOOLS) cargo test --locked --workspace --no-run
	@$(WITH_TOOLS) cargo test --locked --workspace $(E2E)

kills: control-plane ## the controller is killed at every point of a claim's life, on a real control plane; KILLS=100 repeats that until so many
	@$(WITH_TOOLS) cargo build --locked -p poolwright-cli -p poolwright-plane --bins
	@KILLS="$(or $(KILLS),100)" $(WITH_TOOLS) cargo test --locked -p poolwright-plane --test killed_at_every_stage -- --nocapture

differential: control-plane ## random pods and clusters, planned by us and bound by the real scheduler; CASES=1000 SEED=1 RULES=HostSpread,Taints WITHOUT=Limits STRICT=1 FAILURES=3, or CASE=file
	@$(WITH_TOOLS) cargo test --locked -p poolwright-plane --test differential --no-run
	@CASES="$(or $(CASES),1000)" SEED="$(SEED)" RULES="$(RULES)" WITHOUT="$(WITHOUT)" STRICT="$(STRICT)" FAILURES="$(FAILURES)" CASE="$(abspath $(CASE))" \
		$(WITH_TOOLS) cargo test --locked -p poolwright-plane --test differential -- --nocapture the_scheduler_binds

bench: ## the solver's figures: cost, certified bound, gap over time, memory; CASE="P1 P8" for some, RUNS=1 for a quick look
	@$(WITH_TOOLS) cargo build --locked --release -p poolwright-solver --example bench
	@"$(CARGO_TARGET_DIR)/release/examples/bench" $(CASE) --runs $(or $(RUNS),5)

bench-ablation: ## what each stage of the solver's search pays: one is off at a time; CASE="P1 P8" for some, STAGE=columns for stages of that name, RUNS=3 seeds
	@$(WITH_TOOLS) cargo build --locked --release -p poolwright-solver --example ablation
	@"$(CARGO_TARGET_DIR)/release/examples/ablation" $(CASE) --runs $(or $(RUNS),1) $(if $(STAGE),--stage "$(STAGE)")

bench-mix: ## from objects to a checked plan for Karpenter's benchmark mix, and one change at a time in a large cluster; PODS="10000 20000"
	@$(WITH_TOOLS) cargo build --locked --release -p poolwright-intake --example mix
	@"$(CARGO_TARGET_DIR)/release/examples/mix" $(PODS)
	@"$(CARGO_TARGET_DIR)/release/examples/mix" --incremental

bench-scale: control-plane ## the real controller with NODES=5000 and PODS=50000 on a real API server: its memory, and how long changes take it
	@$(WITH_TOOLS) cargo build --locked --release -p poolwright-cli -p poolwright-plane --bins
	@NODES="$(NODES)" PODS="$(PODS)" CHANGES="$(CHANGES)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/release/poolwright-scale"

bench-nodes: control-plane ## NODES=500 KWOK nodes up and down again on a real control plane: how long, how many, and what it costs the controller
	@$(WITH_TOOLS) cargo build --locked --release -p poolwright-cli -p poolwright-plane --bins
	@NODES="$(NODES)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/release/poolwright-nodes"

bench-aws: control-plane ## how fast interruptions are heard, with NODES=500 instances in moto and MESSAGES=1000; and in how many orders they were launched
	@python3 tests/tools.py moto >/dev/null
	@$(WITH_TOOLS) cargo build --locked --workspace --bins --example interruptions
	@NODES="$(NODES)" BURST="$(BURST)" MESSAGES="$(MESSAGES)" QUEUE="$(QUEUE)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/debug/examples/interruptions"

crds: ## writes crds/*.yaml anew from the types
	@$(WITH_TOOLS) cargo run --locked --quiet -p poolwright-cli -- crds --dir crds

realise: control-plane ## whether plans come true: RUNS=20 scale-ups of the trace from SEED=1 on, PLACEMENT=reserve or nominate
	@$(WITH_TOOLS) cargo build --locked --workspace --bins --test architecture
	@RUNS="$(RUNS)" SEED="$(SEED)" PLACEMENT="$(PLACEMENT)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/debug/poolwright-realise"

clean: ## removes the build; tools and the control plane stay in the cache
	@rm -rf "$(CARGO_TARGET_DIR)"
	@echo "removed $(CARGO_TARGET_DIR); tools and the control plane stay in $(POOLWRIGHT_CACHE)"
