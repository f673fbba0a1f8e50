# SPDX-License-Identifier: Apache-2.0
"""Tasks and the lives of the daemons: restarts, kills, what ends meanwhile."""
import glob
import os
import signal
import subprocess

from vm import *

kept = {}


def processes(name, count):
    return {a["ID"]: [(p, start_time(p)) for p in pids(a)] for a in allocs(name, "running", count)}


def kept_as_before():
    until(ready, "ready node")
    assert processes("kept", 3) == kept, "not the same processes"
    assert sum(a["TaskStates"]["t"]["Restarts"] for a in allocs("kept", "running", 3)) == 0


def kill9(*units):
    before = {u: show(u, "MainPID") for u in units}
    for pid in before.values():
        os.kill(int(pid), signal.SIGKILL)
    for u, pid in before.items():
        until(lambda u=u, pid=pid: show(u, "MainPID") not in (pid, "0") and show(u, "ActiveState") == "active",
              f"restart of {u}")


def tasks_survive():
    submit("kept", "exec sleep 1000000", count=3)
    kept.update(processes("kept", 3))
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


def runs_again(name, before):
    """The same allocations have other processes, and no attempt was counted."""
    def again():
        now = [a for a in request("GET", f"/v1/job/{name}/allocations") if a["ID"] in before]
        return (len(now) == len(before) and all(
            a["ClientStatus"] == "running" and os.path.exists(leaf(a)) and pids(a) and
            not {(p, start_time(p)) for p in pids(a)} & set(before[a["ID"]]) and
            a["TaskStates"]["t"]["Restarts"] == 0 for a in now))
    until(again, f"another run of {name}")


# What answers the machine's signal with exit status 0, as many programs do; no attempt is allowed.
POLITE = "trap 'exit 0' TERM; while :; do sleep 1; done"


def tasks_unit_restart_is_like_a_reboot():
    submit("polite", POLITE, kind="batch")
    polite = processes("polite", 1)
    sh("systemctl", "restart", "paddock-tasks")
    until(lambda: show("paddock-warden", "ActiveState") == "active", "warden")
    runs_again("kept", kept)  # this job's policy: no restart
    runs_again("polite", polite)
    purge("kept")
    purge("polite")
    submit("again", "exec sleep 1000000")
    allocs("again", "running")
    purge("again")
    until(lambda: len(glob.glob(f"{TASKS}/*-*/t/task")) == 0, "empty tasks unit")


def tasks_end_with_a_killed_holder_and_come_back():
    submit("held", "exec sleep 1000000")
    submit("polite", POLITE, kind="batch")
    before, polite = processes("held", 1), processes("polite", 1)
    (pid, start), = next(iter(before.values()))
    kill9("paddock-tasks")
    until(lambda: start_time(pid) != start, "end of the task")
    until(lambda: show("paddock-warden", "ActiveState") == "active" and ready(), "warden and agent")
    runs_again("held", before)
    runs_again("polite", polite)
    purge("held")
    purge("polite")
    until(lambda: len(glob.glob(f"{TASKS}/*-*/t/task")) == 0, "empty tasks unit")


def stopping_the_tasks_unit_ends_them():
    submit("ends", "exec sleep 1000000")
    before = processes("ends", 1)
    (pid, start), = next(iter(before.values()))
    sh("systemctl", "stop", "paddock-tasks")
    assert start_time(pid) != start, "the task lives on"
    assert show("paddock-warden", "ActiveState") == "inactive"  # it could start nothing
    assert not os.path.exists(TASKS), "the cgroup stays"
    sh("systemctl", "start", "paddock-warden")
    until(ready, "ready node")
    runs_again("ends", before)
    purge("ends")


def a_start_waits_for_what_a_stop_left():
    """A process that systemd gave up, in a cgroup with controllers handed down: as after a stop that timed out."""
    sh("systemctl", "stop", *UNITS)
    os.makedirs(f"{TASKS}/left/t/task")
    with open(f"{TASKS}/cgroup.subtree_control", "w") as f:
        f.write("+pids")
    left = subprocess.Popen(["sleep", "1000000"])
    with open(f"{TASKS}/left/t/task/cgroup.procs", "w") as f:
        f.write(str(left.pid))
    sh("systemctl", "start", "paddock")
    assert left.wait(DEADLINE_S) == -signal.SIGKILL
    assert show("paddock-tasks", "NRestarts") == "0", show("paddock-tasks", "NRestarts")
    assert [show(u, "ActiveState") for u in UNITS] == ["active"] * 3
    assert not os.path.exists(f"{TASKS}/left")
    until(ready, "ready node")
    # and a holder that lives is not cleared away
    assert "a holder lives" in sh("/usr/libexec/paddock/paddock-holder", "-clear", "/run/paddock", check=False)
    assert show("paddock-tasks", "ActiveState") == "active"


