# SPDX-License-Identifier: Apache-2.0
"""What the attempts against a running agent have in common: the watch around each of them, and the
table that they print, a line for each number of tests/attempts/README."""
import json
import os
import subprocess
import time

from paddock_test import TOP_BUILD, PADDOCK

PROGRAMS = [PADDOCK, os.path.join(TOP_BUILD, "paddock-warden"), os.path.join(TOP_BUILD, "paddock-shim"),
            "/bin/sh", "/usr/bin/env", "/etc/passwd", "/etc/shadow"]
ATTEMPT = os.path.join(TOP_BUILD, "tests", "attempts", "attempt")


class Watch:
    """`with Watch(agent) as w:` the host is the same after it, the canary w.path was not opened, and
    the agent is the same processes and answers within a second."""

    def __init__(self, agent, slow=1):
        self.agent, self.slow = agent, slow
        self.path = os.path.join(agent.dir, "canary")

    def __enter__(self):
        self.daemons = self.agent.daemons()
        self.proc = subprocess.Popen([os.path.join(TOP_BUILD, "tests", "attempts", "watch"), self.path, *PROGRAMS],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word, _, self.secret = self.proc.stdout.readline().strip().partition(" ")
        assert word == "ready", "the watch does not start"
        return self

    def __exit__(self, kind, value, trace):
        out, _ = self.proc.communicate("", timeout=60)
        if kind is not None:
            return
        assert self.proc.returncode == 0, f"what must not change did:\n{out}"
        now = self.agent.daemons()
        assert now == self.daemons, f"{self.daemons} was {now}"
        begin = time.monotonic()
        assert self.agent.get("/v1/agent/self")
        took = time.monotonic() - begin
        assert took < self.slow, f"the agent took {took:.2f} s to answer"


class Table:
    """Results by number; show() prints the lines and fails where one came out wrong."""

    def __init__(self):
        self.rows = {}

    def add(self, number, ok, detail):
        self.rows.setdefault(number, []).append((bool(ok), detail))

    def show(self, what="refused"):
        bad = []
        for number, results in self.rows.items():
            good = sum(ok for ok, _ in results)
            print(f"# {number} {what} ({good} of {len(results)})", flush=True)
            bad += [f"{number}: {d}" for ok, d in results if not ok]
        self.rows = {}
        assert not bad, "\n".join(map(str, bad[:20]))


def task(script=None, **kw):
    config = {"command": "/bin/true"} if script is None else {"command": "/bin/sh", "args": ["-c", script]}
    return {"Name": "t", "Driver": "exec", "Config": config, "Resources": {"CPU": 20, "MemoryMB": 32}, **kw}


def job(name, *tasks):
    return {"Job": {"ID": name, "Name": name, "Type": "batch", "Datacenters": ["*"], "TaskGroups": [
        {"Name": "g", "Count": 1, "RestartPolicy": {"Attempts": 0, "Mode": "fail"},
         "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}, "Tasks": list(tasks)}]}}


def submit(agent, name, *tasks):
    code, _, text = agent.request("PUT", "/v1/jobs", job(name, *tasks))
    assert code == 200, f"{name}: {code} {text[:500]!r}"
    return json.loads(text)["EvalID"]


def start(agent, name, *tasks):
    """A job that runs, and the directory of its allocation."""
    submit(agent, name, *tasks)
    alloc = agent.allocs(name)[0]["ID"]
    return alloc, os.path.join(agent.dir, "data", "alloc", alloc)


def end(agent, name):
    agent.request("DELETE", f"/v1/job/{name}?purge=true")
    agent.until(lambda: all(a["ClientStatus"] not in ("running", "pending") for a in agent.get("/v1/allocations")
                            if a["JobID"] == name), f"end of {name}")


def plant(top, name, mode=0o755):
    """The program of attempts in the task's local/; the task waits for the file `go` beside it."""
    local = os.path.join(top, "t", "local")
    with open(ATTEMPT, "rb") as f, open(os.path.join(local, name), "wb") as g:
        g.write(f.read())
    os.chmod(os.path.join(local, name), mode)
    open(os.path.join(local, "go"), "w").close()


GO = "until test -e /local/go; do sleep 0.05; done; "
