#!/usr/bin/env python3
"""Builds the control plane that Poolwright's tests and demo run against: etcd, kube-apiserver,
kube-scheduler, kube-controller-manager and KWOK, from the Go modules pinned in go.mod and go.sum.

The programs go to a cache outside the checkout, in a folder named after a hash of the pins. So all
checkouts with the same pins share one build, and a change of pins never mixes versions:

    ${POOLWRIGHT_CACHE:-~/.cache/poolwright}/control-plane/<sums>-<os>-<arch>/

Each program is built in a temporary folder and then renamed into place, so a program in the cache is
always complete. An interrupted build continues with the missing programs. If two checkouts build at
the same time, one waits for the other.

If KUBEBUILDER_ASSETS is set, the programs in that folder are used, and only missing ones are built.

    build.py                      build what is missing
    build.py --kubernetes 1.33    the API server, scheduler and controller manager of an older Kubernetes, from the
                                  pins in older/1.33
    build.py [...] --print        print the folder and build nothing
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The folder of the pins to build: this one, or one in `older`.
MODULE = HERE
VERSION_FLAG = "-X k8s.io/component-base/version.gitVersion=v1.36.3"

# Program, Go package, and seconds of a cold build on two cores in this order (later programs reuse packages of earlier ones).
PROGRAMS = [
    ("etcd", "go.etcd.io/etcd/server/v3", 55),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", 240),
    ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", 21),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", 46),
    ("kwok", "sigs.k8s.io/kwok/cmd/kwok", 17),
]

# The interval at which a long build prints its progress.
TELL_EVERY_SECONDS = 15


def cache_root() -> Path:
    """Returns the cache that all checkouts share."""
    root = os.environ.get("POOLWRIGHT_CACHE")
    return Path(root) if root else Path.home() / ".cache" / "poolwright"


def target() -> str:
    """Returns Go's name of this machine, for example linux-amd64."""
    machine = platform.machine().lower()
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    return f"{platform.system().lower()}-{arch}"


def folder() -> Path:
    """Returns the folder for the programs of these pins, built or not."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes())
    digest.update(VERSION_FLAG.encode())
    folder_of = "control-plane" if MODULE == HERE else f"control-plane-{MODULE.name}"
    return cache_root() / folder_of / f"{digest.hexdigest()[:16]}-{target()}"


def assets() -> Path | None:
    """Returns the folder that the user has set, if any."""
    path = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(path) if path else None


def executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def missing() -> list[tuple[str, str, int]]:
    """Returns the programs that are neither in the user's folder nor in the cache."""
    places = [place for place in (assets() if MODULE == HERE else None, folder()) if place]
    return [p for p in PROGRAMS if not any(executable(place / p[0]) for place in places)]


def packages(package: str) -> int:
    """Returns the number of Go packages of a program, or 0 if Go cannot list them. Downloads the modules."""
    listed = subprocess.run(["go", "list", "-deps", package], cwd=MODULE, stdout=subprocess.PIPE, text=True)
    return len(listed.stdout.splitlines()) if listed.returncode == 0 else 0


def build(label: str, name: str, package: str, into: Path) -> bool:
    """Builds one program into `into` and prints the progress. Returns False if the build failed."""
    started = time.monotonic()
    total = packages(package)
    with tempfile.TemporaryDirectory(dir=into, prefix=".building-") as aside:
        binary = Path(aside) / name
        command = ["go", "build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath",
                   "-ldflags", f"-s -w {VERSION_FLAG}", "-o", str(binary), package]
        env = dict(os.environ, CGO_ENABLED="0", GOWORK="off")
        process = subprocess.Popen(command, cwd=MODULE, env=env, stderr=subprocess.PIPE, text=True)
        lines: list[str] = []

        def read() -> None:
            for line in process.stderr:
                lines.append(line.rstrip())

        reader = threading.Thread(target=read)
        reader.start()
        while reader.is_alive():
            reader.join(TELL_EVERY_SECONDS)
            if reader.is_alive():
                took = time.monotonic() - started
                print(f"{label} {name}: {len(lines)} of at most {total} packages compiled, {took:.0f} s",
                      flush=True)
        if process.wait() != 0:
            print("\n".join(lines[-30:]), file=sys.stderr)
            print(f"{label} {name}: the build failed (above are its last lines). Go 1.26 or later and a reachable "
                  "Go module proxy are needed: check `go version` and `go env GOPROXY`, then run "
                  "`make control-plane` again; what was built stays.", file=sys.stderr)
            return False
        os.replace(binary, into / name)
    size = (into / name).stat().st_size / 1e6
    print(f"{label} {name}: built in {time.monotonic() - started:.0f} s ({size:.0f} MB)", flush=True)
    return True


def choose(version: str) -> str | None:
    """Selects the pins of an older Kubernetes. Returns an error message if it is not pinned."""
    global MODULE, VERSION_FLAG, PROGRAMS
    module = HERE / "older" / version
    if not re.fullmatch(r"[0-9.]+", version) or not (module / "go.mod").is_file():
        known = ", ".join(sorted(path.name for path in (HERE / "older").iterdir()))
        return f"Kubernetes `{version}` is not pinned here; there is {known}, and without --kubernetes the newest."
    patch = re.search(r"^\tk8s.io/kubernetes (v\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    if patch is None:
        return f"{module / 'go.mod'} does not require k8s.io/kubernetes; add it with its version."
    MODULE = module
    VERSION_FLAG = f"-X k8s.io/component-base/version.gitVersion={patch.group(1)}"
    PROGRAMS = [program for program in PROGRAMS if program[1].startswith("k8s.io/kubernetes/")]
    return None


def main() -> int:
    if "--kubernetes" in sys.argv[1:]:
        wrong = choose((sys.argv[sys.argv.index("--kubernetes") + 1:] or [""])[0])
        if wrong:
            print(wrong, file=sys.stderr)
            return 2
    into = folder()
    if "--print" in sys.argv[1:]:
        print(into)
        return 0
    if MODULE == HERE and assets() and not assets().is_dir():
        print(f"KUBEBUILDER_ASSETS is {assets()}, which is no folder: point it at one with etcd and kube-apiserver, "
              "or unset it and the programs are built.", file=sys.stderr)
        return 2
    wanted = missing()
    if not wanted:
        return 0
    if MODULE == HERE and assets():
        names = ", ".join(p[0] for p in wanted)
        print(f"KUBEBUILDER_ASSETS ({assets()}) has no {names}: building only that into {into}", flush=True)
    if shutil.which("go") is None:
        print("Go is not installed, and the control plane is built with it: install Go 1.26 or later "
              "(https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with "
              + ", ".join(p[0] for p in PROGRAMS) + ".", file=sys.stderr)
        return 2
    into.mkdir(parents=True, exist_ok=True)
    with open(into / ".lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another build of the control plane is under way in {into}: waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
            wanted = missing()
        # The test harness finds the folder by comparing these files with its own pins.
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(MODULE / name, into / name)
        if wanted:
            minutes = sum(p[2] for p in wanted) / 60
            print(f"Building the control plane into {into}: {len(wanted)} programs, about {minutes:.0f} min "
                  "on two cores with a cold Go cache", flush=True)
        for index, (name, package, seconds) in enumerate(wanted, start=1):
            label = f"[{index}/{len(wanted)}]"
            about = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds} s"
            print(f"{label} {name} ... about {about} cold", flush=True)
            if not build(label, name, package, into):
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
