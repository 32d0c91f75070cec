#!/usr/bin/env python3
"""`make test`: runs every check of Poolwright, stage by stage, and prints the time and the results of each.

A failed stage does not stop the later ones, so one run shows everything that you must repair. A check that cannot run on
this machine counts as skipped, and the summary says why. The last line is `N passed, N failed` (and `, N skipped` if
something could not run). The exit code is 1 if anything failed.

    run.py              all stages of `make test`
    run.py NAME...      these stages
    run.py soak         more seeds, more kills, more random cases (SEED=n repeats the run)
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.dont_write_bytecode = True
import suite  # noqa: E402  (beside this file)
import tools  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Simulated worlds that `make test` plays; `make soak` plays more.
WORLDS = 20
# GiB of disk that a build from scratch needs, with a margin (measured: the summary shows the free space after each stage).
ROOM = 12
# The longest binaries start first, so that none of them is still running alone at the end.
LONGEST_FIRST = ["worlds", "aws_conformance", "differential", "aws_commands", "aws_cluster", "node_lifecycle", "kwok_conformance",
                 "leader_crashes", "reservations", "plan_on_a_cluster", "scale_up", "gang_kinds"]


@dataclass
class Stage:
    """The result of a stage."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    # Free space on the disk of the build at its end, in GiB.
    free: float = 0.0
    # A sentence for each check that failed or could not run.
    notes: list[str] = field(default_factory=list)
    # A line for each part of the count.
    parts: list[str] = field(default_factory=list)


def stream(command: list[str], env: dict[str, str], each_line=lambda line: None) -> int:
    """Runs a command at the root, shows its output at once, and passes every line to `each_line`."""
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", bufsize=1)
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        each_line(COLOUR.sub("", line.rstrip()))
    return process.wait()


def check(stage: Stage, command: list[str], env: dict[str, str], repair: str) -> None:
    """Runs a stage of one command. It passes if the command succeeds."""
    if stream(command, env) == 0:
        stage.passed = 1
    else:
        stage.failed = 1
        stage.notes.append(f"failed: {' '.join(command)} ({repair})")


def format_stage(stage: Stage) -> None:
    check(stage, ["cargo", "fmt", "--all", "--check"], dict(os.environ), "repair: cargo fmt --all")


