# Poolwright: build, test, demo. `make` lists all targets.
#
# You need Rust (rustup), Go, Python 3, gcc, cmake and make. The first use installs everything else, at pinned versions, into
# a cache that all checkouts share. POOLWRIGHT_CACHE moves that cache. If CARGO_TARGET_DIR, KUBEBUILDER_ASSETS or
# LIBCLANG_PATH is set, it counts.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

POOLWRIGHT_CACHE ?= $(HOME)/.cache/poolwright
CARGO_TARGET_DIR ?= $(POOLWRIGHT_CACHE)/target
PYTHONDONTWRITEBYTECODE := 1
# The same value as in tests/run.py, so that targets share what they compile. If you change one line at a time, use `CARGO_INCREMENTAL=1 make ...`.
CARGO_INCREMENTAL ?= 0
export POOLWRIGHT_CACHE CARGO_TARGET_DIR CARGO_INCREMENTAL PYTHONDONTWRITEBYTECODE

# Runs a command with the pinned tools on its PATH.
WITH_TOOLS := python3 tests/tools.py run
# KUBERNETES=1.33 (or 1.34, 1.35) runs e2e, differential, realise and demo-cluster on that version instead of the newest.
ifneq ($(KUBERNETES),)
WITH_TOOLS := KUBEBUILDER_ASSETS="$$(python3 tests/control-plane/build.py --kubernetes $(KUBERNETES) --print)" $(WITH_TOOLS)
# Older versions have no PodGroups.
NEWEST_ONLY := tests/plane/tests/pod_groups.rs
endif
# Arguments of cargo test: the tests that start a control plane.
E2E := $(patsubst tests/plane/tests/%.rs,--test %,$(sort $(filter-out $(NEWEST_ONLY),$(wildcard tests/plane/tests/*.rs)))) --test node_lifecycle --test plan_on_a_cluster --test scale_up

# Calls go straight to functions of the binary instead of through a table of addresses: three megabytes less. The binary has full
# RELRO nonetheless (src/cli/build.rs).
RELEASE := RUSTFLAGS="-C relro-level=partial" $(WITH_TOOLS) cargo build --locked --release

# What the demo needs, and nothing else: no cloud but KWOK, and not the command.
DEMO := -p poolwright-plane --no-default-features --features ring,system-highs --bin poolwright-demo
# On a real control plane, the command runs the controller.
DEMO_CLUSTER := -p poolwright-cli -p poolwright-plane --no-default-features \
	--features poolwright-cli/kwok,poolwright-cli/system-highs,poolwright-cli/ring --bin poolwright --bin poolwright-demo
DEMO_BUILD := python3 tests/tools.py run-demo cargo build --locked --profile demo

.PHONY: help demo demo-tree demo-cluster test soak build lint unit control-plane e2e kills differential bench bench-ablation bench-plan bench-mix bench-scale bench-nodes bench-aws bench-bursts bench-week bench-what-if bench-month bench-report realise crds clean

help: ## list all targets
	@echo "make <target>:"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: ## buy nodes for the pods of a real GPU trace in a simulated cluster, and terminate them
	@echo "Building Poolwright for the demo (the first build takes some minutes on two cores, later ones seconds)"
	@$(DEMO_BUILD) $(DEMO)
	@$(WITH_TOOLS) "$(CARGO_TARGET_DIR)/demo/poolwright-demo"

demo-cluster: control-plane ## do the same on a real control plane, in real time; KEEP=1 leaves it running
	@$(DEMO_BUILD) $(DEMO_CLUSTER)
	@KEEP="$(KEEP)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/demo/poolwright-demo" --cluster

# Prints the crates that the demo compiles, for tests/run.py.
demo-tree:
	@cargo tree --locked --edges normal,build --prefix none $(filter-out --bin poolwright-demo,$(DEMO))

test: ## run every check of continuous integration; prints the time of each step and counts the results
	@python3 tests/run.py

soak: ## run more seeds, kills, random cases and simulated worlds; prints its seed, and SEED=n repeats the run
	@SEED="$(SEED)" python3 tests/run.py control-plane soak

build: ## build the release binary and print its path
	@$(RELEASE) -p poolwright-cli
	@echo "$(CARGO_TARGET_DIR)/release/poolwright"

lint: ## check format, clippy, licences, sources, advisories
	@python3 tests/run.py format clippy deny advisories

unit: ## run the tests that need no control plane
	@$(WITH_TOOLS) cargo test --locked --workspace --exclude poolwright-plane

control-plane: ## build etcd, kube-apiserver, kube-scheduler, kube-controller-manager and KWOK (once, 7 min)
	@python3 tests/control-plane/build.py
ifneq ($(KUBERNETES),)
	@python3 tests/control-plane/build.py --kubernetes $(KUBERNETES)
endif

e2e: control-plane ## run the tests on a real control plane; KUBERNETES=1.33 takes an older one
	@$(WITH_TOOLS) cargo test --locked --workspace --no-run
	@$(WITH_TOOLS) cargo test --locked --workspace $(E2E)

kills: control-plane ## kill the controller at every point of a claim's life, on a real control plane, until KILLS=100 kills
	@$(WITH_TOOLS) cargo build --locked -p poolwright-cli -p poolwright-plane --bins
	@KILLS="$(or $(KILLS),100)" $(WITH_TOOLS) cargo test --locked -p poolwright-plane --test killed_at_every_stage -- --nocapture

differential: control-plane ## compare plans for random clusters with the real scheduler; CASES=1000 SEED=1 RULES=HostSpread,Taints WITHOUT=Limits STRICT=1 FAILURES=3, or CASE=file
	@$(WITH_TOOLS) cargo test --locked -p poolwright-plane --test differential --no-run
	@CASES="$(or $(CASES),1000)" SEED="$(SEED)" RULES="$(RULES)" WITHOUT="$(WITHOUT)" STRICT="$(STRICT)" FAILURES="$(FAILURES)" CASE="$(abspath $(CASE))" \
		$(WITH_TOOLS) cargo test --locked -p poolwright-plane --test differential -- --nocapture the_scheduler_binds

bench: ## measure the solver: cost, certified bound, gap over time, memory, time to cancel; CASE="P1 cancel" chooses cases, RUNS=1 is quick
	@$(RELEASE) -p poolwright-solver --example bench
	@"$(CARGO_TARGET_DIR)/release/examples/bench" $(CASE) --runs $(or $(RUNS),5)

bench-ablation: ## turn off one stage of the solver at a time, and measure the loss; CASE="P1 P8" and STAGE=columns choose, RUNS=3 seeds
	@$(RELEASE) -p poolwright-solver --example ablation
	@"$(CARGO_TARGET_DIR)/release/examples/ablation" $(CASE) --runs $(or $(RUNS),1) $(if $(STAGE),--stage "$(STAGE)")

bench-plan: ## plan the solver's case P1 with the whole command in one second; prints the gap and its goal
	@$(RELEASE) -p poolwright-cli
	@python3 tests/plan_gap.py "$(CARGO_TARGET_DIR)/release/poolwright"

bench-mix: ## measure plans for Karpenter's benchmark mix and for pods that conflict, and single changes in a large cluster; PODS="10000 20000"
	@$(RELEASE) -p poolwright-intake --example mix
	@"$(CARGO_TARGET_DIR)/release/examples/mix" $(PODS)
	@"$(CARGO_TARGET_DIR)/release/examples/mix" --conflicts $(PODS)
	@"$(CARGO_TARGET_DIR)/release/examples/mix" --incremental

bench-scale: control-plane ## measure the memory and times of the real controller with NODES=5000 and PODS=50000 on a real API server
	@$(RELEASE) -p poolwright-cli -p poolwright-plane --bins
	@NODES="$(NODES)" PODS="$(PODS)" CHANGES="$(CHANGES)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/release/poolwright-scale"

bench-nodes: control-plane ## buy and terminate NODES=500 KWOK nodes on a real control plane; measures times, memory and calls
	@$(RELEASE) -p poolwright-cli -p poolwright-plane --bins
	@NODES="$(NODES)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/release/poolwright-nodes"

bench-aws: control-plane ## measure launches of NODES=500 instances in moto, and the handling of MESSAGES=1000 interruptions
	@python3 tests/tools.py moto >/dev/null
	@$(WITH_TOOLS) cargo build --locked --workspace --bins --example interruptions
	@NODES="$(NODES)" BURSTS="$(BURSTS)" MESSAGES="$(MESSAGES)" QUEUE="$(QUEUE)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/debug/examples/interruptions"

bench-bursts: control-plane ## measure how soon a release build records BURSTS="500 1000" interruptions at once and fences NODES=500 nodes
	@python3 tests/tools.py moto >/dev/null
	@$(RELEASE) -p poolwright-cli -p poolwright-plane --bins --example interruptions
	@NODES="$(NODES)" BURSTS="$(BURSTS)" MESSAGES="$(or $(MESSAGES),0)" QUEUE="$(QUEUE)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/release/examples/interruptions"

bench-week: ## replay eight weeks of GPU traces: cost now and before, lower limit, other methods; fails if a goal is missed; WEEKS="gpuspec33:142" chooses, MOVES=1 moves services and compares with no moves
	@$(RELEASE) -p poolwright-cli
	@python3 tests/week.py "$(CARGO_TARGET_DIR)/release/poolwright" $(if $(MOVES),--moves) $(WEEKS)

bench-what-if: ## measure what-if for 10,000 pods and 1,000 offerings: seconds and gap; fails above 5 s
	@$(RELEASE) -p poolwright-cli
	@python3 tests/what_if_bench.py "$(CARGO_TARGET_DIR)/release/poolwright" plans

bench-month: ## measure what-if commitment for 30 days of a GPU trace: seconds and answer; fails above 180 s
	@$(RELEASE) -p poolwright-cli
	@python3 tests/what_if_bench.py "$(CARGO_TARGET_DIR)/release/poolwright" month

bench-report: ## report on the ledger of DAYS=30 with NODES=5000 and PODS=50000 a day; fails if time, memory or the bill is not as it must be
	@$(RELEASE) -p poolwright-cli
	@DAYS="$(DAYS)" NODES="$(NODES)" PODS="$(PODS)" python3 tests/report_speed.py "$(CARGO_TARGET_DIR)/release/poolwright"

crds: ## write crds/*.yaml from the Rust types
	@$(WITH_TOOLS) cargo run --locked --quiet -p poolwright-cli -- crds --dir crds

realise: control-plane ## compare planned with realised cost: RUNS=20 scale-ups from SEED=1 on, PLACEMENT=reserve or nominate
	@$(WITH_TOOLS) cargo build --locked --workspace --bins --test architecture
	@RUNS="$(RUNS)" SEED="$(SEED)" PLACEMENT="$(PLACEMENT)" $(WITH_TOOLS) "$(CARGO_TARGET_DIR)/debug/poolwright-realise"

clean: ## remove the build; tools and the control plane stay in the cache
	@rm -rf "$(CARGO_TARGET_DIR)"
	@echo "removed $(CARGO_TARGET_DIR); tools and the control plane stay in $(POOLWRIGHT_CACHE)"
