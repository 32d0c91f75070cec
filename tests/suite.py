"""Runs compiled test binaries side by side and counts their tests.

Most binaries compute. They run one at a time, because cargo's test harness already uses every core. The binaries of `tests/plane`
mostly wait for a control plane. A few of them run at the same time, beside the one that computes. Simulated worlds have a clock of
their own, so they leave the processors to everything that runs in real time. The output of each binary is shown in one piece when
it ends.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
FAILED_TEST = re.compile(r"^test (.+) \.\.\. FAILED$")
IGNORED_TEST = re.compile(r"^test (.+) \.\.\. ignored")
# The number of binaries with a control plane that run at once. Each needs about 1 GiB of memory. With more of them, two cores are
# never idle, but every wait takes longer, and a lease is more likely to expire in the middle of a test.
WAITING = int(os.environ.get("POOLWRIGHT_TEST_PLANES", "3"))


@dataclass
class Binary:
    """A compiled test binary, with the environment that cargo would give it."""

    name: str
    package: str
    path: Path
    folder: Path
    waits: bool

    @staticmethod
    def of(artifact: dict) -> "Binary":
        """Reads cargo's message about an artifact."""
        manifest = Path(artifact["manifest_path"])
        package = "poolwright-plane" if manifest.parent == ROOT / "tests" / "plane" else manifest.parent.name
        target = artifact["target"]
        unit = "test" not in target["kind"]
        name = f"{manifest.parent.relative_to(ROOT)}: {'unit tests' if unit else 'tests'} of {target['name']}"
        waits = package == "poolwright-plane" and not unit and target["name"] not in ("architecture", "documents")
        return Binary(name, package, Path(artifact["executable"]), manifest.parent, waits)

    @property
    def target(self) -> str:
        """Returns its name among the tests of its package."""
        return self.name.rsplit(" ", 1)[1]


@dataclass
class Outcome:
    """The result of a binary, or of another command."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    processors: float = 0.0
    notes: list[str] = field(default_factory=list)


PRINTING = threading.Lock()
RUNNING: set[subprocess.Popen] = set()


def say(text: str) -> None:
    with PRINTING:
        sys.stdout.write(text)
        sys.stdout.flush()


def run(name: str, command: list[str], folder: Path, env: dict[str, str], yields: bool = False) -> tuple[int, list[str], float, float]:
    """Runs a command to its end and shows its output in one piece. Returns the exit code, the lines of output, and the wall
    time and CPU time in seconds. The CPU time includes that of child processes that have ended. A command that yields gets only
    the processor time that others leave."""
    started = time.monotonic()
    command = ["nice", "-n", "10", *command] if yields else command
    say(f"--- started: {name}\n")
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    RUNNING.add(process)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    RUNNING.discard(process)
    seconds = time.monotonic() - started
    say(f"--- {name}: exit code {process.returncode}, {seconds:.0f} s\n{output}")
    return process.returncode, output.splitlines(), seconds, usage.ru_utime + usage.ru_stime


def test(binary: Binary, env: dict[str, str], only: str = "", yields: bool = False) -> Outcome:
    """Runs one binary, or its tests with `only` in their names, and counts them."""
    env = env | {"CARGO_MANIFEST_DIR": str(binary.folder)}
    command = [str(binary.path), *([only, "--nocapture"] if only else [])]
    code, lines, seconds, processors = run(binary.name, command, binary.folder, env, yields)
    outcome = Outcome(binary.name, seconds=seconds, processors=processors)
    closed = False
    for line in lines:
        if match := RESULT.match(line):
            closed = True
            outcome.passed += int(match[1])
            outcome.failed += int(match[2])
            outcome.skipped += int(match[3])
        elif match := FAILED_TEST.match(line):
            outcome.notes.append(f"failed: {match[1]} in {binary.name}")
        elif match := IGNORED_TEST.match(line):
            outcome.notes.append(f"could not run: {match[1]} in {binary.name}, because it is marked #[ignore]")
    if not closed or (code != 0) != (outcome.failed > 0):
        outcome.failed += 1
        outcome.notes.append(f"failed: {binary.name} ended with code {code} and without a summary to match (see above)")
    elif only and outcome.passed == outcome.failed == 0:
        outcome.failed += 1
        outcome.notes.append(f"failed: no test of {binary.name} ran, because none has `{only}` in its name")
    return outcome


def side_by_side(computing: list, waiting: list) -> list[Outcome]:
    """Runs jobs, which are functions without arguments that return an outcome. Computing jobs run one after the other,
    waiting jobs a few at a time. Returns the outcomes in the order of the jobs."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(max(1, WAITING)) as few:
        try:
            futures = [one.submit(job) for job in computing] + [few.submit(job) for job in waiting]
            return [future.result() for future in futures]
        except BaseException:
            for pool in (one, few):
                pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                process.send_signal(signal.SIGTERM)
            raise


def compiled(messages: list[str]) -> list[Binary]:
    """Returns the test binaries in cargo's messages (`--message-format=json`)."""
    binaries = []
    for line in messages:
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            binaries.append(Binary.of(message))
    return sorted(binaries, key=lambda binary: binary.name)
