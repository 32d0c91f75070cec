#!/usr/bin/env python3
"""Writes the ledger of a large cluster, reports on it, and prints the time and the memory. Fails if a goal is missed.

  report_speed.py POOLWRIGHT     the release binary

DAYS, NODES and PODS (of each day) change the size. The goals are for 30 days, 5,000 nodes and 50,000 pods a day. The ledger has what a
controller writes: a row when a span begins and one when it ends, spans cut at midnight, a sign of life each minute, and a file each minute.
A third of the nodes is replaced each day, and half of the pods run beyond midnight. TMPDIR needs some 3 GB for the ledger.

The report must also be right: its bill is compared with the sum of the spans that were written, to the micro-dollar, and its GPU-hours
with those of the pods.
"""
import datetime, json, os, pathlib, random, subprocess, sys, tempfile, time

DAYS, NODES, PODS = (int(os.environ.get(name) or most) for name, most in (("DAYS", 30), ("NODES", 5000), ("PODS", 50000)))
# The goals.
SECONDS, MEBIBYTES = 10, 500

FIRST = datetime.date(2026, 10, 1)
# The minutes of a day, and the minutes that a node starts.
DAY, STARTING = 1440, 4
CLUSTER = "6f1f4a52-6a3c-4d38-9f0e-0d6a1c2b3e4f"
WRITER = "poolwright-7d9f8c6b5-x2x4z-1790812800000"
# Instance type, zone, capacity type, price and list price in micro-dollars per hour, GPUs.
KINDS = [
    ("g5.12xlarge", "us-east-1a", "on-demand", 5_672_000, 5_672_000, 4),
    ("g6.12xlarge", "us-east-1b", "spot", 1_840_611, 4_601_600, 4),
    ("p4d.24xlarge", "us-east-1c", "reserved", 21_957_642, 21_957_642, 8),
    ("m6i.16xlarge", "us-east-1a", "spot", 1_203_413, 3_072_000, 0),
]
INSTANCE = (
    '{"kind":"instance","id":"%s/%d","cluster":"' + CLUSTER + '","from":"%s",%s"seen":"%s",%s"uid":"%s","name":"%s","instanceId":"i-%s",'
    '"node":"ip-%s.ec2.internal","pool":"%s","provider":"aws","region":"us-east-1","zone":"%s","instanceType":"%s","capacityType":"%s",'
    '"phase":"%s","priceMicrosPerHour":%d,"listMicrosPerHour":%d,"priceSource":"aws","priceAt":"2026-10-01T00:00:00Z",'
    '"offers":{"gpuMillis":%d,"cpuMillis":47000,"memoryBytes":193273528320}}')
POD = (
    '{"kind":"pod","id":"%s/%s/%d","cluster":"' + CLUSTER + '","from":"%s",%s"seen":"%s",%s"uid":"%s","instance":"%s",'
    '"namespace":"team-%d","name":"%s","workloadKind":"Job","workload":"%s","labels":{"team":"group-%d"},'
    '"holds":{"gpuMillis":%d,"cpuMillis":4000,"memoryBytes":17179869184}}')


class Ledger:
    """Writes rows, and adds up what a report must say."""

    def __init__(self, root):
        self.root, self.random = pathlib.Path(root), random.Random(1)
        self.rows = self.bytes = self.bill = self.held = 0

    def begin(self, day):
        date = FIRST + datetime.timedelta(days=day)
        self.folder = self.root / f"v1/day={date}"
        self.midnight = int(datetime.datetime(date.year, date.month, date.day, tzinfo=datetime.timezone.utc).timestamp()) * 1000
        self.times = [f"{date}T{minute // 60:02}:{minute % 60:02}:00Z" for minute in range(DAY)]
        self.times.append(f"{date + datetime.timedelta(days=1)}T00:00:00Z")
        self.lines = [[] for _ in range(DAY + 1)]

    def span(self, begin, end, row):
        """Writes the two rows of a span."""
        started, ended = self.times[begin], self.times[end]
        self.lines[begin].append(row(self.midnight + begin * 60_000, started, "", started))
        self.lines[end].append(row(self.midnight + begin * 60_000, started, f'"to":"{ended}",', ended))

    def node(self, node, begin, end, phase, continued):
        uid, name, pool, (kind, zone, capacity, price, listed, gpus) = node
        goes_on = '"continued":true,' if continued else ""
        self.span(begin, end, lambda start, since, to, seen: INSTANCE % (
            uid, start, since, to, seen, goes_on, uid, name, name, name, pool, zone, kind, capacity, phase, price, listed, gpus * 1000))
        self.bill += (price * (end - begin) * 60_000 + 1_800_000) // 3_600_000

    def pod(self, pod, node, begin, end, continued):
        uid, team, name, job, gpu_millis = pod
        goes_on = '"continued":true,' if continued else ""
        self.span(begin, end, lambda start, since, to, seen: POD % (
            uid, node[0], start, since, to, seen, goes_on, uid, node[0], team, name, job, team % 7, gpu_millis))
        self.held += gpu_millis * (end - begin)

    def finish(self):
        self.folder.mkdir(parents=True)
        for minute, lines in enumerate(self.lines):
            lines.append('{"kind":"alive","cluster":"%s","writer":"%s","seen":"%s"}' % (CLUSTER, WRITER, self.times[minute]))
            text = "\n".join(lines) + "\n"
            name = f"{minute // 60 % 24:02}{minute % 60:02}00-{WRITER}-{minute}.ndjson"
            (self.folder / name).write_text(text)
            self.rows += len(lines)
            self.bytes += len(text)

    def uid(self):
        hexadecimal = f"{self.random.getrandbits(128):032x}"
        return "-".join((hexadecimal[:8], hexadecimal[8:12], hexadecimal[12:16], hexadecimal[16:20], hexadecimal[20:]))

    def new_node(self, slot):
        uid = self.uid()
        return uid, f"pool-{slot % 12}-{uid[:8]}", f"pool-{slot % 12}", KINDS[slot % len(KINDS)]


