#!/usr/bin/env python3
"""Measures `poolwright what-if`. Exits with code 1 if it takes longer than its goal.

  what_if_bench.py POOLWRIGHT plans     two plans for 10,000 pods and 1,000 offerings, both with half as many pods again, and the runner-up
  what_if_bench.py POOLWRIGHT month     `what-if commitment` for the busiest 30 days of a trace

An answer needs five plans, of which some wait for others. So each may search for a second. The goal is for the whole command. The pods are those of the openb list gpuspec33: Deployments with its sizes and GPU models, in its shares. The offerings are the first
1,000 of AWS, on demand and spot, in their zones.
"""
import collections, csv, json, pathlib, re, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).parent.parent
TRACE = ROOT / "fixtures/traces/openb_pod_list_gpuspec33.csv"
PODS, OFFERINGS = 10_000, 1_000
TIME_LIMIT = "1s"
MOST_SECONDS = {"plans": 5, "month": 180}
# A budget that leaves no pod without a node.
BUDGET = 'usdPerHour: "50000"'
# Discounts that are made up, of each kind of offer.
OFFERS = """offers:
- {name: a10g-year, kind: reservation, instanceType: g5.xlarge, usdPerHour: 0.634, termMonths: 12}
- {name: l4-year, kind: reservation, instanceType: g6.xlarge, usdPerHour: 0.507, termMonths: 12}
- {name: t4-year, kind: reservation, instanceType: g4dn.xlarge, usdPerHour: 0.331, termMonths: 12}
- {name: plan-year, kind: savings-plan, discountPercent: 28, covers: {families: [g4dn, g5, g6]}, termMonths: 12}
"""

def catalogue(path):
    """Writes the catalogue. The last type that counts may be sold in fewer zones."""
    left = OFFERINGS
    with open(ROOT / "fixtures/catalogue/aws-us-east-1.csv") as given, open(path, "w") as made:
        rows = csv.DictReader(given)
        out = csv.DictWriter(made, rows.fieldnames)
        out.writeheader()
        # Types with GPUs and a spot price first, so that all of them count.
        for row in sorted(rows, key=lambda row: (row["gpu_count"] == "0", row["spot_usd_per_hour"] == "", row["instance_type"])):
            in_zone = 2 if row["spot_usd_per_hour"] else 1
            zones = row["zones"].split("|")[:left // in_zone]
            if zones:
                out.writerow(row | {"zones": "|".join(zones)})
                left -= len(zones) * in_zone
    if left:
        sys.exit(f"the catalogue lacks {left} offerings")

def shares(counts):
    """Returns the numbers scaled to PODS in sum, and rounded so that the sum is exact."""
    whole = sum(counts.values())
    shared, so_far, given = {}, 0, 0
    for key, count in sorted(counts.items()):
        so_far += count
        shared[key] = so_far * PODS // whole - given
        given += shared[key]
    return shared

def deployment(number, shape, replicas):
    cpu, memory, gpus, models = shape
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"} | ({"nvidia.com/gpu": gpus} if gpus != "0" else {})
    limits = {name: amount for name, amount in requests.items() if name == "nvidia.com/gpu"}
    spec = {"containers": [{"name": "main", "image": "none", "resources": {"requests": requests, "limits": limits}}]}
    if models:
        wanted = {"key": "poolwright.dev/gpu-model", "operator": "In", "values": list(models)}
        term = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    labels = {"app": f"w{number}"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"w{number}", "namespace": "ml"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": spec}}}

def workloads(path):
    """Writes the Deployments."""
    with open(ROOT / "fixtures/traces/gpu-spec-map.csv") as file:
        sold = {row["gpu_spec"]: tuple(sorted(row["gpu_models"].split("|"))) for row in csv.DictReader(file)}
    counts = collections.Counter()
    with open(TRACE) as file:
        for pod in csv.DictReader(file):
            models = tuple(sorted({model for spec in pod["gpu_spec"].split("|") if spec for model in sold[spec]}))
            counts[pod["cpu_milli"], pod["memory_mib"], pod["num_gpu"], models] += 1
    items = [deployment(number, *one) for number, one in enumerate(shares(counts).items()) if one[1]]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

def pool(path, capacity="on-demand, spot"):
    """Writes the pool of the demo, which may buy these, and much of it."""
    text = (ROOT / "fixtures/manifests/pool.yaml").read_text()
    changed = text.replace("values: [on-demand]", f"values: [{capacity}]").replace('usdPerHour: "100"', BUDGET)
    if BUDGET not in changed or capacity not in changed:
        sys.exit("fixtures/manifests/pool.yaml has no such limit or requirement any more")
    path.write_text(changed)

def asked(binary, what, arguments):
    """Runs `what-if`, and returns its answer and its time. Its exit code 1 means a difference."""
    began = time.monotonic()
    done = subprocess.run([binary, "what-if", *arguments, "-o", "json"], stdout=subprocess.PIPE, text=True)
    took = time.monotonic() - began
    if done.returncode not in (0, 1):
        sys.exit(f"poolwright what-if failed with exit code {done.returncode}")
    most = MOST_SECONDS[what]
    reached = took <= most
    print(f"  goal {'reached' if reached else 'MISSED'}: {took:.1f} s, at most {most} s")
    return json.loads(done.stdout), reached

def gap(side):
    """Returns how much less a plan may cost, in percent."""
    counted = side["usdPerHour"] + side["riskUsdPerHour"]
    bound = side["lowerBoundUsdPerHour"]
    return "unknown" if bound is None else f"{(counted - bound) / counted * 100:.3f} %"

def plans(binary, folder):
    catalogue(folder / "catalogue.csv")
    workloads(folder / "work.json")
    pool(folder / "pool.yaml")
    print(f"what-if --no-spot --time-limit {TIME_LIMIT}: {PODS:,} pods, {OFFERINGS:,} offerings")
    answer, reached = asked(binary, "plans", ["--base", folder / "pool.yaml", folder / "work.json", "--catalogue", folder / "catalogue.csv",
                                              "--no-spot", "--time-limit", TIME_LIMIT])
    for name in ("before", "after"):
        side = answer[name]
        print(f"  {name}: {side['nodes']:,} nodes, {side['usdPerHour']:,.2f} $/h, gap {gap(side)}, {len(side['waiting'])} pods wait; "
              f"{side['usdPerHourAtHalfMoreLoad']:,.2f} $/h for half as many pods again")
    return reached

def month(binary, folder):
    pool(folder / "pool.yaml", "on-demand")
    (folder / "offers.yaml").write_text(OFFERS)
    print("what-if commitment: days 119 to 149 of the openb list gpuspec33")
    answer, reached = asked(binary, "month", ["commitment", "--trace", TRACE, "--pools", folder / "pool.yaml", "--offers",
                                              folder / "offers.yaml", "--from", "119d", "--for", "30d"])
    print(f"  {answer['verdict']}")
    return reached

def main():
    binary, what = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        reached = {"plans": plans, "month": month}[what](binary, pathlib.Path(folder))
    sys.exit(not reached)

main()
