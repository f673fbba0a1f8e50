# SPDX-License-Identifier: Apache-2.0
"""The tests of the VM lane, run as root inside the machine by `guest`: a real systemd, cgroup v2 with
every controller. TAP on standard output. Ratios and counts, no milliseconds: everything is emulated.

usage: vm_tests.py LIFE [NAME...]   LIFE 1, then 2 after the machine was reset
"""
import glob
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback

DEADLINE_S = 240
TASKS = "/sys/fs/cgroup/system.slice/paddock-tasks.service"
UNITS = ["paddock-tasks", "paddock-warden", "paddock"]


def sh(*args, check=True):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                       timeout=DEADLINE_S)
    assert not check or p.returncode == 0, f"{' '.join(args)}: exit {p.returncode}\n{p.stdout}"
    return p.stdout


def show(unit, prop):
    return sh("systemctl", "show", "-P", prop, unit).strip()


def until(cond, what):
    end = time.monotonic() + DEADLINE_S
    while True:
        value = cond()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"no {what} in time")
        time.sleep(0.3)


def read(path):
    with open(path) as f:
        return f.read().strip()


def request(method, path, body=None):
    c = http.client.HTTPConnection("127.0.0.1", 4646, timeout=DEADLINE_S)
    try:
        c.request(method, path, body=json.dumps(body) if body else None)
        r = c.getresponse()
        data = r.read()
        assert r.status == 200, f"{method} {path}: {r.status} {data[:300]!r}"
        return json.loads(data) if data[:1] in (b"{", b"[") else data.decode()
    finally:
        c.close()


def ready():
    try:
        return any(n["Status"] == "ready" for n in request("GET", "/v1/nodes"))
    except (OSError, AssertionError, http.client.HTTPException):
        return False


def submit(name, script, count=1, memory=32, cpu=50, kind="service", restarts=0):
    task = {"Name": "t", "Driver": "exec", "Config": {"command": "/bin/sh", "args": ["-c", script]},
            "Resources": {"CPU": cpu, "MemoryMB": memory}, "LogConfig": {"MaxFiles": 1, "MaxFileSizeMB": 1}}
    group = {"Name": "g", "Count": count, "RestartPolicy": {"Attempts": restarts, "Mode": "fail"},
             "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}, "EphemeralDisk": {"SizeMB": 10},
             "Tasks": [task]}
    request("PUT", "/v1/jobs", {"Job": {"ID": name, "Name": name, "Type": kind, "Datacenters": ["*"],
                                        "TaskGroups": [group]}})


def allocs(name, status, count=1):
    def cond():
        try:
            all_of = request("GET", f"/v1/job/{name}/allocations")
        except (OSError, AssertionError, http.client.HTTPException):
            return None
        hit = [a for a in all_of if a["ClientStatus"] == status]
        return hit if len(hit) == count else None
    return until(cond, f"{count} {status} allocations of {name}")


def purge(name):
    request("DELETE", f"/v1/job/{name}?purge=true")


def leaf(alloc):
    return f"{TASKS}/{alloc['ID']}/t/task"


def pids(alloc):
    return [int(p) for p in read(leaf(alloc) + "/cgroup.procs").split()]


def flat(path, key):
    return int(re.search(rf"^{key} (\d+)", read(path), re.M).group(1))


def start_time(pid):
    try:
        return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


def terminated(alloc):
    events = alloc["TaskStates"]["t"]["Events"]
    return next(e for e in events if e["Type"] == "Terminated")


# --- tests

def units_start_in_order():
    sh("systemctl", "start", "paddock")
    times = [int(show(u, "ActiveEnterTimestampMonotonic")) for u in UNITS]
    assert times == sorted(times) and times[0] > 0, dict(zip(UNITS, times))
    assert show("paddock-policy", "Result") == "success"
    assert read("/run/paddock/cgroup") == TASKS
    until(ready, "ready node")


def agent_has_no_privilege():
    status = read(f"/proc/{show('paddock', 'MainPID')}/status")
    got = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    uid = sh("id", "-u", "paddock").strip()
    assert got["Uid"].split() == [uid] * 4, got["Uid"]
    for key, want in (("CapEff", 0), ("CapPrm", 0), ("CapBnd", 0)):
        assert int(got[key], 16) == want, f"{key} {got[key]}"
    assert got["NoNewPrivs"] == "1" and got["Seccomp"] == "2", status
    assert show("paddock", "WatchdogUSec") == "1min"


def exposure_is_low():
    for unit, limit in (("paddock", 2.0), ("paddock-policy", 3.0), ("paddock-warden", 10.0)):
        text = sh("systemd-analyze", "security", "--no-pager", f"{unit}.service")
        value = float(re.search(r"exposure level for \S+: ([0-9.]+)", text).group(1))
        print(f"# exposure of {unit}.service: {value}")
        assert value <= limit, text


