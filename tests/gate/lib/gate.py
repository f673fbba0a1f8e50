# SPDX-License-Identifier: Apache-2.0
"""What the scenarios of tests/gate share: a server that goes by steps, nodes that do what they are told, and the
baseline of the reference: job J (lost_after 1h, replaced after 5 s) and job P without a disconnect block."""
import http.client
import json
import os
import shutil
import subprocess
import threading

from fake_node import FakeNode, RpcError, Schema  # noqa: F401
from paddock_test import SANITIZED, TOP_BUILD, TOP_SRC, Agent

SCHEMA = Schema(TOP_SRC)
S = 10**9
HOUR = 3600


def group(count=1, disconnect=None, name="g", reschedule=True, cpu=100, constraint=None, kill=None, **more):
    task = {"Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sleep", "args": ["1"]},
            "LogConfig": {"MaxFiles": 1, "MaxFileSizeMB": 1}, "Resources": {"CPU": cpu, "MemoryMB": 64}}
    if kill:
        task["KillTimeout"] = kill * S
    g = {"Name": name, "Count": count, "Tasks": [task], "EphemeralDisk": {"SizeMB": 10}}
    if reschedule:
        g["ReschedulePolicy"] = {"Delay": 5 * S, "DelayFunction": "constant", "Unlimited": True, "Attempts": 0}
    if disconnect is not None:
        g["Disconnect"] = disconnect
    if constraint:
        g["Constraints"] = [{"LTarget": constraint[0], "Operand": "=", "RTarget": constraint[1]}]
    return dict(g, **more)


def lost_after(seconds=HOUR, replace=True, reconcile="best_score"):
    return {"LostAfter": seconds * S, "Replace": replace, "Reconcile": reconcile}


class Faulty(Agent):
    """A server with tests/lib/faults.so in it; the power of its machine can be cut."""

    def __init__(self, **more):
        super().__init__(**more)
        self.data = os.path.join(self.dir, "data")
        ctl = os.path.join(self.data, "ctl")  # where the agent may write
        self.rules, self.disk = os.path.join(ctl, "rules"), os.path.join(self.data, "server")
        for d in (ctl, self.disk + ".lost"):
            os.makedirs(d)
            os.chmod(d, 0o777)
        so = os.path.join(self.dir, "faults.so")
        shutil.copy(os.path.join(TOP_BUILD, "tests", "lib", "faults.so"), so)
        first = ""
        if SANITIZED:
            first = subprocess.run(["gcc", "-print-file-name=libasan.so"], stdout=subprocess.PIPE, text=True,
                                   check=True).stdout.strip() + ":"
        self.env = {"LD_PRELOAD": first + so, "PADDOCK_FAULTS": self.rules}

    def start(self, wait=True):
        os.environ.update(self.env)
        try:
            return super().start(wait)
        finally:
            for k in self.env:
                del os.environ[k]

    def volatile(self):
        """Before it starts: what its server does not sync is lost when the power is cut."""
        with open(self.rules + ".new", "w") as f:
            f.write(f"disk {self.disk}\n")
        os.rename(self.rules + ".new", self.rules)
        return self

    def faults(self, *rules):
        status, _, data = self.request("PUT", "/v1/test/disk", {"rules": "\n".join((f"disk {self.disk}",) + rules)})
        assert status == 200, data

    def made(self):
        """Lines of the faults that were made."""
        try:
            return open(self.rules + ".made").read().splitlines()
        except FileNotFoundError:
            return []

    def cut(self, seed=0):
        """The power goes, and comes back; the rules are but the disk."""
        pid = self.daemons()["agent"]
        try:
            r = self.request("POST", "/v1/test/crash", {"lose_unsynced": True, "seed": seed})
            raise AssertionError(f"it answered {r}")
        except (OSError, http.client.HTTPException):
            pass
        self.volatile()
        self.until(lambda: self.daemons().get("agent") not in (None, pid), "another process")


