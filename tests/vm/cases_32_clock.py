# SPDX-License-Identifier: Apache-2.0
"""The clock of the machine is set an hour back and forth, a month forward, and to 1970: nothing ends, expires or is
collected by it, what is to come comes in its time, and nothing is of the future afterwards."""
import os
import time

from vm import *

HOUR, MONTH = 3600, 30 * 24 * 3600
right = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)
kept = {}


def set_clock(by=0):
    """So many seconds off."""
    time.clock_settime(time.CLOCK_REALTIME, right + time.clock_gettime(time.CLOCK_BOOTTIME) + by)


def set_to_1970():
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_BOOTTIME) + 60)


def task(name, seconds, **more):
    return {"Name": name, "Driver": "exec", "Config": {"command": "/bin/sleep", "args": [str(seconds)]}, "Resources": {"CPU": 20, "MemoryMB": 16},
            "LogConfig": {"MaxFiles": 1, "MaxFileSizeMB": 1}, **more}


def deploy(name, begins_s=0):
    """Its main task begins so late."""
    before = [task("before", begins_s, Lifecycle={"Hook": "prestart"})] if begins_s else []
    update = {"MaxParallel": 1, "MinHealthyTime": 10**9, "HealthyDeadline": 900 * 10**9, "ProgressDeadline": 1200 * 10**9}
    request("PUT", "/v1/jobs", {"Job": {"ID": name, "Name": name, "Type": "service", "Datacenters": ["*"], "TaskGroups": [
        {"Name": "g", "Count": 1, "Update": update, "EphemeralDisk": {"SizeMB": 10}, "Tasks": [task("t", 1000000)] + before}]}})


def deployed(name):
    def over():
        all_of = request("GET", f"/v1/job/{name}/deployments")
        return all_of and all_of[0]["Status"] != "running" and all_of[0]
    d = until(over, f"the end of the deployment of {name}")
    assert d["Status"] == "successful", d


def of_now(stamp_ns):
    is_now = right + time.clock_gettime(time.CLOCK_BOOTTIME)
    assert abs(stamp_ns / 1e9 - is_now) < DEADLINE_S, f"{stamp_ns / 1e9 - is_now:.0f} s from now"


def as_before():
    for a in allocs("kept", "running", 2):
        assert [(p, start_time(p)) for p in pids(a)] == kept[a["ID"]], "another process"
        assert a["TaskStates"]["t"]["Restarts"] == 0 and a["DesiredStatus"] == "run", a
    assert [a["ClientStatus"] for a in request("GET", "/v1/job/done/allocations")] == ["complete"], "it was collected"
    assert ready()


def a_clock_is_set(by):
    """In the middle of a deployment, while a task waits for its restart, and a job that has ended is kept."""
    name = f"at{by}"
    deploy(name, begins_s=20)
    allocs(name, "running")
    submit(name + "again", "exit 1", restarts=1)  # 15 s later
    until(lambda: [a for a in request("GET", f"/v1/job/{name}again/allocations") if a["ClientStatus"] == "pending" and a["TaskStates"]], "a failed task")
    set_clock(by)
    deployed(name)
    allocs(name + "again", "failed")
    deploy(name + "after")
    deployed(name + "after")
    for job in name, name + "after":
        of_now(allocs(job, "running")[0]["ModifyTime"])
    as_before()
    set_clock()
    deploy(name + "back")
    deployed(name + "back")
    of_now(allocs(name + "back", "running")[0]["ModifyTime"])
    of_now(request("GET", f"/v1/job/{name}back/deployments")[0]["ModifyTime"])
    for job in name, name + "again", name + "after", name + "back":
        purge(job)
    as_before()


def jobs_before_the_clock_is_set():
    with open("/etc/paddock.d/clock.hcl", "w") as f:  # what has ended is looked at as soon as it may be old
        f.write('server {\n  job_gc_interval = "1s"\n}\n')
    sh("chgrp", "paddock", "/etc/paddock.d/clock.hcl")
    sh("systemctl", "restart", "paddock")
    until(ready, "ready node")
    submit("kept", "exec sleep 1000000", count=2)
    submit("done", "true", kind="batch")
    kept.update({a["ID"]: [(p, start_time(p)) for p in pids(a)] for a in allocs("kept", "running", 2)})
    allocs("done", "complete")


def off_by(seconds):
    try:
        a_clock_is_set(seconds)
    finally:
        set_clock()


def an_hour_ahead():
    off_by(HOUR)


def an_hour_back():
    off_by(-HOUR)


def a_month_ahead():
    off_by(MONTH)


def a_machine_without_a_clock():
    """The agent begins in 1970, and the clock is set later."""
    sh("systemctl", "stop", "paddock")
    set_to_1970()
    try:
        sh("systemctl", "start", "paddock")
        until(ready, "ready node")
        deploy("early")
        deployed("early")
        as_before()
    finally:
        set_clock()
    deploy("late")
    deployed("late")
    for job in "early", "late":
        a = allocs(job, "running")[0]
        assert a["ModifyTime"] / 1e9 < right + time.clock_gettime(time.CLOCK_BOOTTIME) + DEADLINE_S, a["ModifyTime"]
    of_now(max(e["ModifyTime"] for e in request("GET", "/v1/job/late/evaluations")))
    as_before()
    for job in "kept", "done", "early", "late":
        purge(job)
    os.remove("/etc/paddock.d/clock.hcl")
    sh("systemctl", "restart", "paddock")
    until(ready, "ready node")


CASES = {1: [jobs_before_the_clock_is_set, an_hour_ahead, an_hour_back, a_month_ahead, a_machine_without_a_clock]}