def a_job_runs_and_systemd_sees_it():
    sh("paddock", "job", "run", "-detach", "/root/examples/hello.hcl")
    alloc = allocs("hello", "running")[0]
    tree = sh("systemctl", "--no-pager", "-l", "-n", "0", "status", "paddock-tasks")
    assert alloc["ID"] in tree and "sleep 1000000" in tree, tree
    tree = sh("systemd-cgls", "--no-pager", "-u", "paddock-tasks.service")
    assert alloc["ID"] in tree, tree
    log = until(lambda: sh("paddock", "alloc", "logs", alloc["ID"]), "log")
    assert "capabilities 0000000000000000" in log, log
    purge("hello")
    until(lambda: not os.path.exists(f"{TASKS}/{alloc['ID']}"), "end of the cgroup")


def limits_are_written():
    submit("limits", "exec sleep 1000000", memory=48, cpu=512)
    alloc = allocs("limits", "running")[0]
    want = {"memory.max": str(48 << 20), "memory.swap.max": "0", "memory.oom.group": "1",
            "pids.max": "64", "../cpu.weight": "50", "../../cpu.weight": "50"}
    have = {k: read(f"{leaf(alloc)}/{k}") for k in want if os.path.exists(f"{leaf(alloc)}/{k}")}
    swapless = dict(want)
    if "memory.swap.max" not in have:
        del swapless["memory.swap.max"]
    assert have == swapless, have
    usage = request("GET", f"/v1/client/allocation/{alloc['ID']}/stats")["ResourceUsage"]
    assert usage["MemoryStats"]["RSS"] + usage["MemoryStats"]["Usage"] > 0, usage
    purge("limits")


def memory_limit_bites():
    submit("fits", "dd if=/dev/zero of=/dev/null bs=24M count=1", memory=32, kind="batch")
    allocs("fits", "complete")
    submit("bursts", "sleep 1000000 & sleep 1000000 & dd if=/dev/zero of=/dev/null bs=40M count=1; sleep 1000000",
           memory=32, kind="batch")
    alloc = allocs("bursts", "failed")[0]
    event = terminated(alloc)
    print(f"# oom: {event['Details']}")
    assert event["Details"]["oom_killed"] == "true", event
    assert event["Details"]["signal"] == "9" and event["Details"]["exit_code"] == "137", event
    assert "OOM" in (event.get("DisplayMessage") or "") + (event.get("Message") or ""), event
    for unit in UNITS:  # nothing but the task
        assert show(unit, "ActiveState") == "active" and show(unit, "NRestarts") == "0", unit
    purge("fits")
    purge("bursts")


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


kept = {}


def kept_as_before():
    until(ready, "ready node")
    now = allocs("kept", "running", 3)
    assert {a["ID"]: [(p, start_time(p)) for p in pids(a)] for a in now} == kept, "not the same processes"
    assert sum(a["TaskStates"]["t"]["Restarts"] for a in now) == 0


def kill9(*units):
    before = {u: show(u, "MainPID") for u in units}
    for pid in before.values():
        os.kill(int(pid), signal.SIGKILL)
    for u, pid in before.items():
        until(lambda u=u, pid=pid: show(u, "MainPID") not in (pid, "0") and show(u, "ActiveState") == "active",
              f"restart of {u}")


def tasks_survive():
    submit("kept", "exec sleep 1000000", count=3)
    for a in allocs("kept", "running", 3):
        kept[a["ID"]] = [(p, start_time(p)) for p in pids(a)]
    steps = {
        "daemon-reload": lambda: sh("systemctl", "daemon-reload"),
        "daemon-reexec": lambda: sh("systemctl", "daemon-reexec"),
        "restart agent": lambda: sh("systemctl", "restart", "paddock"),
        "restart warden": lambda: sh("systemctl", "restart", "paddock-warden"),
        "restart both": lambda: sh("systemctl", "restart", "paddock", "paddock-warden"),
        "kill -9 agent": lambda: kill9("paddock"),
        "kill -9 warden": lambda: kill9("paddock-warden"),
        "kill -9 both": lambda: kill9("paddock", "paddock-warden"),
    }
    for name, step in steps.items():
        step()
        try:
            kept_as_before()
        except AssertionError as e:
            raise AssertionError(f"after {name}: {e}") from None
        print(f"# survived: {name}", flush=True)


def end_during_absence_is_reported():
    sh("systemctl", "stop", "paddock", "paddock-warden")
    assert show("paddock", "Result") == "success" and show("paddock-warden", "Result") == "success"
    victim = next(iter(kept))
    os.kill(kept.pop(victim)[0][0], signal.SIGTERM)
    sh("systemctl", "start", "paddock")
    kept_two = allocs("kept", "running", 2)
    assert {a["ID"] for a in kept_two} == set(kept)
    failed = allocs("kept", "failed")[0]
    assert failed["ID"] == victim
    assert terminated(failed)["Details"]["signal"] == "15", terminated(failed)


