#!/usr/bin/env python3
"""The tools that building and testing Poolwright needs beyond Rust, Go, Python, gcc, cmake and make.

Each is pinned, installed on first use into the cache that all checkouts share (POOLWRIGHT_CACHE, or
~/.cache/poolwright), and found there at once from then on:

    libclang     read by the build of HiGHS's bindings; a wheel from the Python package index, checked by its hash
    HiGHS        the LP solver, compiled, for the demo on Linux; a wheel (MIT), checked by its hash. Other builds compile HiGHS
    cargo-deny   licences, sources, bans and advisories of our dependencies; built by cargo from its registry
    moto         the stand-in for AWS (Apache-2.0), for tests of its provider; wheels from the Python package index, each checked
                 by its hash (moto/requirements.txt), in an environment of their own
    duckdb       the database with which tests read a ledger (MIT); a wheel likewise (duckdb/requirements.txt)
    focus-validator
                 the validator of FOCUS 1.0 (MIT), for a test of `poolwright report`; packages from the Python package index, each
                 checked by its hash (focus/requirements.txt), in an environment of their own
    gang-crds    the CRDs of JobSet and LeaderWorkerSet (Apache-2.0), for tests on the control plane; Go modules, checked by
                 their hashes
    chromium     opens our HTML pages in tests (BSD); Linux on x86-64. A package of npm's registry, checked by its hash, unpacked with
                 a wheel of brotli (MIT), checked by its hash

It also keeps copies of highs.cmake and highs-compiler.sh there, which say how HiGHS is compiled.

Use:

    tools.py run COMMAND...   runs a command with libclang found and the shared target directory set
    tools.py run-demo COMMAND...
                              does the same, but the demo uses the compiled HiGHS instead of compiling it
    tools.py libclang         prints the folder of libclang
    tools.py cargo-deny       prints the path of cargo-deny
    tools.py gang-crds        prints the folder of those CRDs
    tools.py moto             prints the path of moto's server
    tools.py chromium         prints the path of Chromium
    tools.py duckdb           prints the path of a Python that has DuckDB
    tools.py focus-validator  prints the folder of the validator of FOCUS
"""

import fcntl
import glob
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from contextlib import contextmanager
from pathlib import Path

LIBCLANG = "18.1.1"
# The hashes of that version's wheels, one per platform.
LIBCLANG_HASHES = [
    "c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b",  # Linux x86-64
    "54dda940a4a0491a9d1532bf071ea3ef26e6dbaf03b5000ed94dd7174e8f9592",  # Linux arm64
    "0b2e143f0fac830156feb56f9231ff8338c20aecfe72b4ffe96f19e5a1dbb69a",  # macOS arm64
    "6f14c3f194704e5d09769108f03185fce7acaf1d1ae4bbb2f30a72c2400cb7c5",  # macOS x86-64
]
# The folders in which distributions install it, for systems without pip.
SYSTEM_LIBCLANG = ["/usr/lib/llvm-*/lib/libclang*.so*", "/usr/lib/*/libclang*.so*", "/usr/lib64/libclang*.so*"]

HIGHS = "1.15.1"
# The hashes of that version's wheels of `highsbox`, one per platform.
HIGHS_HASHES = [
    "17f30d23ef37488467732b45f141146f7c287826a576b4514ae39a8cc4068b28",  # Linux x86-64
    "d1a3c1742d6fae36a3a18e0c7500530e46de5faa1a42dee65677bf0ae80acda3",  # Linux arm64
]

CARGO_DENY = "0.20.2"

MOTO = "5.2.5"
MOTO_REQUIREMENTS = Path(__file__).resolve().parent / "moto" / "requirements.txt"

DUCKDB = "2.0.1"
DUCKDB_REQUIREMENTS = Path(__file__).resolve().parent / "duckdb" / "requirements.txt"
FOCUS_VALIDATOR = "1.0.0"
FOCUS_REQUIREMENTS = Path(__file__).resolve().parent / "focus"

# Module, version, its hash as in go.sum, and the folder of its CRDs.
GANG_CRDS = [
    ("sigs.k8s.io/jobset", "v0.10.1", "h1:u8QKifNsrWVrlRFe6w2ofYTqFT9ma2DRHxfeB2m9xyU=",
     "config/components/crd/bases"),
    ("sigs.k8s.io/lws", "v0.7.0", "h1:qWfzX8+UBak+Hq0+m/PuE3uO0mp/3dmm5q/h/7z31A8=", "config/crd/bases"),
]

