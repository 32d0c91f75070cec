#!/usr/bin/env python3
"""Replays eight weeks of GPU traces, and prints what they cost with Poolwright, before, and with simpler methods.

  week.py POOLWRIGHT [--moves] [WEEK...]     WEEK is a list and its first day, such as gpuspec33:142

Without `--moves`, no method left of `+ consol.` evicts a pod, and no week may cost more than with the best of them. With `--moves`, pods
of class LS are services, and Poolwright moves pods if that saves enough. Then no week may cost more than with the best of all methods that
are shown. Each week is played again without moves, and none may cost more with them. Jobs repeat work that they lose, so the cost counts
it. It counts once more at the mean price of a GPU-hour, because a job may repeat it only after the week.

If a goal is missed, the exit code is 1. `fixtures/replays/before.csv` has the costs that were measured earlier, each with its commit.
Only three of the weeks were measured, and no waiting times: the others say `not measured`.
"""
import concurrent.futures, csv, json, os, pathlib, subprocess, sys, time

ROOT = pathlib.Path(__file__).parent.parent
WEEKS = [f"{trace}:{day}" for trace in ("gpuspec33", "default") for day in (142, 135, 121, 114)]
DAY = 24 * 3600
# The budget of the pool, so that no pod waits for money.
BUDGET = "limits.usdPerHour=5000"
METHODS = {"onePodPerNode": "one per node", "firstFit": "first fit", "extension": "extension", "karpenterLike": "Karpenter-like",
           "karpenterLikeConsolidation": "+ consol., lost", "karpenterLikeConsolidationKept": "+ consol., kept"}

# Methods that evict no pod. No week may cost more than with the best of them.
WITHOUT_MOVES = ("onePodPerNode", "firstFit", "extension", "karpenterLike")
SERVICES = ["--services", "LS"]
NO_MOVES = ["--policy", "disruption.consolidationPolicy=WhenEmpty"]

def trace_of(week):
    trace, day = week.split(":")
    return ROOT / f"fixtures/traces/openb_pod_list_{trace}.csv", int(day)

def play(binary, week, flags):
    trace, day = trace_of(week)
    command = [binary, "simulate", "--trace", trace, "--pools", ROOT / "fixtures/manifests/pool.yaml", "--policy", BUDGET,
               "--from", f"{day}d", "--for", "7d", "-o", "json", *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{week}: poolwright simulate failed with exit code {done.returncode}")
    return json.loads(done.stdout)

def size(week):
    """Returns the number of pods that come within a week: the more, the longer its replay takes."""
    trace, day = trace_of(week)
    with open(trace) as file:
        return sum(day * DAY <= int(pod["creation_time"]) < (day + 7) * DAY for pod in csv.DictReader(file))

def play_all(binary, plays):
    """Plays weeks with flags, the longest first, so that no core waits for a long one at the end. Returns their reports in order."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        longest_first = sorted(plays, key=lambda one: -size(one[0]))
        running = {(week, *flags): pool.submit(play, binary, week, flags) for week, flags in longest_first}
        return [running[week, *flags].result() for week, flags in plays]

def over_limit(report):
    return report["costUsd"] / report["lowerLimitUsd"]

def with_lost_work(report):
    """Returns the cost of a week, with the work that was lost in it at the mean price of a GPU-hour."""
    price = report["costUsd"] / max(report["gpuHours"]["paid"], 1)
    return report["costUsd"] + report["lostWork"]["gpuHours"] * price

def best(report, methods):
    """Returns the cost of the cheapest of these methods."""
    return min(one["costUsd"] for one in report["baselines"] if one["method"] in methods)

def money(usd):
    return f"{usd:,.0f}"

def row(week, report, still, before):
    methods = {one["method"]: one for one in report["baselines"]}
    was = before.get(week)
    return [week, money(report["costUsd"]), *([money(still["costUsd"])] if still else []),
            f"{money(float(was['cost_usd']))} ({was['commit']})" if was else "not measured",
            money(report["lowerLimitUsd"]), f"{over_limit(report):.3f}", *(money(methods[name]["costUsd"]) for name in METHODS),
            f"{report['pendingSeconds']['p95']:.0f} s", str(report["nodeStarts"]), str(report["pods"]["evicted"]),
            f"{report['lostWork']['gpuHours']:.1f}", str(methods["karpenterLikeConsolidation"]["evicted"])]

def goal(what, missed):
    """Prints the weeks that miss a goal, and returns whether any does."""
    print(f"{what}: {', '.join(missed) or 'none'}")
    return bool(missed)

def main():
    binary, *rest = sys.argv[1:]
    moves = "--moves" in rest
    weeks = [one for one in rest if one != "--moves"] or WEEKS
    with open(ROOT / "fixtures/replays/before.csv") as file:
        before = {one["week"]: one for one in csv.DictReader(file)}
    began = time.monotonic()
    if moves:
        all_reports = play_all(binary, [(week, flags) for flags in (SERVICES, SERVICES + NO_MOVES) for week in weeks])
        reports, still = all_reports[:len(weeks)], all_reports[len(weeks):]
    else:
        reports, still = play_all(binary, [(week, NO_MOVES) for week in weeks]), [None] * len(weeks)
    rows = [row(*one, before) for one in zip(weeks, reports, still)]
    header = ["WEEK", "NOW $", *(["NO MOVES $"] if moves else []), "BEFORE $", "LIMIT $", "NOW / LIMIT", *METHODS.values(), "P95 WAIT",
              "STARTS", "EVICTED", "LOST GPU-H", "CONSOL. EVICTS"]
    widths = [max(len(line[at]) for line in [header, *rows]) for at in range(len(header))]
    for line in [header, *rows]:
        print("  ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(zip(line, widths))))
    print(f"mean of now / limit: {sum(map(over_limit, reports)) / len(reports):.3f}")
    dearer = lambda methods: [week for week, report in zip(weeks, reports) if report["costUsd"] > best(report, methods)]
    if moves:
        spent, spent_still = (sum(report["costUsd"] for report in all_of) for all_of in (reports, still))
        print(f"all weeks: {money(spent)} with moves, {money(spent_still)} without")
        missed = [
            goal("weeks that cost more with moves than without",
                 [week for week, one, other in zip(weeks, reports, still) if with_lost_work(one) > with_lost_work(other)]),
            goal("weeks that cost more than with the best of all methods", dearer(METHODS)),
        ]
    else:
        missed = [goal("weeks that cost more than with the best method that evicts no pod", dearer(WITHOUT_MOVES))]
    print(f"{len(rows)} weeks in {time.monotonic() - began:.0f} s")
    sys.exit(any(missed))

main()