def clippy(stage: Stage) -> None:
    check(stage, ["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
          environment(), "warnings are errors")


def deny(stage: Stage) -> None:
    check(stage, [str(tools.cargo_deny()), "--locked", "check", "bans", "licenses", "sources"],
          dict(os.environ), "deny.toml lists the allowed licences, sources and crates")


def advisories(stage: Stage) -> None:
    """Checks for known vulnerabilities. Their database comes from the network, which may be unavailable."""
    lines: list[str] = []
    code = stream([str(tools.cargo_deny()), "--locked", "check", "advisories"], dict(os.environ), lines.append)
    cannot = next((line for line in lines if "failed to fetch advisory database" in line), None)
    if code == 0:
        stage.passed = 1
    elif cannot:
        stage.skipped = 1
        stage.notes.append("could not run: cargo deny check advisories, because the RustSec advisory database "
                           "could not be fetched (so known vulnerabilities of our dependencies went unchecked)")
    else:
        stage.failed = 1
        stage.notes.append("failed: cargo deny check advisories")


def control_plane(stage: Stage) -> None:
    check(stage, [sys.executable, "tests/control-plane/build.py"], dict(os.environ),
          "the tests that need a control plane fail without it")


def build(stage: Stage) -> None:
    """Compiles every test and every program that tests start."""
    tools.moto()
    tools.duckdb()
    if binaries(stage):
        stage.passed = 1


def binaries(stage: Stage, what: tuple[str, ...] = ("--workspace",)) -> list[suite.Binary]:
    """Compiles tests and returns their binaries. If something does not compile, returns none and adds a note."""
    command = ["cargo", "test", "--locked", *what, "--no-run", "--message-format=json-render-diagnostics"]
    print(" ".join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    found = suite.compiled(done.stdout.splitlines()) if done.returncode == 0 else []
    if not found:
        stage.failed += 1
        stage.notes.append(f"failed: {' '.join(command[:-1])} (it does not compile, or has no tests; see the output above)")
    return found


def tests(stage: Stage) -> None:
    """Runs all tests of the workspace (unit, property, command line, control plane, moto), and simulated worlds at the same time."""
    found = binaries(stage)
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    found.sort(key=lambda binary: rank.get(binary.target, len(rank)))
    job = lambda binary: lambda: suite.test(binary, environment(), yields=binary.target == "worlds")  # noqa: E731
    computing = [job(binary) for binary in found if not binary.waits]
    waiting = [job(binary) for binary in found if binary.waits]
    if found:
        # All simulated worlds first: they use what the waiting binaries leave, and the rest then has the processors to itself.
        collect(stage, suite.side_by_side([worlds, *computing], waiting))


def examples(stage: Stage) -> None:
    """Runs the examples in the documentation of the code."""
    started = time.monotonic()
    command = ["cargo", "test", "--locked", "--workspace", "--doc", "--no-fail-fast"]
    lines: list[str] = []
    code = stream(command, environment(), lines.append)
    counts = [match for line in lines if (match := suite.RESULT.match(line))]
    passed, failed, skipped = (sum(int(count[i]) for count in counts) for i in (1, 2, 3))
    outcome = suite.Outcome("examples in the documentation of the code", passed, failed, skipped, time.monotonic() - started)
    outcome.notes = [f"failed: {match[1]}" for line in lines if (match := suite.FAILED_TEST.match(line))]
    if code != 0 and failed == 0:
        outcome.failed = 1
        outcome.notes.append(f"failed: {' '.join(command)} (see above)")
    collect(stage, [outcome])


def collect(stage: Stage, outcomes: list[suite.Outcome]) -> None:
    """Adds outcomes to a stage, the longest first. A stage without any result proves nothing, so it fails."""
    for outcome in sorted(outcomes, key=lambda outcome: -outcome.seconds):
        stage.passed += outcome.passed
        stage.failed += outcome.failed
        stage.skipped += outcome.skipped
        stage.notes += outcome.notes
        skipped = f", {outcome.skipped} skipped" if outcome.skipped else ""
        if outcome.passed + outcome.failed + outcome.skipped:
            stage.parts.append(f"{outcome.seconds:6.1f} s, {outcome.processors:6.1f} s of processors  {outcome.name}: {outcome.passed} passed, {outcome.failed} failed{skipped}")
    if stage.passed + stage.failed == 0:
        stage.failed += 1
        stage.notes.append(f"failed: {stage.name} ran no test, so it proved nothing")


def backend(stage: Stage) -> None:
    """Tests the solver without HiGHS: HiGHS is not among its dependencies, and it solves small problems as well as with HiGHS.

    (The oracle of the tests is an integer program that HiGHS solves, so tests still depend on HiGHS.)
    """
    without = ["-p", "poolwright-solver", "--no-default-features", "--features", "microlp"]
    tree = subprocess.run(["cargo", "tree", "--locked", "--edges", "normal,build", *without], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    if tree.returncode != 0 or "microlp" not in tree.stdout or "highs" in tree.stdout:
        stage.failed += 1
        stage.notes.append(f"failed: the solver with microlp alone still depends on HiGHS\n{tree.stderr}")
    else:
        stage.passed += 1
    found = binaries(stage, (*without, "--lib", "--test", "oracle", "--test", "random", "--test", "assignments"))
    if found:
        collect(stage, suite.side_by_side([lambda binary=binary: suite.test(binary, environment()) for binary in found], []))


def demo(stage: Stage) -> None:
    """Checks that `make demo` compiles no cloud's SDK: it has no provider but KWOK's. Only the list of crates is read."""
    tree = subprocess.run(["make", "--silent", "demo-tree"], cwd=ROOT, capture_output=True, text=True, check=False)
    crates = {line.split()[0] for line in tree.stdout.splitlines() if line.strip()}
    clouds = sorted(name for name in crates if re.match(r"aws-(sdk|config|smithy)|poolwright-provider-aws$", name))
    if tree.returncode != 0 or clouds or "poolwright-provider-kwok" not in crates:
        stage.failed = 1
        stage.notes.append(f"failed: make demo compiles {', '.join(clouds) or 'not what it should'}: see DEMO in the Makefile, and the "
                           f"features of src/cli and providers/registry\n{tree.stderr}")
    else:
        stage.passed = 1


def worlds(first: int = 1, count: int = WORLDS) -> suite.Outcome:
    """Plays simulated worlds with faults. They use the debug build of the tests, because nothing else here needs a release build."""
    program = build_folder() / "debug" / "poolwright"
    if reason := foreign(program):
        return suite.Outcome("poolwright debug fuzz", failed=1, notes=[f"failed: poolwright debug fuzz, {reason}"])
    command = [str(program), "debug", "fuzz", "--from", str(first), "--seeds", str(count)]
    name = f"{count} simulated worlds from seed {first}"
    code, lines, seconds, processors = suite.run(name, command, ROOT, environment(), yields=True)
    told = lines[-1] if lines else "nothing"
    outcome = suite.Outcome(f"poolwright debug fuzz: {told}", seconds=seconds, processors=processors)
    played = re.match(r"(\d+) worlds, .*: no rule was broken", told)
    if code == 0 and played and int(played[1]) == count:
        outcome.passed = 1
    else:
        outcome.failed = 1
        outcome.notes.append("failed: poolwright debug fuzz (the output above names the seed and the command that replays it)")
    return outcome


def focus(stage: Stage) -> None:
    """Checks the file of `poolwright report -o focus` with the validator of FOCUS 1.0. It uses the debug build of the tests."""
    program = build_folder() / "debug" / "poolwright"
    if reason := foreign(program):
        stage.failed = 1
        stage.notes.append(f"failed: focus, {reason}")
        return
    home = tools.focus_validator()
    check(stage, [str(home / "bin" / "python"), "tests/focus/check.py", str(program)], dict(os.environ),
          "the output above names the rules that the file breaks")


# The tests that `make soak` repeats: the test binary (with its package, if others have one of that name), a filter of its tests, and
# its settings. Each run has a new seed, and SEED=n repeats a run.
SOAK = [
    ("differential", "", {"CASES": "1000", "FAILURES": "3"}),
    ("killed_at_every_stage", "", {"KILLS": "100"}),
    ("leader_crashes", "killed_", {"KILLS": "100"}),
    ("plan_on_a_cluster", "the_bill_", {"CASES": "50"}),
    ("oracle", "", {"CASES": "1000"}),
    ("assignments", "", {"PROPTEST_CASES": "5000"}),
    ("properties", "", {"PROPTEST_CASES": "2000"}),
    ("worlds", "frequent_faults::", {"SEEDS": "300"}),
    ("sim/it", "interruptions::", {"NODES": "500"}),
    ("aws_conformance", "although_", {"SEEDS": "4"}),
]
SOAKED_WORLDS = 2000


def soak(stage: Stage) -> None:
    """Runs many random cases, kills and worlds, one after the other."""
    seed = int(os.environ.get("SEED") or random.randrange(1, 2**31))
    print(f"SEED={seed} (make soak SEED={seed} repeats this run)", flush=True)
    tools.moto()
    compiled = binaries(stage)
    found = {name: binary for binary in compiled for name in (binary.target, f"{binary.package}/{binary.target}")}
    outcomes = []
    for target, only, variables in SOAK if found else []:
        variables = variables | {"SEED": str(seed), "POOLWRIGHT_SEED": str(seed), "PROPTEST_RNG_SEED": str(seed)}
        print(target, " ".join(f"{name}={value}" for name, value in variables.items()), flush=True)
        outcomes.append(suite.test(found[target], environment() | variables, only))
    if found:
        outcomes.append(worlds(seed, SOAKED_WORLDS))
    collect(stage, outcomes)


def environment() -> dict[str, str]:
    """Returns the environment for cargo, without incremental files: a full run does not use them, and they are half of what cargo
    writes."""
    env = tools.environment()
    env.setdefault("CARGO_INCREMENTAL", "0")
    return env


def build_folder() -> Path:
    """Returns the folder in which cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or tools.cache() / "target")


def commit() -> str:
    """Returns the commit of this checkout, and says whether files differ from it."""
    head = subprocess.run(["git", "rev-parse", "--verify", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    if head.returncode != 0:
        return "unknown"
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False)
    return head.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


def checkout() -> str:
    """Returns the number of this checkout that its development builds tell, as src/cli/checkout.rs computes it."""
    number = 0xcbf29ce484222325
    for byte in os.fsencode(ROOT):
        number = (number ^ byte) * 0x100000001b3 % 2**64
    return f"{number:016x}"


def foreign(program: Path) -> str | None:
    """Returns why a program must not be tested: it is from another checkout with the same build folder, or does not tell."""
    try:
        told = subprocess.run([str(program), "version", "-o", "json"], capture_output=True, text=True, check=False)
        version = json.loads(told.stdout)
    except (OSError, ValueError) as reason:
        return f"because {program} does not tell its version: {reason}"
    if version.get("checkout") == checkout():
        return None
    return (f"because {program} is from another checkout (commit {version.get('commit', 'unknown')}), which shares this build "
            "folder: run the build again, or give each checkout a CARGO_TARGET_DIR of its own")


def free(folder: Path) -> float:
    """Returns the free space in GiB on the disk of a folder, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free / 2**30


def make_room(build: Path) -> None:
    """Makes room for a build. A shared build folder also holds the builds of earlier versions. If a build from scratch might not
    fit beside them, this removes cargo's incremental files first, and then the rest."""
    for old in [*build.glob("*/incremental"), build]:
        if free(build) >= ROOM:
            return
        if old.is_dir():
            print(f"{free(build):.1f} GiB are free, and the build may need {ROOM}: removing {old}", flush=True)
            shutil.rmtree(old, ignore_errors=True)


STAGES = {
    "format": format_stage,
    "clippy": clippy,
    "deny": deny,
    "advisories": advisories,
    "demo": demo,
    "control-plane": control_plane,
    "build": build,
    "tests": tests,
    "focus": focus,
    "examples": examples,
    "backend": backend,
    "soak": soak,
}


def run(name: str, index: int, total: int) -> Stage:
    print(f"\n=== [{index}/{total}] {name}", flush=True)
    stage = Stage(name)
    started = time.monotonic()
    try:
        STAGES[name](stage)
    except (tools.Missing, OSError) as reason:
        stage.failed += 1
        stage.notes.append(f"failed: {name}, {reason}")
    stage.seconds = time.monotonic() - started
    stage.free = free(build_folder())
    return stage


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        print(f"no such stage: {', '.join(unknown)}; the stages are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    if sys.stdout.isatty():
        os.environ.setdefault("CARGO_TERM_COLOR", "always")
    names = names or [name for name in STAGES if name != "soak"]
    make_room(build_folder())
    began = commit()
    print(f"commit {began}", flush=True)
    stages = [run(name, index, len(names)) for index, name in enumerate(names, start=1)]

    print("\n=== summary")
    for stage in stages:
        verdict = "FAILED" if stage.failed else "ok" if stage.passed else "skipped"
        skipped = f", {stage.skipped} skipped" if stage.skipped else ""
        print(f"{stage.name:<14} {verdict:<8} {stage.passed} passed, {stage.failed} failed{skipped}, "
              f"{stage.seconds:.0f} s, {stage.free:.1f} GiB free")
        for part in stage.parts:
            print(f"  {part}")
    ended = commit()
    print(f"commit {ended}" + ("" if ended == began else f"; it was {began} at the start, so the results mix both"))
    print(f"all stages {sum(stage.seconds for stage in stages) / 60:.1f} min")
    for stage in stages:
        for note in stage.notes:
            print(note)
    passed, failed, skipped = (sum(getattr(stage, key) for stage in stages) for key in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
