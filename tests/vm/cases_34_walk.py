# SPDX-License-Identifier: Apache-2.0
"""A walk of random steps of systemctl over our units, in every state of the others: each is obeyed, no unit fails, and as
long as the holder is the same one, the tasks are the same processes. The walk prints its seed, PADDOCK_SEED repeats it,
PADDOCK_VM_STEPS shortens it. It is a part of the long form alone."""
import glob
import os
import random
import subprocess

from vm import *

STEPS = int(given("steps", 500))
LOOK = 6  # steps between two looks whether all comes back
# what is isolated: with our units and without; the machine's own targets wait for the service that runs this
TARGETS = {"walk.target": "Wants=paddock.service paddock-warden.service paddock-tasks.service\n", "bare.target": ""}
ALL = UNITS + ["paddock-policy"]


def payloads(job):
    """{(pid, its start)} of the job's tasks that have begun: before that, a launch may be taken back."""
    found = set()
    for procs in [f"{TASKS}/{alloc}/t/task/cgroup.procs" for alloc in job]:
        try:
            for pid in read(procs).split():
                if read(f"/proc/{pid}/cmdline") == "sleep\0" "1000000\0" and (start := start_time(pid)):
                    found.add((pid, start))
        except OSError:  # it went meanwhile
            pass
    return found


def holder():
    pid = show("paddock-tasks", "MainPID")
    return (pid, start_time(pid)) if pid != "0" else None


def step(rng):
    verb = rng.choice(["start", "restart", "stop", "start", "enable --now", "isolate"])
    if verb == "isolate":
        return ["isolate", rng.choice(list(TARGETS))]
    some = rng.sample(ALL, rng.randint(1, 3))
    if verb == "enable --now":
        some = [u for u in some if u != "paddock-policy"] or ["paddock"]  # which is not to be enabled
    return [*verb.split(), *some]


def left_by(command, job, before, was):
    is_now, units = holder(), [show(u, "ActiveState") for u in ALL]
    assert not any(u == "failed" for u in units), (command, units)
    if is_now == was and was:
        lost = before - payloads(job)
        assert not lost, f"{command}: {lost} ended under the same holder"
    elif was:
        alive = {p for p in before if start_time(p[0]) == p[1]}
        assert not alive, f"{command}: {alive} outlived their holder"


def all_comes_back(job, others):
    sh("systemctl", "start", *UNITS)
    until(ready, "ready node")
    until(lambda: len(payloads(job)) == 3, "three tasks")
    for name, count in ("walked", 3), ("polite", 1):
        for a in allocs(name, "running", count):
            assert a["TaskStates"]["t"]["Restarts"] == 0 and a["ID"] in job, a
    left = {os.path.basename(d) for d in glob.glob(f"{TASKS}/*-*")} - others
    assert left == job, left ^ job


def write_targets():
    os.makedirs("/run/systemd/system/vm-run.service.d", exist_ok=True)
    with open("/run/systemd/system/vm-run.service.d/walk.conf", "w") as f:
        f.write("[Unit]\nIgnoreOnIsolate=yes\n")
    for name, wants in TARGETS.items():
        with open(f"/run/systemd/system/{name}", "w") as f:
            f.write(f"[Unit]\nRequires=basic.target\nWants=dbus.service systemd-logind.service\nAfter=basic.target\nAllowIsolate=yes\n{wants}")
    sh("systemctl", "daemon-reload")


def remove_targets():
    """What wants a unit keeps systemd from forgetting it: the cases behind this one see none of it."""
    sh("systemctl", "stop", *TARGETS)
    for name in TARGETS:
        os.unlink(f"/run/systemd/system/{name}")
    os.unlink("/run/systemd/system/vm-run.service.d/walk.conf")
    os.rmdir("/run/systemd/system/vm-run.service.d")
    sh("systemctl", "daemon-reload")


def a_walk_over_the_units():
    seed = int(given("seed", random.SystemRandom().randrange(1 << 32)))
    print(f"# seed {seed}, {STEPS} steps", flush=True)
    rng = random.Random(seed)
    write_targets()
    enabled = sh("systemctl", "is-enabled", *UNITS, check=False).split()
    sh("systemctl", "enable", "--now", *UNITS)
    until(ready, "ready node")
    others = {os.path.basename(d) for d in glob.glob(f"{TASKS}/*-*")}  # of cases before this one
    submit("walked", "exec sleep 1000000", count=3)
    submit("polite", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done", kind="batch")
    job = {a["ID"] for a in allocs("walked", "running", 3) + allocs("polite", "running")}
    done = []
    try:
        for i in range(STEPS):
            command = step(rng)
            done.append(" ".join(command))
            before, was = payloads(job), holder()
            p = subprocess.run(["systemctl", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S,
                               check=False)
            assert p.returncode == 0, (command, p.returncode, p.stdout)
            until(lambda: "paddock" not in sh("systemctl", "list-jobs", "--no-legend", "--no-pager"), "an end of all jobs")
            left_by(command, job, before, was)  # an isolate waits for what begins, and not for what ends
            if i % LOOK == LOOK - 1:
                all_comes_back(job, others)
    except BaseException:
        print(f"# seed {seed}, the last steps: {done[-6:]}", flush=True)
        raise
    all_comes_back(job, others)
    purge("walked")
    purge("polite")
    for unit, how in zip(UNITS, enabled):
        if how != "enabled":
            sh("systemctl", "disable", unit)
    until(lambda: not any(os.path.exists(f"{TASKS}/{alloc}/t/task") for alloc in job), "empty tasks unit")
    sh("systemctl", "reset-failed")
    remove_targets()


CASES = {1: [a_walk_over_the_units]} if LONG else {}