class Gate:
    """One server, started once; each scenario has nodes and jobs of its own."""

    def __init__(self, config="", **more):
        text = "server {\n  heartbeat_grace = \"1h\"\n}\n" + config
        self.a = Agent(mode="server", log="INFO", config=text, **more)
        self.n, self.nodes = 0, []

    def start(self):
        self.a.start()
        self.a.until(lambda: self.a.request("GET", "/v1/node/pools")[0] == 200, "the first entry of the leader")
        self.put("/v1/test/scheduler", {"paused": True})
        return self

    def post(self, path, body=None, want=200):
        status, _, data = self.a.request("POST", path, body if body is not None else {})
        assert status == want, (path, status, data)
        return json.loads(data) if status == 200 and data else None

    def put(self, path, body=None):
        return self.post(path, body)

    def get(self, path):
        return self.a.get(path)

    # --- nodes ---
    def node(self, ready=True, **more):
        self.n += 1
        more.setdefault("dc", self.dc)
        n = FakeNode(SCHEMA, self.a.rpc, f"n{self.n}", **more)
        self.nodes.append(n)
        if ready:
            n.register()
            n.beat()
            assert self.status(n) == "ready"
        return n

    def fresh(self):
        """A datacenter of its own for the next scenario; what the last one left is gone."""
        for n in self.nodes:
            n.rpc.close()
        for j in self.get("/v1/jobs?namespace=*"):
            self.a.request("DELETE", f"/v1/job/{j['ID']}?purge=true")
        for n in self.nodes:
            self.a.request("PUT", f"/v1/node/{n.id}/purge")
        self.run()
        self.nodes = []
        self.dc = f"dc{self.n}x"

    dc = "dc0x"

    def info(self, n):
        return self.get(f"/v1/node/{n.id}")

    def status(self, n):
        return self.info(n)["Status"]

    def lmh(self, n):
        return self.info(n)["LastMissedHeartbeatIndex"]

    def lau(self, n):
        return self.info(n)["LastAllocUpdateIndex"]

    def miss(self, n):
        """The node's timer fires; returns when the miss is in the state, which an event tells."""
        before = len(self.info(n)["Events"]), self.info(n)["ModifyIndex"]
        self.post("/v1/test/ttl", {"NodeID": n.id})
        self.a.until(lambda: (len(self.info(n)["Events"]), self.info(n)["ModifyIndex"]) != before, "miss")
        return self.status(n)

    def beat(self, n):
        r = n.beat()
        self.beats = r.get("Index", 0)
        return self.status(n)

    # --- jobs ---
    def job(self, *groups, name=None, type="service", **more):
        self.n += 1
        name = name or f"j{self.n}"
        gs = list(groups)
        j = dict({"ID": name, "Name": name, "Type": type, "Datacenters": [self.dc], "TaskGroups": gs}, **more)
        self.register(j)
        return j

    def register(self, j):
        status, _, data = self.a.request("PUT", "/v1/jobs", {"Job": j})
        assert status == 200, (status, data)

    def step(self, job):
        """One evaluation of the job; None: none is ready."""
        return self.post("/v1/test/scheduler/step", {"job": job["ID"]})

    def ev(self, job):
        """As many as are ready."""
        done = []
        for _ in range(20):
            e = self.step(job)
            if e is None:
                return done
            done.append(e)
        raise AssertionError(f"evaluations of {job['ID']} without end: {done[-3:]}")

    def run(self):
        """All that is ready, of every job."""
        for _ in range(200):
            if self.post("/v1/test/scheduler/step", {}) is None:
                return
        raise AssertionError("evaluations without end")

    def clock(self, seconds):
        self.put("/v1/test/clock", {"wall_ms": int(seconds * 1000), "mono_ms": int(seconds * 1000)})

    def allocs(self, job):
        return sorted((self.get(f"/v1/allocation/{x['ID']}") for x in self.get(f"/v1/job/{job['ID']}/allocations?all=true")),
                      key=lambda x: x["CreateIndex"])

    def alloc(self, x):
        return self.get(f"/v1/allocation/{x['ID']}")

    def live(self, job):
        return [x for x in self.allocs(job) if x["DesiredStatus"] == "run" and
                x["ClientStatus"] in ("pending", "running", "unknown")]

    def evals(self, job, **want):
        return [e for e in self.get(f"/v1/job/{job['ID']}/evaluations")
                if all(e.get(k) == v for k, v in want.items())]

    def delayed(self, job, trigger=None):
        ids = set(self.get("/v1/test/broker")["Delayed"])
        return [e for e in self.evals(job) if e["ID"] in ids and trigger in (None, e["TriggeredBy"])]

    def report(self, n, x, status="running", **more):
        task = {"running": "running", "pending": "pending"}.get(status, "dead")
        state = {"State": task, "Failed": status == "failed"}
        state.update(more.pop("task", {}))
        n.report(dict({"ID": x["ID"], "ClientStatus": status, "TaskStates": {"t": state}}, **more))
        return self.alloc(x)

    def healthy(self, n, x, **more):
        """Runs, and its deployment has what it wants."""
        d = self.alloc(x)["DeploymentID"]
        more.update({"DeploymentID": d, "DeploymentStatus": {"Healthy": True}} if d else {})
        x = self.report(n, x, **more)
        if d:
            self.a.until(lambda: self.run() or self.get(f"/v1/deployment/{d}")["Status"] == "successful", "deployment")
        return x

    def states(self, x):
        return [s["Value"] for s in self.alloc(x)["AllocStates"] or []]

    def settled(self, *jobs):
        """Nothing is pending, delayed, blocked or failed of these jobs."""
        b = self.get("/v1/test/broker")
        left = set(b["Ready"] + b["Pending"] + b["Delayed"] + b["Out"])
        for j in jobs:
            for e in self.evals(j):
                assert e["ID"] not in left and e["Status"] in ("complete", "canceled"), (j["ID"], e)

    # --- start states ---
    def ready(self, **more):
        """READY: J's allocation a runs on N1; N2 and N3 are there."""
        kind = more.pop("kind", None) or lost_after(**{k: more.pop(k) for k in ("replace", "reconcile") if k in more})
        type = more.pop("type", "service")
        meta = more.pop("meta", None)
        n1 = self.node(meta=meta)
        j = self.job(group(disconnect=kind, **more), type=type)
        self.ev(j)
        (a,) = self.live(j)
        a = self.healthy(n1, a)
        self.run()
        n2, n3 = self.node(), self.node()
        self.ev(j)
        return n1, n2, n3, j, a

    def disc(self, **more):
        """DISC: N1 missed, a is unknown."""
        n1, n2, n3, j, a = self.ready(**more)
        assert self.miss(n1) == "disconnected"
        self.ev(j)
        a = self.alloc(a)
        assert a["ClientStatus"] == "unknown" and a["DesiredStatus"] == "run", a
        return n1, n2, n3, j, a

    def disc_r(self, running=True, **more):
        """DISC+r: its replacement is on N2 or N3."""
        n1, n2, n3, j, a = self.disc(**more)
        self.clock(5)
        self.ev(j)
        r = [x for x in self.live(j) if x["ID"] != a["ID"]]
        assert len(r) == 1 and r[0]["PreviousAllocation"] == a["ID"], r
        on = next(n for n in (n2, n3) if n.id == r[0]["NodeID"])
        if running:
            r = [self.report(on, r[0])]
        self.ev(j)
        return n1, on, j, self.alloc(a), r[0]

    def down(self):
        """DOWN: N1 is down, p lost and placed on another node."""
        n1 = self.node()
        p = self.job(group())
        self.ev(p)
        (x,) = self.live(p)
        self.report(n1, x)
        n2 = self.node()
        assert self.miss(n1) == "down"
        self.ev(p)
        return n1, n2, p, self.alloc(x)

    # --- holds ---
    def held(self, point, match, call, first=None):
        """What `call` makes is held there. first: a hold that takes what comes before, and lets it go."""
        h = self.post("/v1/test/hold", {"point": point, "match": match})["ID"]
        t, box = in_thread(call)
        if first is not None:
            self.a.until(lambda: any(x["ID"] == first and x["Held"] for x in self.get("/v1/test/held")), point)
            self.post("/v1/test/release", {"ID": first})
        self.a.until(lambda: any(x["ID"] == h and x["Held"] for x in self.get("/v1/test/held")) or not t.is_alive(), point)
        assert t.is_alive(), (point, box)
        return h, t, box

    def let_go(self, *all):
        for h, t, _ in all:
            self.post("/v1/test/release", {"ID": h})
            t.join(60)
            assert not t.is_alive()

    def stop(self):
        self.a.stop()


def in_thread(fn):
    """(thread, box): box has the value or the error of fn when the thread ends."""
    box = {}

    def body():
        try:
            box["value"] = fn()
        except RpcError as e:
            box["error"] = str(e)
    t = threading.Thread(target=body)
    t.start()
    return t, box