def policy_is_taken_up_by_reload():
    path = "/etc/paddock.d/vm.hcl"
    text = read(path)
    with open(path, "w") as f:
        f.write(text.replace("pids_max = 64", "pids_max = 32"))
    sh("systemctl", "reload", "paddock")
    submit("later", "exec sleep 1000000")
    alloc = allocs("later", "running")[0]
    assert read(leaf(alloc) + "/pids.max") == "32"
    purge("later")


def tasks_unit_restart_is_like_a_reboot():
    before = set(kept)
    sh("systemctl", "restart", "paddock-tasks")
    for a in before:
        assert not os.path.exists(f"{TASKS}/{a}/t/task/cgroup.procs") or not read(f"{TASKS}/{a}/t/task/cgroup.procs")
    until(lambda: show("paddock-warden", "ActiveState") == "active", "warden")
    allocs("kept", "failed", 3)  # this job's policy: no restart
    purge("kept")
    submit("again", "exec sleep 1000000")
    allocs("again", "running")
    purge("again")
    until(lambda: len(glob.glob(f"{TASKS}/*-*/t/task")) == 0, "empty tasks unit")


def watchdog_restarts_a_hung_agent():
    os.makedirs("/run/systemd/system/paddock.service.d", exist_ok=True)
    with open("/run/systemd/system/paddock.service.d/vm.conf", "w") as f:
        f.write("[Service]\nWatchdogSec=20\n")
    sh("systemctl", "daemon-reload")
    sh("systemctl", "restart", "paddock")
    until(ready, "ready node")
    pid, restarts = show("paddock", "MainPID"), int(show("paddock", "NRestarts"))
    time.sleep(25)  # longer than the deadline: it does send its messages
    assert show("paddock", "MainPID") == pid, "an agent that works was killed"
    os.kill(int(pid), signal.SIGSTOP)
    until(lambda: int(show("paddock", "NRestarts")) > restarts, "restart by the watchdog")
    os.remove("/run/systemd/system/paddock.service.d/vm.conf")
    sh("systemctl", "daemon-reload")
    until(ready, "ready node")


STATE = "/var/tmp/vm-state"


def units_are_enabled():
    sh("systemctl", "enable", "paddock")
    submit("comeback", "exec sleep 1000000", count=2, restarts=2)
    here = {a["ID"]: pids(a) for a in allocs("comeback", "running", 2)}
    with open(STATE, "w") as f:
        json.dump({"boot": read("/proc/sys/kernel/random/boot_id"), "comeback": here}, f)


def jobs_come_back_after_a_power_cut():
    with open(STATE) as f:
        before = json.load(f)
    assert read("/proc/sys/kernel/random/boot_id") != before["boot"]
    until(ready, "ready node")
    now = allocs("comeback", "running", 2)
    assert {a["ID"] for a in now} == set(before["comeback"]), "other allocations than before"
    for a in now:
        def runs(a=a):  # the servers still say so of the time before, until the client has told them
            state = request("GET", f"/v1/allocation/{a['ID']}")["TaskStates"]["t"]
            return os.path.exists(leaf(a)) and pids(a) and state["State"] == "running"
        until(runs, "running task")
    purge("comeback")
    until(lambda: len(glob.glob(f"{TASKS}/*-*/t/task")) == 0, "empty tasks unit")


TESTS = [units_start_in_order, agent_has_no_privilege, exposure_is_low, a_job_runs_and_systemd_sees_it,
         limits_are_written, memory_limit_bites, pids_limit_refuses, cpu_weight_divides, tasks_survive,
         end_during_absence_is_reported, policy_is_taken_up_by_reload, tasks_unit_restart_is_like_a_reboot,
         watchdog_restarts_a_hung_agent, units_are_enabled]
AFTER = [jobs_come_back_after_a_power_cut]  # in the second life of the machine


def main():
    life, names = int(sys.argv[1]), sys.argv[2:]
    chosen = [[t for t in some if t.__name__ in names or not names] for some in (TESTS, AFTER)]
    bad, tests, first = 0, chosen[life - 1], 1
    if life == 1:
        print(f"1..{len(chosen[0]) + len(chosen[1])}", flush=True)
    else:
        first += len(chosen[0])
    for i, t in enumerate(tests, first):
        begin = time.monotonic()
        try:
            t()
            print(f"ok {i} - {t.__name__} ({time.monotonic() - begin:.0f} s)", flush=True)
        except BaseException:  # noqa: a failed test must not take the others along
            bad += 1
            print("\n".join("# " + x for x in traceback.format_exc().splitlines()))
            print(f"not ok {i} - {t.__name__} ({time.monotonic() - begin:.0f} s)", flush=True)
    if bad:
        log = sh("journalctl", "--no-pager", "-o", "short-monotonic", "-n", "150", "-u", "paddock*", check=False)
        print("\n".join("# " + x for x in log.splitlines()), flush=True)


main()
