#!/usr/bin/env python3
"""`make test`: every check of Poolwright, one stage after the other, what each took, and a count of what passed.

A stage that fails does not stop the later ones, so that one run shows all there is to repair. A check that cannot run on
this machine counts as skipped, with its cause; nothing is left out in silence. The last line is
`N passed, N failed` (and `, N skipped` if something could not run); the exit code is 1 if anything failed.

    run.py              all stages of `make test`
    run.py NAME...      these stages
    run.py soak         what only repeats: more seeds, more kills, more random cases (SEED=n plays the same again)
"""

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
WORLDS = 100
# What a build from nothing takes on the disk, in GiB, with some to spare (measured: the summary shows it for each stage).
ROOM = 12
# The longest binaries start first, so that none of them is still running alone at the end.
LONGEST_FIRST = ["aws_conformance", "worlds", "differential", "node_lifecycle", "aws_cluster"]


@dataclass
class Stage:
    """What a stage came to."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    # What was free on the disk of the build at its end, in GiB.
    free: float = 0.0
    # What failed or could not run, in words.
    notes: list[str] = field(default_factory=list)
    # What the count is made of, in words.
    parts: list[str] = field(default_factory=list)


def stream(command: list[str], env: dict[str, str], each_line=lambda line: None) -> int:
    """Runs a command at the root, shows its output as it comes, and hands every line to `each_line`."""
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", bufsize=1)
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        each_line(COLOUR.sub("", line.rstrip()))
    return process.wait()


def check(stage: Stage, command: list[str], env: dict[str, str], repair: str) -> None:
    """A stage that is one check: it passes or fails as its command does."""
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
          dict(os.environ), "deny.toml says what is allowed")


def advisories(stage: Stage) -> None:
    """Known vulnerabilities. Their database is fetched from the network, which may not be there."""
    lines: list[str] = []
    code = stream([str(tools.cargo_deny()), "--locked", "check", "advisories"], dict(os.environ), lines.append)
    cannot = next((line for line in lines if "failed to fetch advisory database" in line), None)
    if code == 0:
        stage.passed = 1
    elif cannot:
        stage.skipped = 1
        stage.notes.append("could not run: cargo deny check advisories, because the RustSec advisory database "
                           "could not be fetched (nothing is known about vulnerabilities in our dependencies)")
    else:
        stage.failed = 1
        stage.notes.append("failed: cargo deny check advisories")


def control_plane(stage: Stage) -> None:
    check(stage, [sys.executable, "tests/control-plane/build.py"], dict(os.environ),
          "the tests that need a control plane fail without it")


def build(stage: Stage) -> None:
    """Compiles every test and every program that tests start."""
    tools.moto()
    if binaries(stage):
        stage.passed = 1


def binaries(stage: Stage, what: tuple[str, ...] = ("--workspace",)) -> list[suite.Binary]:
    """Compiles tests and returns their binaries; none, and a note, if something does not compile."""
    command = ["cargo", "test", "--locked", *what, "--no-run", "--message-format=json-render-diagnostics"]
    print(" ".join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    found = suite.compiled(done.stdout.splitlines()) if done.returncode == 0 else []
    if not found:
        stage.failed += 1
        stage.notes.append(f"failed: {' '.join(command[:-1])} (it does not compile, or has no tests: see above)")
    return found


def tests(stage: Stage) -> None:
    """All tests of the workspace (unit, property, command line, control plane, moto), and simulated worlds beside them."""
    found = binaries(stage)
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    found.sort(key=lambda binary: rank.get(binary.target, len(rank)))
    job = lambda binary: lambda: suite.test(binary, environment())  # noqa: E731
    computing = [job(binary) for binary in found if not binary.waits]
    waiting = [job(binary) for binary in found if binary.waits]
    if found:
        collect(stage, suite.side_by_side([*computing, worlds], waiting))


def examples(stage: Stage) -> None:
    """The examples in the documentation of the code."""
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
    """Adds outcomes to a stage, the longest first. Nothing passed and nothing failed proves nothing, so it is a failure."""
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
        stage.notes.append(f"failed: {stage.name} reported no test at all, so nothing was proven")


def backend(stage: Stage) -> None:
    """The solver without HiGHS: it is not even among its dependencies, and small problems come out as they do with it.

    (The oracle that plans are compared with is an integer program, which HiGHS solves: that is a dependency of tests.)
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


