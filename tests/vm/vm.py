# SPDX-License-Identifier: Apache-2.0
"""What the cases of the VM lane have in common: jobs by the API, cgroups of tasks, units of systemd,
and what one life of the machine leaves to the next (STATE).
"""
import http.client
import json
import os
import re
import signal
import subprocess
import time

DEADLINE_S = 240
HERE = os.path.dirname(os.path.abspath(__file__))
LONG = os.path.exists(os.path.join(HERE, "long"))
ROUNDS = 20 if LONG else 2  # of what is a race
TASKS = "/sys/fs/cgroup/system.slice/paddock-tasks.service"
UNITS = ["paddock-tasks", "paddock-warden", "paddock"]
STATE = "/var/tmp/vm-state"


class Skip(Exception):
    """This case cannot run here, because..."""


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


def given(name, default):
    """Of run-vm's environment: PADDOCK_SEED is in the file "seed"."""
    return read(f"{HERE}/{name}") if os.path.exists(f"{HERE}/{name}") else default


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


def submit(name, script, count=1, memory=32, cpu=50, kind="service", restarts=0, config=None, resources=None,
           isolation=None, disk=10, in_task=None, in_group=None):
    """One group "g" with one exec task "t" that runs a shell script; the other dicts are laid over."""
    task = {"Name": "t", "Driver": "exec",
            "Config": {"command": "/bin/sh", "args": ["-c", script], **(config or {})},
            "Resources": {"CPU": cpu, "MemoryMB": memory, **(resources or {})},
            "LogConfig": {"MaxFiles": 1, "MaxFileSizeMB": 1}, "Isolation": isolation, **(in_task or {})}
    group = {"Name": "g", "Count": count, "RestartPolicy": {"Attempts": restarts, "Mode": "fail"},
             "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}, "EphemeralDisk": {"SizeMB": disk},
             "Tasks": [task], **(in_group or {})}
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


def reload(config):
    """Writes the configuration and has it taken up: the agent's reload does not wait for the warden's."""
    def taken():
        return len([e for e in journal("-b", "-u", "paddock-warden") if "policy reloaded" in e["MESSAGE"]])
    before = taken()
    with open("/etc/paddock.d/vm.hcl", "w") as f:
        f.write(config)
    sh("systemctl", "reload", "paddock")
    until(lambda: taken() > before, "new policy")


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


def remember(**values):
    """For the next lives of the machine."""
    old = recall() if os.path.exists(STATE) else {}
    with open(STATE, "w") as f:
        json.dump({**old, **values}, f)


def recall():
    with open(STATE) as f:
        return json.load(f)


def journal(*args):
    """Entries as dictionaries."""
    lines = sh("journalctl", "--no-pager", "-o", "json", *args).splitlines()
    return [json.loads(x) for x in lines if x.startswith("{")]