# A headless Chromium in one file, as a package of npm. The hash is that of the package, which is for Linux on x86-64.
CHROMIUM = "153.0.0"
CHROMIUM_HASH = "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0"
NPM_REGISTRY = "https://registry.npmjs.org"

BROTLI = "1.2.1"
# The hashes of that version's wheels for Linux on x86-64, one per version of Python.
BROTLI_HASHES = [
    "f760d9a9c441bfc87eee720ddb0946d3e19995b20983ae14038e033f1664efcb",  # 3.10
    "6b3c3d5794212a54434b4856f808f7bdf7ad48eacadaadb5b2346fc9a639365a",  # 3.11
    "4b9dd0173ca5e01d1eb307d3c184fe8c09bdc168ede560889b1018d216d38c61",  # 3.12
    "264fd5b200f6f6170cb551a4b9fcaabf8aa846ddaefe72db4d5f49f9d3743df9",  # 3.13
    "a998857af4fcd19920bdf5f30f0f1a23f38472a703d33e49168cd4fd32438377",  # 3.14
    "f00ff4b56caf151365c77988eb85a4a71eb26fe63047d4084d5614e06d65e3cf",  # 3.15
]


class Missing(Exception):
    """A tool that cannot be installed, with the reason and the next step."""


def cache() -> Path:
    root = os.environ.get("POOLWRIGHT_CACHE")
    return Path(root) if root else Path.home() / ".cache" / "poolwright"


def say(line: str) -> None:
    """Prints progress to standard error, because standard output is the answer."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def lock(name: str):
    """Allows one installation of a tool at a time. A second checkout waits and then finds the tool."""
    (cache() / "tools").mkdir(parents=True, exist_ok=True)
    with open(cache() / "tools" / f".{name}.lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def download_wheel(package: str, version: str, hashes: list[str], folder: Path) -> Path | None:
    """Downloads this platform's wheel of a package to a folder. Returns None if pip finds none with one of the hashes; pip
    then has said why."""
    requirements = folder / "requirements.txt"
    checked = " ".join(f"--hash=sha256:{digest}" for digest in hashes)
    requirements.write_text(f"{package}=={version} {checked}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
         "--only-binary=:all:", "--require-hashes", "--requirement", str(requirements), "--dest", str(folder)],
        stdout=sys.stderr)
    wheels = list(folder.glob("*.whl"))
    return wheels[0] if done.returncode == 0 and wheels else None


def extract(wheel: zipfile.ZipFile, member: str, path: Path) -> None:
    """Writes a member of a wheel to this path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wheel.open(member) as packed, open(path, "wb") as file:
        shutil.copyfileobj(packed, file)


def libclang() -> Path:
    """Returns the folder of libclang: LIBCLANG_PATH, or the pinned one."""
    if os.environ.get("LIBCLANG_PATH"):
        return Path(os.environ["LIBCLANG_PATH"])
    home = cache() / "tools" / f"libclang-{LIBCLANG}"
    native = home / "clang" / "native"
    if native.is_dir():
        return native
    with lock("libclang"):
        if native.is_dir():
            return native
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
            return system_libclang()
        say(f"libclang {LIBCLANG}: downloading the wheel (24 MB)")
        with tempfile.TemporaryDirectory(dir=cache() / "tools", prefix=".libclang-") as aside:
            aside = Path(aside)
            wheel = download_wheel("libclang", LIBCLANG, LIBCLANG_HASHES, aside)
            if wheel is None:
                raise Missing("the libclang wheel could not be downloaded (above is what pip says): check that pip "
                              "reaches its index, or install libclang and set LIBCLANG_PATH to its folder")
            with zipfile.ZipFile(wheel) as packed_wheel:
                for member in packed_wheel.namelist():
                    # The library is in clang/native, which some wheels have in <name>.data/platlib.
                    if "/native/libclang." in f"/{member}":
                        extract(packed_wheel, member, aside / "out" / "clang" / "native" / Path(member).name)
            if not (aside / "out").is_dir():
                raise Missing(f"the wheel {wheel.name} holds no libclang: install it and set LIBCLANG_PATH")
            os.rename(aside / "out", home)
    return native


