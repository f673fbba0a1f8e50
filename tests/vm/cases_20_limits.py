# SPDX-License-Identifier: Apache-2.0
"""Limits, each with a controller of cgroup v2, and how exactly they bite."""
import os
import time

from vm import *

KIB, MIB = 1 << 10, 1 << 20


def limits_are_written():
    submit("limits", "exec sleep 1000000", memory=48, cpu=512)
    alloc = allocs("limits", "running")[0]
    want = {"memory.max": str(48 << 20), "memory.swap.max": "0", "memory.oom.group": "1",
            "pids.max": "64", "cpu.max": "max 100000", "../cpu.weight": "50", "../../cpu.weight": "50"}
    have = {k: read(f"{leaf(alloc)}/{k}") for k in want if os.path.exists(f"{leaf(alloc)}/{k}")}
    if "memory.swap.max" not in have:  # a kernel without swap
        del want["memory.swap.max"]
    assert have == want, have
    usage = request("GET", f"/v1/client/allocation/{alloc['ID']}/stats")["ResourceUsage"]
    assert usage["MemoryStats"]["RSS"] + usage["MemoryStats"]["Usage"] > 0, usage
    purge("limits")


def oom_killed(name):
    """The batch job `name` ends by the OOM killer, which takes nothing but its task."""
    before = {u: (show(u, "ActiveState"), show(u, "NRestarts")) for u in UNITS}
    event = terminated(allocs(name, "failed")[0])
    assert event["Details"]["oom_killed"] == "true", event
    assert event["Details"]["signal"] == "9" and event["Details"]["exit_code"] == "137", event
    assert "OOM" in (event.get("DisplayMessage") or "") + (event.get("Message") or ""), event
    assert {u: (show(u, "ActiveState"), show(u, "NRestarts")) for u in UNITS} == before
    return event


def memory_limit_kills_the_whole_task():
    submit("bursts", "sleep 1000000 & sleep 1000000 & dd if=/dev/zero of=/dev/null bs=40M count=1; sleep 1000000",
           memory=32, kind="batch")
    print(f"# oom: {oom_killed('bursts')['Details']}")
    victims = [e["MESSAGE"] for e in journal("-k", "-b") if "oom_reaper" in e["MESSAGE"] or "Killed process" in e["MESSAGE"]]
    assert any("(dd)" in m for m in victims), victims  # the kernel names it; the others of the task go with it
    purge("bursts")


def hold(name, size, **kw):
    """A batch task that touches `size` bytes in one go, and then stays for a while."""
    code = f'b=bytearray({size}); import os,time; os.write(1,b"held"); time.sleep(1000000)'
    submit(name, f"exec python3 -S -c '{code}'", kind="batch", **kw)


def memory_limit_is_exact():
    """What is used beside the bytes is measured first; then 256 KiB less than what is left fits, and
    256 KiB more does not. Not in huge pages: one more at the end of the bytes is 2 MiB."""
    huge = "/sys/kernel/mm/transparent_hugepage/enabled"
    if os.path.exists(huge):
        with open(huge, "w") as f:
            f.write("madvise")
    limit = 64 * MIB
    hold("measure", 16 * MIB, memory=64)
    alloc = allocs("measure", "running")[0]
    until(lambda: "held" in sh("paddock", "alloc", "logs", alloc["ID"], check=False), "touched memory")
    beside = int(read(leaf(alloc) + "/memory.peak" if os.path.exists(leaf(alloc) + "/memory.peak")
                      else leaf(alloc) + "/memory.current")) - 16 * MIB
    reclaimable = flat(leaf(alloc) + "/memory.stat", "file")
    print(f"# beside the bytes: {beside // KIB} KiB, of which {reclaimable // KIB} KiB of files")
    purge("measure")
    hold("fits", limit - beside - 256 * KIB, memory=64)
    alloc = allocs("fits", "running")[0]
    until(lambda: "held" in sh("paddock", "alloc", "logs", alloc["ID"], check=False), "touched memory")
    assert flat(leaf(alloc) + "/memory.events", "oom_kill") == 0
    hold("bursts", limit - beside + reclaimable + 256 * KIB, memory=64)
    oom_killed("bursts")
    purge("fits")
    purge("bursts")


