# SPDX-License-Identifier: Apache-2.0
"""What an agent of tests/system costs the machine, read from /proc: memory, threads, fds, wakeups,
mounts, cgroups, directories. Used by the soak tests and by bench/agent and bench/footprint.

The memory of a daemon is its PSS; of that, `file` is the mapped page cache (program text, the LMDB
maps), which the kernel takes back when it likes, and `anon` what the daemon holds.
"""
import os
import time

from paddock_test import children, cmdline, named_child

DAEMONS = ("supervisor", "warden", "pad", "network", "agent", "holder")


def roles(agent):
    """{role: pid} of the daemons of an agent that runs as root or not."""
    found = {"supervisor": agent.proc.pid}
    found.update(agent.daemons())
    for pid in children(agent.proc.pid):
        if b"holder" in b"".join(cmdline(pid)[:1]):
            found["holder"] = pid
    for pid in children(found.get("warden", 0)):
        if b"".join(cmdline(pid)[1:2]).startswith(b"launch pad"):
            found["pad"] = pid
    worker = named_child(found.get("warden", 0), "paddock-network")
    if worker:
        found["network"] = worker
    return found


def below(pid):
    found = [pid]
    for c in children(pid):
        found += below(c)
    return found


def shims(agent):
    """pids of the shims of this agent's allocations: their title holds the short id."""
    ours = {a["ID"][:8].encode() for a in agent.get("/v1/allocations")}
    words = {int(p): b" ".join(cmdline(p)) for p in os.listdir("/proc") if p.isdigit()}
    return [p for p, w in words.items() if w.startswith(b"paddock-shim") and any(i in w for i in ours)]


def rollup(pid):
    """{field: KiB} of smaps_rollup; zeroes when it is gone."""
    out = dict.fromkeys(("Rss", "Pss", "Pss_Anon", "Pss_File", "Private_Clean", "Private_Dirty"), 0)
    try:
        for line in open(f"/proc/{pid}/smaps_rollup"):
            key, _, rest = line.partition(":")
            if key in out:
                out[key] = int(rest.split()[0])
    except OSError:
        pass
    return out


def pss_kb(pid):
    return rollup(pid)["Pss"]


def threads(pid):
    try:
        return sorted(open(f"/proc/{pid}/task/{t}/comm").read().strip() for t in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


def fds(pid):
    """Sorted names of what is open, without the numbers that differ each time."""
    out = []
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                out.append(os.readlink(f"/proc/{pid}/fd/{fd}").split("[")[0].split("-0")[0])
            except OSError:
                pass
    except OSError:
        pass
    return sorted(out)


def mounts(pid):
    try:
        return sum(1 for _ in open(f"/proc/{pid}/mountinfo"))
    except OSError:
        return 0


def switches(pids):
    """Voluntary context switches of all threads: each is a wakeup."""
    total = 0
    for pid in pids:
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for t in tasks:
            try:
                for line in open(f"/proc/{pid}/task/{t}/status"):
                    if line.startswith("voluntary_ctxt"):
                        total += int(line.split()[1])
            except OSError:
                pass
    return total


def wakeups(pids, seconds):
    """Per second, over that time."""
    a, t = switches(pids), time.monotonic()
    time.sleep(seconds)
    return (switches(pids) - a) / (time.monotonic() - t)


def cpu_s(pid):
    """Processor seconds so far."""
    try:
        f = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")


def subdirs(path):
    try:
        return sorted(d for d in os.listdir(path) if os.path.isdir(os.path.join(path, d)))
    except OSError:
        return []


def tree_kb(path):
    """Disk blocks of everything below."""
    total = 0
    for top, _, files in os.walk(path):
        for f in files:
            try:
                total += os.lstat(os.path.join(top, f)).st_blocks // 2
            except OSError:
                pass
    return total
