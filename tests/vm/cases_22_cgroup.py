# SPDX-License-Identifier: Apache-2.0
"""What the isolation block of a task asks of cgroup v2: disks, cores, swap, huge pages, what is kept,
new limits for a task that runs."""
import os
import time

from vm import *

KIB, MIB = 1 << 10, 1 << 20


def said(alloc, text):
    return until(lambda: text in sh("paddock", "alloc", "logs", alloc["ID"], check=False), f"\"{text}\" of the task")


def python(code):
    return f"exec python3 -S -c '{code}'"


def events(alloc):
    state = request("GET", f"/v1/allocation/{alloc['ID']}")["TaskStates"]["t"]
    return [(e["Type"], e.get("DisplayMessage") or "") for e in state["Events"]]


def everything_asked_for_is_written():
    major, minor = os.major(os.stat("/var/lib/paddock").st_dev), os.minor(os.stat("/var/lib/paddock").st_dev)
    submit("asked", "exec sleep 1000000", memory=48, config={"cpu_hard_limit": True}, isolation={
        "MemoryHigh": 40, "MemoryLow": 16, "MemoryMin": 8, "Swap": 16, "Hugetlb": 4, "CPUBurst": 1_000_000,
        "CPUIdle": True, "IOWeight": 300, "IO": [{"WriteBps": MIB, "ReadIops": 500}]})
    alloc = allocs("asked", "running")[0]
    want = {"memory.high": str(40 * MIB), "memory.low": str(16 * MIB), "memory.min": str(8 * MIB),
            "memory.swap.max": str(16 * MIB), "cpu.max.burst": "1000",
            "../cpu.idle": "1", "../../cpu.idle": "1",
            "../memory.low": str(16 * MIB), "../../memory.low": str(16 * MIB), "../../memory.min": str(8 * MIB),
            "io.max": f"{major}:{minor} rbps=max wbps={MIB} riops=500 wiops=max"}
    if os.path.exists(f"{leaf(alloc)}/hugetlb.2MB.max"):
        want.update({"hugetlb.2MB.max": str(4 * MIB), "hugetlb.2MB.rsvd.max": str(4 * MIB)})
    have = {k: read(f"{leaf(alloc)}/{k}") for k in want}
    assert have == want, have
    if os.path.exists(f"{leaf(alloc)}/../io.weight"):
        assert read(f"{leaf(alloc)}/../io.weight").splitlines()[0] == "default 300"
    print(f"# controllers of a task: {read(leaf(alloc) + '/cgroup.controllers')}")
    assert not [e for e in events(alloc) if "cannot set" in e[1]] or "io.weight" in str(events(alloc)), events(alloc)
    purge("asked")


def policy_bounds_what_hurts_others():
    submit("greedy", "exec sleep 1000000", kind="batch", isolation={"Swap": 65})
    failed = allocs("greedy", "failed")[0]
    text = str(events(failed))
    assert "isolation.swap_max" in text and "65 MiB of swap" in text, text
    purge("greedy")


def disk_limit_is_exact():
    """What a task writes past the cache, by the kernel's count, in the time that its limit gives it."""
    rate = 512 * KIB
    submit("writes", "while :; do dd if=/dev/zero of=/local/x bs=64k count=64 oflag=direct conv=notrunc 2>/dev/null; done",
           isolation={"IO": [{"WriteBps": rate}]})
    alloc = allocs("writes", "running")[0]
    number = read(leaf(alloc) + "/io.max").split()[0]

    def written():
        line = next((x for x in read(leaf(alloc) + "/io.stat").splitlines() if x.startswith(number + " ")), "")
        return int(dict(f.split("=") for f in line.split()[1:]).get("wbytes", 0))
    until(lambda: written() > 2 * rate, "writes")
    first, begin = written(), time.monotonic()
    until(lambda: written() >= first + 10 * rate, "ten seconds of writes")
    got = (written() - first) / (time.monotonic() - begin)
    print(f"# wrote {got / rate:.3f} of what the limit allows")
    assert 0.9 < got / rate < 1.05, got
    purge("writes")