def one_unit_is_started_beside_the_others():
    """A start of what runs is no failure, of each set of units."""
    submit("kept", "exec sleep 1000000")
    before = processes("kept", 1)
    for units in (["paddock-tasks"], UNITS, ["paddock-warden", "paddock"], ["paddock-policy"]):
        sh("systemctl", "start", *units)
        assert [show(u, "ActiveState") for u in UNITS] == ["active"] * 3, units
    assert processes("kept", 1) == before
    assert not sh("systemctl", "--failed", "--no-legend", "--no-pager").strip()
    purge("kept")


def a_broken_file_ends_nothing_that_ran():
    """What starts again by itself goes on with the last good policy and configuration, and the journal says why."""
    submit("kept", "exec sleep 1000000")
    before = processes("kept", 1)
    with open("/etc/paddock.d/broken.hcl", "w") as f:
        f.write("client {\n")
    sh("chgrp", "paddock", "/etc/paddock.d/broken.hcl")
    try:
        kill9("paddock")
        kill9("paddock-warden")
        until(ready, "ready node")
        assert processes("kept", 1) == before
        assert "paddock-policy" in sh("systemctl", "--failed", "--no-legend", "--no-pager")
        assert "broken.hcl" in sh("journalctl", "-b", "-u", "paddock-policy", "-p", "err", "--no-pager", "-o", "cat")
        p = subprocess.run(["systemctl", "reload", "paddock"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert p.returncode != 0, p.stdout
    finally:
        os.remove("/etc/paddock.d/broken.hcl")
    sh("systemctl", "reload", "paddock")
    assert show("paddock-policy", "Result") == "success"
    purge("kept")


def a_stopped_agent_is_replaced():
    """By the watchdog of its unit; the tasks are the same."""
    submit("kept", "exec sleep 1000000")
    before = processes("kept", 1)
    pid = show("paddock", "MainPID")
    os.kill(int(pid), signal.SIGSTOP)
    until(lambda: show("paddock", "MainPID") not in (pid, "0") and ready(), "another agent")
    assert processes("kept", 1) == before
    purge("kept")


def a_stopped_holder_can_be_stopped():
    os.kill(int(show("paddock-tasks", "MainPID")), signal.SIGSTOP)
    sh("systemctl", "restart", "paddock-tasks")
    until(ready, "ready node")
    submit("again", "exec sleep 1000000")
    allocs("again", "running")
    purge("again")


def a_policy_that_hangs():
    """What starts again goes on with the last good one."""
    submit("kept", "exec sleep 1000000")
    before = processes("kept", 1)
    drop_in = "/run/systemd/system/paddock-policy.service.d"
    os.makedirs(drop_in, exist_ok=True)
    with open(f"{drop_in}/hangs.conf", "w") as f:
        f.write("[Service]\nExecStart=\nExecStart=/bin/sleep 1000000\n")
    try:
        sh("systemctl", "daemon-reload")
        kill9("paddock", "paddock-warden")
        until(ready, "ready node")
        assert processes("kept", 1) == before
    finally:
        os.remove(f"{drop_in}/hangs.conf")
        sh("systemctl", "daemon-reload")
    sh("systemctl", "reload", "paddock")
    purge("kept")


def starts_soon_after_stops():
    for i in range(ROUNDS):
        submit("soon", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000000 & done; wait", count=3)
        allocs("soon", "running", 3)
        sh("systemctl", "stop", *UNITS)
        sh("systemctl", "start", "paddock")
        assert show("paddock-tasks", "NRestarts") == "0", f"round {i}: {show('paddock-tasks', 'NRestarts')} restarts"
        assert [show(u, "ActiveState") for u in UNITS] == ["active"] * 3, i
        until(ready, "ready node")
        purge("soon")
    print(f"# {ROUNDS} rounds")


CASES = {1: [tasks_survive, end_during_absence_is_reported, tasks_unit_restart_is_like_a_reboot,
             tasks_end_with_a_killed_holder_and_come_back, stopping_the_tasks_unit_ends_them,
             a_start_waits_for_what_a_stop_left, one_unit_is_started_beside_the_others,
             a_broken_file_ends_nothing_that_ran, a_stopped_agent_is_replaced, a_stopped_holder_can_be_stopped,
             a_policy_that_hangs, starts_soon_after_stops]}
