# SPDX-License-Identifier: Apache-2.0
"""A mixed load on one agent, at full speed: jobs submitted, changed, stopped and purged; logs, files,
blocking queries read; garbage on every port. Threads run until told to end; what one of them finds
wrong is kept and fails the test.

Refusals that a loaded agent may give (429, 503, 409, 404 of what another thread removed) are not
wrong; a connection that breaks without an answer to a well-formed request, a 500, or a job that does
not come to its end is.
"""
import http.client
import json
import random
import socket
import threading
import time
import traceback

FINE = (200, 400, 403, 404, 405, 409, 413, 414, 429, 431, 501, 503)

WRITES = (200, 404, 409, 429, 503)


def task(name, script, driver="exec", **more):
    return dict({"Name": name, "Driver": driver, "Config": {"command": "/bin/sh", "args": ["-c", script]},
                 "Resources": {"CPU": 10, "MemoryMB": 16}, "KillTimeout": 1000000000,
                 "LogConfig": {"MaxFiles": 2, "MaxFileSizeMB": 1}}, **more)


def job(name, tasks, kind="batch", count=1, **more):
    return {"Job": dict({"ID": name, "Name": name, "Type": kind, "Datacenters": ["*"], "TaskGroups": [
        {"Name": "g", "Count": count, "EphemeralDisk": {"SizeMB": 10}, "Tasks": tasks,
         "RestartPolicy": {"Attempts": 1, "Interval": 60000000000, "Delay": 100000000, "Mode": "fail"},
         "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}]}, **more)}


class Load:
    def __init__(self, agent, seed=1):
        self.agent, self.seed = agent, seed
        self.rounds = 0
        self.end = threading.Event()
        self.wrong, self.count, self.lock = [], {}, threading.Lock()
        self.ids = set()
        self.allocs = []  # recent allocations, for the readers
        self.slowest = {}

    # --- bookkeeping ---

    def done(self, what, took=0.0):
        with self.lock:
            self.count[what] = self.count.get(what, 0) + 1
            self.slowest[what] = max(self.slowest.get(what, 0), took)

    def ask(self, what, method, path, body=None, timeout=60):
        """(status, headers, data); anything but a fine status is an error of the agent."""
        t = time.monotonic()
        status, headers, data = self.agent.request(method, path, body, timeout=timeout)
        self.done(what, time.monotonic() - t)
        if status not in (WRITES if method != "GET" else FINE):
            raise AssertionError(f"{method} {path}: {status} {data[:300]!r}")
        return status, headers, data

    def get(self, what, path):
        status, _, data = self.ask(what, "GET", path)
        return json.loads(data) if status == 200 else None

    def _run(self, fn, n):
        r = random.Random(f"{self.seed} {self.rounds} {fn.__name__} {n}")
        while not self.end.is_set():
            try:
                fn(r, n)
            except Exception:  # noqa: whatever it is, the test reports it
                if len(self.wrong) < 20:
                    self.wrong.append(f"{fn.__name__}: {traceback.format_exc()}")
                self.end.wait(0.2)

    # --- the kinds of load ---

    def until(self, job_id, cond, what, deadline=60):
        """Follows a job's allocations by blocking query. None: asked to end meanwhile."""
        index, end = 0, time.monotonic() + deadline
        while True:
            status, headers, data = self.ask("blocking", "GET",
                                             f"/v1/job/{job_id}/allocations?index={index}&wait=2s")
            v = json.loads(data) if status == 200 else []
            self.ids.update(a["ID"] for a in v)
            if v:
                self.allocs = (self.allocs + [(a["ID"], a["TaskGroup"]) for a in v[-2:]])[-16:]
            if cond(v):
                return v
            if not v and self.ask("job", "GET", f"/v1/job/{job_id}")[0] == 404:
                return v  # over, and collected by collect() before we looked
            if time.monotonic() > end:
                raise AssertionError(f"{job_id}: no {what} within {deadline} s: " + str([
                    (a["ID"][:8], a["ClientStatus"], a["DesiredStatus"]) for a in v]))
            index = int({k.lower(): x for k, x in headers.items()}.get("x-nomad-index", "0"))

    def purge(self, name):
        self.ask("purge", "DELETE", f"/v1/job/{name}?purge=true")

    def batch(self, r, n):
        """Short tasks: they run, end, are read, are purged."""
        name = f"batch-{n}-{r.randrange(1 << 40)}"
        driver = r.choice(("exec", "raw_exec"))
        bad = r.random() < 0.1
        script = "echo out; echo err >&2; echo x > $NOMAD_TASK_DIR/f; " + ("exit 3" if bad else "true")
        count = r.choice((1, 1, 2, 5))
        self.ask("submit", "PUT", "/v1/jobs", job(name, [task("t", script, driver)], count=count))
        want = ("failed",) if bad else ("complete",)
        self.until(name, lambda v: len(v) == count and all(a["ClientStatus"] in want for a in v), str(want))
        self.purge(name)

    def service(self, r, n):
        """Long tasks: changed in place and destructively, scaled, stopped."""
        name = f"service-{n}-{r.randrange(1 << 40)}"
        script = "trap 'exit 0' TERM; echo up; while :; do echo $NOMAD_META_round; sleep 0.3 & wait; done"

        def submit(count, rnd, env="a"):
            self.ask("update" if rnd else "submit", "PUT", "/v1/jobs", job(
                name, [task("t", script, Env={"V": env}, Meta={"round": str(rnd)})],
                kind="service", count=count))

        def running(count):
            return lambda v: sum(a["ClientStatus"] == "running" and a["DesiredStatus"] == "run"
                                 for a in v) == count
        submit(2, 0)
        self.until(name, running(2), "2 running")
        for rnd in range(1, r.randrange(2, 5)):
            count = r.choice((1, 2, 3))
            submit(count, rnd, env=r.choice("ab"))
            self.until(name, running(count), f"{count} running")
        if r.random() < 0.5:
            self.ask("stop", "DELETE", f"/v1/job/{name}")
            self.until(name, lambda v: all(a["ClientStatus"] == "complete" for a in v), "end")
        self.purge(name)

    def reader(self, r, n):
        """Lists, blocking lists, logs, files, statistics."""
        pick = r.randrange(8)
        if pick == 0:
            self.get("list", r.choice(("/v1/jobs", "/v1/allocations", "/v1/evaluations", "/v1/nodes", "/v1/metrics",
                                       "/v1/client/stats", "/v1/agent/self")))
        elif pick == 1:
            index = 0
            path = r.choice(("/v1/jobs", "/v1/allocations", "/v1/evaluations", "/v1/nodes"))
            for _ in range(4):
                status, headers, _ = self.ask("blocking", "GET", f"{path}?index={index}&wait=300ms")
                if status != 200:
                    break
                index = int({k.lower(): x for k, x in headers.items()}.get("x-nomad-index", "0"))
        elif not self.allocs:
            self.end.wait(0.05)
        else:
            alloc, _ = r.choice(self.allocs)
            if pick == 2:
                self.get("alloc", f"/v1/allocation/{alloc}")
            elif pick in (3, 4):
                self.follow(alloc, r)
            else:
                path = r.choice((f"ls/{alloc}?path=/", f"ls/{alloc}?path=t/local", f"stat/{alloc}?path=t/local/f",
                                 f"cat/{alloc}?path=t/local/f", f"ls/{alloc}?path=../../..",
                                 f"logs/{alloc}?task=t&type=stdout&plain=true"))
                self.ask("fs", "GET", "/v1/client/fs/" + path)

    def follow(self, alloc, r):
        """A log followed for a moment, then let go of without a word."""
        c = http.client.HTTPConnection("127.0.0.1", self.agent.http, timeout=5)
        try:
            c.request("GET", f"/v1/client/fs/logs/{alloc}?task=t&type={r.choice(('stdout', 'stderr'))}"
                             f"&follow=true&plain={r.choice(('true', 'false'))}")
            c.sock.settimeout(r.choice((0.05, 0.3)))
            resp = c.getresponse()
            while resp.read1(4096):
                pass
        except (socket.timeout, TimeoutError, OSError, http.client.HTTPException):
            pass
        finally:
            c.close()
        self.done("follow")

    def garbage(self, r, n):
        """Bytes that mean nothing, or almost something, on both ports."""
        port = r.choice((self.agent.http, self.agent.http, self.agent.rpc))
        pick = r.randrange(7)
        text = {
            0: r.randbytes(r.randrange(1, 4000)),
            1: b"GET /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 40000 + b"\r\n\r\n",
            2: b"PUT /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{\"Job\": [[[[[[",
            3: b"PUT /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000\r\n\r\n" + b'{"Job":{"ID":' + b"[" * 1987,
            4: b"GET /v1/" + r.randbytes(60).hex().encode() + b"?index=-1&wait=x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            5: b"\x02" + r.randbytes(8) + b"\x93\xff\xff" * 100,
            6: b"GET /v1/allocations?index=999999999&wait=60s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        }[pick]
        with socket.socket() as s:
            s.settimeout(0.2)
            try:
                s.connect(("127.0.0.1", port))
                s.sendall(text)
                if r.random() < 0.7:
                    s.recv(4096)
            except OSError:
                pass
        self.done("garbage")

    def collect(self, r, n):
        self.end.wait(1)
        self.ask("gc", "PUT", "/v1/system/gc")

    # --- running it ---

    def run(self, seconds, kinds=None):
        kinds = kinds or ((self.batch, 4), (self.service, 2), (self.reader, 3), (self.garbage, 1), (self.collect, 1))
        self.rounds += 1
        self.end.clear()
        t = [threading.Thread(target=self._run, args=(fn, n), daemon=True) for fn, k in kinds for n in range(k)]
        for x in t:
            x.start()
        self.end.wait(seconds)
        self.end.set()
        for x in t:
            x.join(120)
            assert not x.is_alive(), "a thread of the load hangs"
        assert not self.wrong, "\n".join(self.wrong[:5])

    def summary(self):
        return ", ".join(f"{v} {k} (max {self.slowest[k] * 1e3:.0f} ms)" for k, v in sorted(self.count.items()))