def system_libclang() -> Path:
    found = sorted(path for pattern in SYSTEM_LIBCLANG for path in glob.glob(pattern))
    if found:
        return Path(found[-1]).parent
    raise Missing("libclang is needed to build HiGHS's bindings, and it can be had neither with pip (python3 -m pip "
                  "does not work) nor from the system: install pip, or install libclang and set LIBCLANG_PATH")


def cargo_deny() -> Path:
    """Returns the path of the pinned cargo-deny."""
    home = cache() / "tools" / f"cargo-deny-{CARGO_DENY}"
    binary = home / "bin" / "cargo-deny"
    if binary.is_file():
        return binary
    with lock("cargo-deny"):
        if binary.is_file():
            return binary
        say(f"cargo-deny {CARGO_DENY}: building it once (about 70 s on two cores)")
        started = time.monotonic()
        # It runs for only a second, so a fast build matters more than a fast program. It has its own target directory, because it
        # shares no dependencies with the workspace.
        env = {key: value for key, value in os.environ.items() if key not in ("CARGO_TARGET_DIR", "RUSTFLAGS")}
        env.update(CARGO_PROFILE_RELEASE_OPT_LEVEL="1", CARGO_PROFILE_RELEASE_LTO="off",
                   CARGO_PROFILE_RELEASE_CODEGEN_UNITS="16", CARGO_PROFILE_RELEASE_DEBUG="0")
        done = subprocess.run(["cargo", "install", "--locked", "--no-default-features", "--version",
                               CARGO_DENY, "--root", str(home), "cargo-deny"], env=env, stdout=sys.stderr)
        if done.returncode != 0:
            raise Missing("cargo-deny could not be built (above is what cargo says): check that cargo reaches its registry")
        say(f"cargo-deny {CARGO_DENY}: built in {time.monotonic() - started:.0f} s")
    return binary


def moto() -> Path:
    """Returns the path of moto's server: MOTO_SERVER, or the pinned one."""
    if os.environ.get("MOTO_SERVER"):
        return Path(os.environ["MOTO_SERVER"])
    home = python_environment(f"moto-{MOTO}", [MOTO_REQUIREMENTS], "about 40 s, 320 MB on disk", "or set MOTO_SERVER to a moto_server")
    return home / "bin" / "moto_server"


def duckdb() -> Path:
    """Returns the path of a Python that has DuckDB: DUCKDB_PYTHON, or one with the pinned version."""
    if os.environ.get("DUCKDB_PYTHON"):
        return Path(os.environ["DUCKDB_PYTHON"])
    home = python_environment(f"duckdb-{DUCKDB}", [DUCKDB_REQUIREMENTS], "about 10 s, 90 MB on disk", "or set DUCKDB_PYTHON to a Python that has it")
    return home / "bin" / "python"


def focus_validator() -> Path:
    """Returns the folder of the pinned validator of FOCUS 1.0: an environment of Python."""
    files = [FOCUS_REQUIREMENTS / "build.txt", FOCUS_REQUIREMENTS / "requirements.txt"]
    return python_environment(f"focus-validator-{FOCUS_VALIDATOR}", files, "about a minute, 450 MB on disk", "or do without the stage focus")


def python_environment(name: str, requirements: list[Path], takes: str, remedy: str) -> Path:
    """Returns the folder of an environment of Python with what these files list, each checked by its hash. All of the first file are
    wheels. What later files have as source is built with what is there, so nothing that is not listed is downloaded."""
    home = cache() / "tools" / name
    stamp = home / "requirements.txt"
    wanted = b"".join(file.read_bytes() for file in requirements)
    # This file is written last, so an interrupted installation does not have it.
    if stamp.is_file() and stamp.read_bytes() == wanted:
        return home
    with lock(name.rpartition("-")[0]):
        if stamp.is_file() and stamp.read_bytes() == wanted:
            return home
        say(f"{name}: installing it ({takes})")
        # Installed in its final place, because an environment contains its own path.
        shutil.rmtree(home, ignore_errors=True)
        if subprocess.run([sys.executable, "-m", "venv", str(home)], stdout=sys.stderr).returncode != 0:
            raise Missing(f"python's module venv does not work (above is what it says): install it, {remedy}")
        for place, file in enumerate(requirements):
            built = "--no-build-isolation" if place else "--only-binary=:all:"
            done = subprocess.run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet",
                                   "--disable-pip-version-check", "--no-deps", built, "--require-hashes",
                                   "--requirement", str(file)], stdout=sys.stderr)
            if done.returncode != 0:
                raise Missing(f"{name} could not be installed (above is what pip says): check that pip reaches its index, {remedy}")
        stamp.write_bytes(wanted)
    return home


