# SPDX-License-Identifier: Apache-2.0
"""systemd runs, our units are not installed: the supervisor has a holder made by the bus."""
import glob
import os
import shutil

from vm import *

ASIDE = "/var/tmp/units"


def units_aside(aside):
    """`make install` without units, and back."""
    os.makedirs(ASIDE, exist_ok=True)
    source, target = ("/usr/lib/systemd/system", ASIDE) if aside else (ASIDE, "/usr/lib/systemd/system")
    for unit in glob.glob(f"{source}/paddock*.service"):
        shutil.move(unit, target)
    sh("systemctl", "daemon-reload")


def start_by_hand():
    sh("systemd-run", "--collect", "--unit=byhand", "--property=Type=exec", "paddock", "agent", "-config", "/etc/paddock.d")
    until(ready, "ready node")


def a_holder_is_made_by_the_bus():
    sh("systemctl", "stop", *UNITS)
    os.rename("/run/paddock/cgroup", "/run/paddock/cgroup.old")  # of the installed unit
    units_aside(True)
    try:
        assert show("paddock-tasks", "LoadState") == "not-found"
        start_by_hand()
        assert show("paddock-tasks", "Transient") == "yes" and show("paddock-tasks", "Delegate") == "yes"
        assert show("paddock-tasks", "OOMPolicy") == "continue"
        assert read("/run/paddock/cgroup") == TASKS
        submit("byhand", "exec sleep 1000000", count=2)
        before = {a["ID"]: [(p, start_time(p)) for p in pids(a)] for a in allocs("byhand", "running", 2)}
        sh("systemctl", "stop", "byhand")
        assert all(start_time(p) == t for two in before.values() for p, t in two), "a task ended"
        start_by_hand()
        after = {a["ID"]: [(p, start_time(p)) for p in pids(a)] for a in allocs("byhand", "running", 2)}
        assert after == before, "not the same processes"
        purge("byhand")
        until(lambda: len(glob.glob(f"{TASKS}/*-*/t/task")) == 0, "end of the tasks")
        sh("systemctl", "stop", "byhand", "paddock-tasks")
        assert show("paddock-tasks", "LoadState") == "not-found", "the transient unit stays"
    finally:
        sh("systemctl", "stop", "byhand", check=False)
        units_aside(False)
    sh("systemctl", "start", "paddock")
    until(ready, "ready node")


def a_development_agent_leaves_nothing():
    sh("systemctl", "stop", "paddock")
    sh("systemd-run", "--unit=devel", "--property=Type=exec", "paddock", "agent", "-dev")
    until(ready, "ready node")
    units = [u for u in glob.glob("/sys/fs/cgroup/system.slice/paddock-tasks-*.service")]
    assert len(units) == 1, units
    submit("devel", "exec sleep 1000000")
    alloc = allocs("devel", "running")[0]
    assert os.path.exists(f"{units[0]}/{alloc['ID']}/t/task"), units
    sh("systemctl", "stop", "devel")
    until(lambda: not os.path.exists(units[0]), "end of the unit")
    assert not glob.glob("/tmp/paddock-dev-*"), "its directory is left"
    sh("systemctl", "start", "paddock")
    until(ready, "ready node")


CASES = {1: [a_holder_is_made_by_the_bus, a_development_agent_leaves_nothing]}