def cores_are_for_one_task_alone():
    shared = "while :; do sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status; sleep 1; done"
    submit("shares", shared)
    other = allocs("shares", "running")[0]
    whole = read(leaf(other) + "/cpuset.cpus.effective")
    submit("reserves", "sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status; exec sleep 1000000",
           resources={"Cores": 1, "CPU": 0})
    alloc = allocs("reserves", "running")[0]
    core = read(leaf(alloc) + "/cpuset.cpus")
    assert core in ("0", "1") and read(leaf(alloc) + "/cpuset.cpus.effective") == core
    said(alloc, core)
    assert read(leaf(alloc) + "/cpuset.mems.effective") == core  # each is a NUMA node of its own here
    assert read(leaf(other) + "/cpuset.mems.effective") == "0-1"
    rest = {"0": "1", "1": "0"}[core]
    assert read(leaf(other) + "/cpuset.cpus.effective") == rest
    submit("later", shared)
    assert read(leaf(allocs("later", "running")[0]) + "/cpuset.cpus.effective") == rest
    sh("systemctl", "restart", "paddock-warden")  # and is remembered
    until(ready, "ready node")
    submit("last", shared)
    last = allocs("last", "running")[0]
    assert read(leaf(last) + "/cpuset.cpus.effective") == rest
    purge("reserves")
    until(lambda: read(leaf(other) + "/cpuset.cpus.effective") == whole, "the core given back")
    assert read(leaf(last) + "/cpuset.cpus.effective") == whole
    for name in ("shares", "later", "last"):
        purge(name)


def swap_is_refused_or_counted():
    sh("sh", "-c", "test -e /swap || { dd if=/dev/zero of=/swap bs=1M count=96 && chmod 600 /swap && mkswap /swap; }")
    sh("swapon", "/swap")
    try:
        touch = python(f"b=bytearray({40 * MIB}); import os,time; os.write(1,b\"held\"); time.sleep(1000000)")
        submit("no-swap", touch, kind="batch")
        assert terminated(allocs("no-swap", "failed")[0])["Details"]["oom_killed"] == "true"
        submit("swaps", touch, kind="batch", isolation={"Swap": 48})
        alloc = allocs("swaps", "running")[0]
        said(alloc, "held")
        used = int(read(leaf(alloc) + "/memory.swap.current"))
        print(f"# swapped {used // MIB} MiB of 40, with 32 of memory")
        assert used > 8 * MIB - 1 * MIB, used
        stats = request("GET", f"/v1/client/allocation/{alloc['ID']}/stats")["ResourceUsage"]["MemoryStats"]
        assert stats["Swap"] > 0, stats
    finally:
        purge("no-swap")
        purge("swaps")
        until(lambda: "swapoff" not in sh("swapoff", "/swap", check=False), "swapoff")


def huge_pages_are_counted():
    if not os.path.exists("/sys/kernel/mm/hugepages/hugepages-2048kB"):
        raise Skip("hugetlb: this kernel has no huge pages of 2 MiB")
    with open("/proc/sys/vm/nr_hugepages", "w") as f:
        f.write("8")
    code = ("import mmap,os,time\n"
            "def t(n):\n"
            "  try:\n"
            "    m=mmap.mmap(-1,n<<20,flags=0x40022); m[0]=1; return \"got\"\n"
            "  except OSError as e: return os.strerror(e.errno)\n"
            "os.write(1,(\"4:\"+t(4)+\" 6:\"+t(6)).encode()); time.sleep(1000000)")
    submit("huge", python(code), isolation={"Hugetlb": 4})
    alloc = allocs("huge", "running")[0]
    said(alloc, "6:")
    text = sh("paddock", "alloc", "logs", alloc["ID"])
    assert "4:got" in text and "6:Cannot allocate memory" in text, text
    submit("none", python(code))
    alloc = allocs("none", "running")[0]
    said(alloc, "6:")
    assert "4:Cannot allocate memory" in sh("paddock", "alloc", "logs", alloc["ID"])
    purge("huge")
    purge("none")
    with open("/proc/sys/vm/nr_hugepages", "w") as f:
        f.write("0")