def gang_crds() -> Path:
    """Returns the folder with the pinned CRDs of JobSet and LeaderWorkerSet."""
    home = cache() / "tools" / ("gang-crds-" + "-".join(version for _, version, _, _ in GANG_CRDS))
    if home.is_dir():
        return home
    with lock("gang-crds"):
        if home.is_dir():
            return home
        with tempfile.TemporaryDirectory(dir=cache() / "tools", prefix=".gang-crds-") as aside:
            out = Path(aside) / "out"
            out.mkdir()
            for module, version, digest, folder in GANG_CRDS:
                done = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], cwd=aside,
                                      stdout=subprocess.PIPE, text=True)
                if done.returncode != 0:
                    raise Missing(f"{module} {version} could not be downloaded (above and here is what go says): "
                                  f"check that go reaches its proxy. {done.stdout}")
                said = json.loads(done.stdout)
                if said["Sum"] != digest:
                    raise Missing(f"{module} {version} has the hash {said['Sum']}, not {digest}: it is not what was "
                                  "pinned; find out why before you use it")
                for file in sorted(Path(said["Dir"], folder).glob("*.yaml")):
                    shutil.copyfile(file, out / file.name)
            os.rename(out, home)
    return home


def chromium() -> Path:
    """Returns the path of Chromium: CHROMIUM, or the pinned one."""
    if os.environ.get("CHROMIUM"):
        return Path(os.environ["CHROMIUM"])
    home = cache() / "tools" / f"chromium-{CHROMIUM}"
    if home.is_dir():
        return home / "chromium"
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Missing("the pinned Chromium is for Linux on x86-64: install Chromium and set CHROMIUM to its program")
    with lock("chromium"):
        if home.is_dir():
            return home / "chromium"
        say(f"Chromium {CHROMIUM}: downloading the package (70 MB)")
        registry = os.environ.get("npm_config_registry", NPM_REGISTRY).rstrip("/")
        url = f"{registry}/@sparticuz/chromium/-/chromium-{CHROMIUM}.tgz"
        try:
            with urllib.request.urlopen(url, timeout=300) as answer:
                package = answer.read()
        except OSError as error:
            raise Missing(f"Chromium could not be downloaded from {url} ({error}): check that this machine reaches it, or set "
                          "CHROMIUM to the program of another") from error
        digest = hashlib.sha256(package).hexdigest()
        if digest != CHROMIUM_HASH:
            raise Missing(f"{url} has the hash {digest}, not {CHROMIUM_HASH}: it is not what was pinned; find out why before you "
                          "use it")
        with tempfile.TemporaryDirectory(dir=cache() / "tools", prefix=".chromium-") as aside:
            unpack_chromium(package, Path(aside))
            os.rename(Path(aside, "out"), home)
    return home / "chromium"


def unpack_chromium(package: bytes, aside: Path) -> None:
    """Unpacks the package into the folder `out`: the program beside the libraries for drawing, `lib` and the fonts."""
    wheel = download_wheel("brotli", BROTLI, BROTLI_HASHES, aside)
    if wheel is None:
        raise Missing("brotli could not be downloaded (above is what pip says): check that pip reaches its index")
    with zipfile.ZipFile(wheel) as packed_wheel:
        packed_wheel.extractall(aside / "brotli")
    sys.path.insert(0, str(aside / "brotli"))
    import brotli  # noqa: PLC0415  (it was not there before)

    out = aside / "out"
    out.mkdir()
    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as packed:
        unpacked = lambda name: brotli.decompress(packed.extractfile(f"package/bin/{name}.br").read())  # noqa: E731
        for name in ("al2023.tar", "fonts.tar", "swiftshader.tar"):
            with tarfile.open(fileobj=io.BytesIO(unpacked(name))) as inner:
                inner.extractall(out, filter="data")
        (out / "chromium").write_bytes(unpacked("chromium"))
    (out / "chromium").chmod(0o755)


