#!/usr/bin/env python3
"""`make test`: every check of Poolwright, one stage after the other, and a count of what passed.

A stage that fails does not stop the later ones, so that one run shows all there is to repair. What cannot run on
this machine is counted as skipped and named with its cause; nothing is left out in silence. The last line is
`N passed, N failed` (and `, N skipped` where something could not run); the exit code is 1 if anything failed.

    run.py              all stages
    run.py NAME...      these stages, of: format clippy deny advisories control-plane backend tests worlds
"""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.dont_write_bytecode = True
import tools  # noqa: E402  (beside this file)

ROOT = Path(__file__).resolve().parent.parent
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
FAILED_TEST = re.compile(r"^test (.+) \.\.\. FAILED$")
IGNORED_TEST = re.compile(r"^test (.+) \.\.\. ignored")
# "Running tests/plan.rs (.../deps/plan-0123)", "Running unittests src/lib.rs (.../deps/poolwright_core-0123)".
RUNNING = re.compile(r"^\s*Running (?:unittests )?(\S+) \(.*?([^/]+)-[0-9a-f]+(?:\.exe)?\)$")
# Simulated worlds that are played: as many as this unoptimised program plays in some minutes. `poolwright simulate fuzz --seeds N` of a
# release build plays any number.
WORLDS = 250
# What a build from nothing takes on the disk, in GiB, with some to spare (measured: the summary says it of each stage).
ROOM = 12
DOC_TESTS = re.compile(r"^\s*Doc-tests (\S+)$")


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


def cargo_test(stage: Stage) -> None:
    """All tests of the workspace: unit, property, command-line, architecture, control-plane ones, and those against moto."""
    tools.moto()
    test(stage, ["--workspace"])


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
    test(stage, [*without, "--lib", "--test", "oracle", "--test", "random", "--test", "assignments"])


def test(stage: Stage, what: list[str]) -> None:
    """Runs these tests and counts them."""
    before = stage.passed
    binary = ""

    def count(line: str) -> None:
        nonlocal binary
        if match := RUNNING.match(line):
            binary = f"{match[2]} ({match[1]})"
        elif match := DOC_TESTS.match(line):
            binary = f"{match[1]} (examples in the documentation)"
        elif match := FAILED_TEST.match(line):
            stage.notes.append(f"failed: {match[1]} in {binary}")
        elif match := IGNORED_TEST.match(line):
            stage.notes.append(f"could not run: {match[1]} in {binary}, because it is marked #[ignore]")
        elif match := RESULT.match(line):
            stage.passed += int(match[1])
            stage.failed += int(match[2])
            stage.skipped += int(match[3])
            if any(int(number) for number in match.groups()):
                skipped = f", {match[3]} skipped" if int(match[3]) else ""
                stage.parts.append(f"{binary}: {match[1]} passed, {match[2]} failed{skipped}")

    code = stream(["cargo", "test", "--locked", *what, "--no-fail-fast"], environment(), count)
    if code != 0 and stage.failed == 0:
        # Nothing compiled, or a test binary ended without its summary.
        stage.failed = 1
        stage.notes.append(f"failed: cargo test (it did not compile, or {binary or 'a test binary'} crashed: "
                           "see above)")
    elif code == 0 and stage.passed == before:
        stage.failed = 1
        stage.notes.append("failed: cargo test reported no test at all, so nothing was proven")


def worlds(stage: Stage) -> None:
    """Simulated worlds on a bad day, with the program of the tests: a release build would be compiled for this alone."""
    # Selected as `make demo` does, so that nothing is compiled a second time with other features.
    code = stream(["cargo", "build", "--locked", "--workspace", "--bins", "--test", "architecture"], environment())
    if code != 0:
        stage.failed = 1
        stage.notes.append("failed: the build of the program")
        return
    binary = build_folder() / "debug" / "poolwright"
    told = ""

    def keep(line: str) -> None:
        nonlocal told
        told = line

    started = time.monotonic()
    code = stream([str(binary), "simulate", "fuzz", "--seeds", str(WORLDS)], environment(), keep)
    stage.parts.append(f"{told}, {time.monotonic() - started:.0f} s")
    played = re.match(r"(\d+) worlds, .*: no rule was broken", told)
    if code == 0 and played and int(played[1]) == WORLDS:
        stage.passed = 1
    else:
        stage.failed = 1
        stage.notes.append("failed: poolwright simulate fuzz (it says above which seed, and how to play it again)")


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
    "backend": backend,
    "tests": cargo_test,
    "worlds": worlds,
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
    names = names or list(STAGES)
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