def replaced(slot, day):
    """Returns the minute at which the node of a slot is replaced on a day; None if it stays."""
    return 60 + (slot * 7919 + day * 104729) % 1320 if day > 0 and (day + slot) % 3 == 0 else None


def write(root):
    ledger, chance = Ledger(root), random.Random(2)
    nodes = [ledger.new_node(slot) for slot in range(NODES)]
    # Pods that run beyond midnight, with the minute of their end.
    staying = []
    for day in range(DAYS):
        ledger.begin(day)
        before = list(nodes)
        for slot in range(NODES):
            minute = replaced(slot, day)
            ledger.node(nodes[slot], 0, DAY if minute is None else minute, "ready", day > 0)
            if minute is not None:
                nodes[slot] = ledger.new_node(slot)
                ledger.node(nodes[slot], minute - STARTING, minute, "starting", False)
                ledger.node(nodes[slot], minute, DAY, "ready", True)
        for pod, node, end in staying:
            ledger.pod(pod, node, 0, end, True)
        staying = []
        for _ in range(PODS):
            slot, begin = chance.randrange(NODES), chance.randrange(DAY)
            end = begin + chance.randrange(10, DAY)
            minute, tomorrow = replaced(slot, day), replaced(slot, day + 1)
            is_old = minute is not None and begin < minute
            if is_old:
                end = min(end, minute)
            elif tomorrow is not None:
                end = min(end, DAY + tomorrow)
            node = before[slot] if is_old else nodes[slot]
            job = f"job-{chance.randrange(400)}"
            gpu_millis = chance.choice((0, 250, 1000)) if node[3][5] else 0
            uid = ledger.uid()
            pod = (uid, chance.randrange(40), f"{job}-{uid[:5]}", job, gpu_millis)
            ledger.pod(pod, node, begin, min(end, DAY), False)
            if end > DAY:
                staying.append((pod, node, end - DAY))
        ledger.finish()
    return ledger


def measure(program, root):
    last = FIRST + datetime.timedelta(days=DAYS - 1)
    command = [program, "report", "--ledger", root, "--from", str(FIRST), "--to", str(last), "-o", "json"]
    with tempfile.TemporaryFile() as out:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=out, env=os.environ | {"POOLWRIGHT_TODAY": str(last + datetime.timedelta(days=7))})
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"poolwright report failed with exit code {process.returncode}")
        out.seek(0)
        return json.load(out), seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def main():
    with tempfile.TemporaryDirectory(prefix="poolwright-report-") as root:
        ledger = write(root)
        print(f"{DAYS} days, {NODES:,} nodes, {PODS:,} pods a day: {ledger.rows:,} rows, {ledger.bytes / 1e9:.2f} GB", flush=True)
        report, seconds, mebibytes, processor = measure(sys.argv[1], root)
    print(f"  {seconds:.2f} s ({processor:.2f} s of processors), {mebibytes:.0f} MiB at most; {report['verdict']}")
    is_good = True
    for what, value, most in (("seconds", seconds, SECONDS), ("MiB", mebibytes, MEBIBYTES)):
        print(f"  goal {'reached' if value <= most else 'MISSED'}: {what} {value:.1f}, at most {most}")
        is_good &= value <= most
    bill, hours = round(report["usd"] * 1e6), sum(row["gpuHours"] for row in report["rows"] if row["class"] == "pods")
    for what, found, expected, near in (
        ("the bill in micro-dollars", bill, ledger.bill, 0),
        ("GPU-hours of pods", hours, ledger.held / 60_000, 0.01),
    ):
        if abs(found - expected) > near:
            print(f"  WRONG: {what}: {found}, and {expected} was written")
            is_good = False
    for note in report["notes"]:
        print(f"  note: {note}")
    sys.exit(0 if is_good and not report["notes"] else 1)


main()
