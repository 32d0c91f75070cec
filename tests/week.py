#!/usr/bin/env python3
"""Replays eight weeks of GPU traces, and prints what they cost with Poolwright, before, and with simpler methods.

  week.py POOLWRIGHT [--moves] [WEEK...]     WEEK is a list and its first day, such as gpuspec33:142

With `--moves`, pods of class LS are services, and Poolwright moves pods if that saves enough. The methods left of `+ consol.`
evict no pod. `fixtures/replays/before.csv` has the figures that were measured earlier, each with its commit.
"""
import concurrent.futures, csv, json, os, pathlib, subprocess, sys, time

ROOT = pathlib.Path(__file__).parent.parent
WEEKS = [f"{trace}:{day}" for trace in ("gpuspec33", "default") for day in (142, 135, 121, 114)]
# The budget of the pool, so that no pod waits for money.
BUDGET = "limits.usdPerHour=5000"
METHODS = {"onePodPerNode": "one per node", "firstFit": "first fit", "extension": "extension", "karpenterLike": "Karpenter-like",
           "karpenterLikeConsolidation": "+ consol., lost", "karpenterLikeConsolidationKept": "+ consol., kept"}

# Methods that evict no pod. No week may cost more than with the best of them.
WITHOUT_MOVES = ("onePodPerNode", "firstFit", "extension", "karpenterLike")
MOVES = ["--services", "LS"]
NO_MOVES = ["--policy", "disruption.consolidationPolicy=WhenEmpty"]

def play(binary, week, flags):
    trace, day = week.split(":")
    command = [binary, "simulate", "--trace", ROOT / f"fixtures/traces/openb_pod_list_{trace}.csv", "--pools",
               ROOT / "fixtures/manifests/pool.yaml", "--policy", BUDGET, "--from", f"{day}d", "--for", "7d", "-o", "json", *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{week}: poolwright simulate failed with exit code {done.returncode}")
    return json.loads(done.stdout)

def over_limit(report):
    return report["costUsd"] / report["lowerLimitUsd"]

def best(report):
    """Returns the cost of the cheapest method that evicts no pod."""
    return min(one["costUsd"] for one in report["baselines"] if one["method"] in WITHOUT_MOVES)

def row(week, report, before):
    methods = {one["method"]: one for one in report["baselines"]}
    money = lambda usd: f"{usd:,.0f}"
    was = before.get(week)
    return [week, money(report["costUsd"]), f"{money(float(was['cost_usd']))} ({was['commit']})" if was else "-",
            money(report["lowerLimitUsd"]), f"{over_limit(report):.3f}", *(money(methods[name]["costUsd"]) for name in METHODS),
            f"{report['pendingSeconds']['p95']:.0f} s", str(report["nodeStarts"]), str(report["pods"]["evicted"]),
            str(methods["karpenterLikeConsolidation"]["evicted"])]

def main():
    binary, *rest = sys.argv[1:]
    flags = MOVES if "--moves" in rest else NO_MOVES
    weeks = [one for one in rest if one != "--moves"] or WEEKS
    with open(ROOT / "fixtures/replays/before.csv") as file:
        before = {one["week"]: one for one in csv.DictReader(file)}
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = list(pool.map(lambda week: play(binary, week, flags), weeks))
        rows = [row(week, report, before) for week, report in zip(weeks, reports)]
    header = ["WEEK", "NOW $", "BEFORE $", "LIMIT $", "NOW / LIMIT", *METHODS.values(), "P95 WAIT", "STARTS", "EVICTED", "CONSOL. EVICTS"]
    widths = [max(len(line[at]) for line in [header, *rows]) for at in range(len(header))]
    for line in [header, *rows]:
        print("  ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(zip(line, widths))))
    print(f"mean of now / limit: {sum(map(over_limit, reports)) / len(reports):.3f}")
    dearer = [week for week, report in zip(weeks, reports) if report["costUsd"] > best(report)]
    print(f"weeks that cost more than with the best method that evicts no pod: {', '.join(dearer) or 'none'}")
    print(f"{len(rows)} weeks in {time.monotonic() - began:.0f} s")

main()