def highs(name: str) -> Path:
    """Returns the path of a toolchain file for HiGHS. It is a copy in the cache, because the path stays in the build, which
    other checkouts share."""
    (cache() / "tools").mkdir(parents=True, exist_ok=True)
    for file in ("highs-compiler.sh", "highs.cmake", "demo.cmake"):
        source, copy = Path(__file__).resolve().parent / file, cache() / "tools" / file
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            # Renamed into place, because another checkout may read it.
            with tempfile.NamedTemporaryFile(dir=copy.parent, prefix=".highs-", delete=False) as aside:
                aside.write(source.read_bytes())
            os.replace(aside.name, copy)
    return cache() / "tools" / name


def compiled_highs() -> Path | None:
    """Returns the folder of the compiled HiGHS, or None where it cannot be used and has to be compiled."""
    if sys.platform != "linux" or shutil.which("pkg-config") is None:
        return None
    home = cache() / "tools" / f"highs-{HIGHS}"
    with lock("highs"):
        if home.is_dir():
            return home
        say(f"HiGHS {HIGHS}: downloading the wheel (10 MB)")
        with tempfile.TemporaryDirectory(dir=cache() / "tools", prefix=".highs-") as aside:
            aside = Path(aside)
            wheel = download_wheel("highsbox", HIGHS, HIGHS_HASHES, aside)
            if wheel is None:
                say("HiGHS could not be downloaded (above is what pip says): the demo compiles it, which takes two minutes more")
                return None
            out = aside / "out"
            with zipfile.ZipFile(wheel) as packed_wheel:
                for member in packed_wheel.namelist():
                    _, found, path = member.partition("/highs_dist/")
                    if found and path.startswith(("include/highs/", "lib/libhighs.so")):
                        extract(packed_wheel, member, out / path)
            # Without its requirements: this library needs no other of the wheel.
            (out / "lib" / "pkgconfig").mkdir(parents=True)
            (out / "lib" / "pkgconfig" / "highs.pc").write_text(
                f"Name: HiGHS\nDescription: LP solver\nVersion: {HIGHS}\n"
                f"Libs: -L{home}/lib -lhighs\nCflags: -I{home}/include/highs\n", encoding="utf-8")
            os.rename(out, home)
    return home


def environment() -> dict[str, str]:
    """Returns the environment for cargo: libclang, how HiGHS is compiled, and one target directory for all checkouts."""
    env = dict(os.environ, LIBCLANG_PATH=str(libclang()))
    env.setdefault("CARGO_TARGET_DIR", str(cache() / "target"))
    env.setdefault("CMAKE_TOOLCHAIN_FILE", str(highs("highs.cmake")))
    return env


def demo_environment() -> dict[str, str]:
    """Returns the environment for the build of the demo, which finds the compiled HiGHS through pkg-config."""
    env = environment() | {"CMAKE_TOOLCHAIN_FILE": str(highs("demo.cmake"))}
    home = compiled_highs()
    if home is None:
        # It never takes the system's HiGHS, which may be of any version.
        return env | {"HIGHS_NO_PKG_CONFIG": "1"}
    flags = f"{env.get('RUSTFLAGS', '')} -C link-arg=-Wl,-rpath,{home / 'lib'}"
    return env | {"PKG_CONFIG_PATH": str(home / "lib" / "pkgconfig"), "RUSTFLAGS": flags.strip()}


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["run", command, *rest]:
                env = environment()
                os.execvpe(command, [command, *rest], env)
            case ["run-demo", command, *rest]:
                os.execvpe(command, [command, *rest], demo_environment())
            case ["libclang"]:
                print(libclang())
            case ["moto"]:
                print(moto())
            case ["duckdb"]:
                print(duckdb())
            case ["focus-validator"]:
                print(focus_validator())
            case ["gang-crds"]:
                print(gang_crds())
            case ["chromium"]:
                print(chromium())
            case ["cargo-deny"]:
                print(cargo_deny())
            case _:
                say(__doc__)
                return 2
    except Missing as reason:
        say(f"error: {reason}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