def limits_change_in_place():
    submit("grows", "exec sleep 1000000", memory=64, isolation={"MemoryHigh": 32, "IO": [{"WriteBps": MIB}]})
    alloc = allocs("grows", "running")[0]
    pid = pids(alloc)
    assert read(leaf(alloc) + "/memory.high") == str(32 * MIB)
    submit("grows", "exec sleep 1000000", memory=64, isolation={"MemoryLow": 16, "IO": [{"WriteBps": 2 * MIB}]})
    until(lambda: read(leaf(alloc) + "/memory.low") == str(16 * MIB), "new limits")
    assert read(leaf(alloc) + "/memory.high") == "max"
    assert f"wbps={2 * MIB}" in read(leaf(alloc) + "/io.max"), read(leaf(alloc) + "/io.max")
    same = allocs("grows", "running")[0]
    assert same["ID"] == alloc["ID"] and pids(alloc) == pid
    until(lambda: ("Driver", "limits changed") in events(alloc), "event")
    submit("grows", "exec sleep 1000000", memory=64, isolation={})
    until(lambda: read(leaf(alloc) + "/io.max") == "" and read(leaf(alloc) + "/memory.low") == "0", "no limits")
    assert pids(alloc) == pid
    purge("grows")


def pressure_is_an_event():
    """Above memory_high the kernel makes the task wait for its own memory."""
    submit("presses", python(f"b=bytearray({40 * MIB}); import time; time.sleep(1000000)"), memory=48,
           isolation={"MemoryHigh": 24, "Pressure": {"Memory": 50_000_000}})
    alloc = allocs("presses", "running")[0]
    until(lambda: any(e[0] == "Pressure" and "memory longer than 50ms" in e[1] for e in events(alloc)), "event")
    assert flat(leaf(alloc) + "/memory.events", "high") > 0
    purge("presses")


def tasks_are_frozen():
    submit("frozen", "while :; do :; done")
    alloc = allocs("frozen", "running")[0]
    sh("paddock", "alloc", "pause", alloc["ID"])
    until(lambda: flat(leaf(alloc) + "/cgroup.events", "frozen") == 1, "frozen task")
    used = flat(leaf(alloc) + "/cpu.stat", "usage_usec")
    time.sleep(2)
    assert flat(leaf(alloc) + "/cpu.stat", "usage_usec") == used
    assert flat(leaf(alloc) + "/../shim/cgroup.events", "frozen") == 0
    sh("paddock", "alloc", "pause", "-state", "run", alloc["ID"])
    until(lambda: flat(leaf(alloc) + "/cpu.stat", "usage_usec") > used, "it goes on")
    purge("frozen")


def tasks_are_listed():
    submit("listed", "exec sleep 1000000", count=2)
    names = [f"{a['ID']}/t/task" for a in allocs("listed", "running", 2)]
    top = sh("systemd-cgtop", "-1", "-b", "--depth=8", "-n", "1")
    status = sh("systemctl", "--no-pager", "-l", "-n", "0", "status", "paddock-tasks")
    for name in names:
        assert name in top, top
        assert name.split("/")[0] in status, status
    purge("listed")


CASES = {1: [everything_asked_for_is_written, policy_bounds_what_hurts_others, disk_limit_is_exact,
             cores_are_for_one_task_alone, swap_is_refused_or_counted, huge_pages_are_counted,
             limits_change_in_place, pressure_is_an_event, tasks_are_frozen, tasks_are_listed]}