def memory_max_is_the_limit_where_allowed():
    config = request("GET", "/v1/operator/scheduler/configuration")["SchedulerConfig"]
    request("PUT", "/v1/operator/scheduler/configuration", {**config, "MemoryOversubscriptionEnabled": True})
    hold("more", 40 * MIB, memory=32, resources={"MemoryMaxMB": 64})
    alloc = allocs("more", "running")[0]
    assert read(leaf(alloc) + "/memory.max") == str(64 * MIB), read(leaf(alloc) + "/memory.max")
    until(lambda: "held" in sh("paddock", "alloc", "logs", alloc["ID"], check=False), "touched memory")
    hold("too-much", 66 * MIB, memory=32, resources={"MemoryMaxMB": 64})
    oom_killed("too-much")
    request("PUT", "/v1/operator/scheduler/configuration", config)
    purge("more")
    purge("too-much")


def pids_limit_refuses():
    submit("forks", "(while :; do sleep 1000000 & done) 2>/dev/null; sleep 1000000")
    alloc = allocs("forks", "running")[0]
    until(lambda: flat(leaf(alloc) + "/pids.events", "max") > 0, "refused fork")
    assert int(read(leaf(alloc) + "/pids.current")) <= 64
    purge("forks")
    until(lambda: not os.path.exists(f"{TASKS}/{alloc['ID']}"), "end of 64 processes")


def cpu_weight_divides():
    script = "for i in 1 2 3; do (while :; do :; done) & done; wait"
    submit("light", script, cpu=100)
    submit("heavy", script, cpu=400)
    two = [leaf(allocs(n, "running")[0]) + "/cpu.stat" for n in ("light", "heavy")]
    first = [flat(p, "usage_usec") for p in two]

    def spent():
        now = [flat(p, "usage_usec") - f for p, f in zip(two, first)]
        return now if sum(now) > 8_000_000 else None
    light, heavy = until(spent, "8 s of processor time")
    print(f"# processor time heavy:light = {heavy / light:.2f}, asked for 4")
    assert 2.5 < heavy / light < 6, (light, heavy)
    purge("light")
    purge("heavy")


def cpu_hard_limit_throttles():
    """A quarter of a processor for a task that could use two: within 5 % over the periods that the
    kernel counted."""
    node = request("GET", f"/v1/node/{request('GET', '/v1/nodes')[0]['ID']}")["NodeResources"]["Cpu"]
    mhz = node["CpuShares"] / node["TotalCpuCores"]
    submit("throttled", "(while :; do :; done) & while :; do :; done", cpu=round(mhz / 4),
           config={"cpu_hard_limit": True})
    stat = leaf(allocs("throttled", "running")[0])
    quota, period = map(int, read(stat + "/cpu.max").split())
    assert abs(quota / period - 0.25) < 0.001, (quota, period)
    keys = ("usage_usec", "nr_periods", "nr_throttled")
    until(lambda: flat(stat + "/cpu.stat", "nr_throttled") > 5, "throttling")
    first, begin = [flat(stat + "/cpu.stat", k) for k in keys], time.monotonic()
    until(lambda: flat(stat + "/cpu.stat", "nr_periods") >= first[1] + 100, "100 periods")
    used, periods, throttled = (flat(stat + "/cpu.stat", k) - f for k, f in zip(keys, first))
    seconds = time.monotonic() - begin
    share = used / (periods * quota)
    print(f"# of its quota the task used {share:.3f}, throttled in {throttled} of {periods} periods; "
          f"{used / seconds / 1e6:.3f} processors by the clock")
    assert 0.95 < share < 1.05 and throttled > 0.9 * periods, (share, throttled, periods)
    purge("throttled")


def a_task_costs_little():
    """What the kernel charges for one more task, program and supervisor, without files: beside a shell's
    sleep, which is most of it, the supervisor. Sums, since each processor keeps some of a charge back."""
    count = 40

    def charged(cgroup):
        return int(read(cgroup + "/memory.current")) - flat(cgroup + "/memory.stat", "file")

    def all_charged():
        return sum(charged(f"{os.path.dirname(TASKS)}/{u}.service") for u in ("paddock-tasks", "paddock-warden"))
    before = all_charged()
    submit("many", "exec sleep 1000000", count=count, memory=10, cpu=1)
    many = allocs("many", "running", count)
    whole = (all_charged() - before) / count / KIB
    shim = sum(charged(os.path.dirname(leaf(a)) + "/shim") for a in many) / count / KIB
    print(f"# charged for a task: {whole:.0f} KiB, of which to the supervisor's leaf {shim:.0f} KiB")
    assert shim <= 130, shim
    purge("many")
    until(lambda: not any(os.path.exists(f"{TASKS}/{a['ID']}") for a in many), f"end of {count} tasks")


CASES = {1: [limits_are_written, a_task_costs_little, memory_limit_kills_the_whole_task, memory_limit_is_exact,
             memory_max_is_the_limit_where_allowed, pids_limit_refuses, cpu_weight_divides,
             cpu_hard_limit_throttles]}