def worlds(first: int = 1, count: int = WORLDS) -> suite.Outcome:
    """Simulated worlds on a bad day, with the program of the tests: a release build would be compiled for this alone."""
    program = build_folder() / "debug" / "poolwright"
    command = [str(program), "simulate", "fuzz", "--from", str(first), "--seeds", str(count)]
    code, lines, seconds, processors = suite.run(f"{count} simulated worlds from seed {first}", command, ROOT, environment())
    told = lines[-1] if lines else "nothing"
    outcome = suite.Outcome(f"poolwright simulate fuzz: {told}", seconds=seconds, processors=processors)
    played = re.match(r"(\d+) worlds, .*: no rule was broken", told)
    if code == 0 and played and int(played[1]) == count:
        outcome.passed = 1
    else:
        outcome.failed = 1
        outcome.notes.append("failed: poolwright simulate fuzz (it says above which seed, and how to play it again)")
    return outcome


# What `make soak` repeats: the test binary, which of its tests, and how often. A fresh first seed each time; SEED=n plays the same again.
SOAK = [
    ("differential", "", {"CASES": "1000", "FAILURES": "3"}),
    ("killed_at_every_stage", "", {"KILLS": "100"}),
    ("leader_crashes", "killed_", {"KILLS": "100"}),
    ("oracle", "", {"CASES": "1000"}),
    ("assignments", "", {"PROPTEST_CASES": "5000"}),
    ("properties", "", {"PROPTEST_CASES": "2000"}),
]
SOAKED_WORLDS = 2000


def soak(stage: Stage) -> None:
    """Random cases, kills and worlds, many of each, one after the other."""
    seed = int(os.environ.get("SEED") or random.randrange(1, 2**31))
    print(f"SEED={seed} (make soak SEED={seed} plays the same again)", flush=True)
    found = {binary.target: binary for binary in binaries(stage)}
    outcomes = []
    for target, only, variables in SOAK if found else []:
        variables = variables | {"SEED": str(seed), "POOLWRIGHT_SEED": str(seed), "PROPTEST_RNG_SEED": str(seed)}
        print(target, " ".join(f"{name}={value}" for name, value in variables.items()), flush=True)
        outcomes.append(suite.test(found[target], environment() | variables, only))
    if found:
        outcomes.append(worlds(seed, SOAKED_WORLDS))
    collect(stage, outcomes)


def environment() -> dict[str, str]:
    """The environment for cargo. Without its incremental files: they are of no use to a run of everything, and are half of what it
    writes."""
    env = tools.environment()
    env.setdefault("CARGO_INCREMENTAL", "0")
    return env


def build_folder() -> Path:
    """Where cargo is told to build."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or tools.cache() / "target")


def free(folder: Path) -> float:
    """What is free on the disk of a folder that may not be there yet, in GiB."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free / 2**30


def make_room(build: Path) -> None:
    """A shared build folder keeps what earlier versions of the code left there. Where a build from nothing might not fit beside
    that, it goes: first cargo's incremental files, then the rest."""
    for old in [*build.glob("*/incremental"), build]:
        if free(build) >= ROOM:
            return
        if old.is_dir():
            print(f"{free(build):.1f} GiB are free for the build, of {ROOM} that it may take: removing {old}", flush=True)
            shutil.rmtree(old, ignore_errors=True)


STAGES = {
    "format": format_stage,
    "clippy": clippy,
    "deny": deny,
    "advisories": advisories,
    "control-plane": control_plane,
    "build": build,
    "tests": tests,
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
        print(f"no such stage: {', '.join(unknown)}; there are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    if sys.stdout.isatty():
        os.environ.setdefault("CARGO_TERM_COLOR", "always")
    names = names or [name for name in STAGES if name != "soak"]
    make_room(build_folder())
    stages = [run(name, index, len(names)) for index, name in enumerate(names, start=1)]

    print("\n=== summary")
    for stage in stages:
        verdict = "FAILED" if stage.failed else "ok" if stage.passed else "skipped"
        skipped = f", {stage.skipped} skipped" if stage.skipped else ""
        print(f"{stage.name:<14} {verdict:<8} {stage.passed} passed, {stage.failed} failed{skipped}, "
              f"{stage.seconds:.0f} s, {stage.free:.1f} GiB free")
        for part in stage.parts:
            print(f"  {part}")
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
