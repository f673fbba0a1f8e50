# SPDX-License-Identifier: Apache-2.0
"""What the kill tests share: warden and agent side by side as two units of systemd would be, so that a test
decides when each is started and killed; jobs that betray a second instance of themselves; and the search for
whatever is left over. Standard library only.
"""
import http.client
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

from paddock_test import DEADLINE_S, TOP_BUILD, Agent, cmdline, named_child, open_log, start_time

GONE = (OSError, http.client.HTTPException, AssertionError, ValueError)


def cgroup_mount():
    for line in open("/proc/self/mounts"):
        words = line.split()
        if words[2] == "cgroup2":
            return words[1]
    return None


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def environ(pid):
    try:
        return open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
    except OSError:
        return []


class Node(Agent):
    """`bin` holds the binaries; another directory with the same names is another version."""

    def __init__(self, config="", bin_dir=TOP_BUILD, **kw):
        super().__init__(config, **kw)
        self.bin = bin_dir
        self.run = os.path.join(self.dir, "run")
        self.alloc_dir = os.path.join(self.dir, "data", "alloc")
        self.records = os.path.join(self.dir, "data", "records")
        self.cgroup = os.path.join(cgroup_mount(), f"paddock-{os.path.basename(self.dir)}")
        self.warden = None
        user = pwd.getpwnam("paddock")
        self.as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.mkdir(self.run, 0o755)
        with open(os.path.join(self.run, "cgroup"), "w") as f:  # as paddock-holder leaves word
            f.write(self.cgroup)

    def spawn(self, *args, **kw):
        with open_log(self.log) as log:
            return subprocess.Popen(args, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                    start_new_session=True, **kw)

    def start_warden(self):
        subprocess.run([os.path.join(self.bin, "paddock"), "policy", "-supervised", self.run, "-config",
                        self.config], check=True)
        self.warden = self.spawn(os.path.join(self.bin, "paddock-warden"), "-policy",
                                 os.path.join(self.run, "policy"), "-log-level", "debug")

    def start_agent(self):
        self.proc = self.spawn(os.path.join(self.bin, "paddock"), "agent", "-supervised", self.run, "-config",
                               self.config, **self.as_user)

    def start(self, wait=True):
        self.start_warden()
        self.until(lambda: os.path.exists(os.path.join(self.run, "warden.sock")), "the warden's socket")
        self.start_agent()
        if wait:
            self.wait_ready()
        return self

    def daemons(self):
        return {"agent": self.proc.pid, "warden": self.warden.pid}

    def kill(self, *roles, sig=signal.SIGKILL):
        for role in roles:
            (self.warden if role == "warden" else self.proc).send_signal(sig)
        for role in roles:
            (self.warden if role == "warden" else self.proc).wait()

    def revive(self, *roles):
        for role in roles:
            self.start_warden() if role == "warden" else self.start_agent()

    def kill_all(self):
        self.kill("agent", "warden")

    def stop(self):
        for p in (self.proc, self.warden):
            if p and p.poll() is None:
                p.terminate()
                p.wait(30)

    def machine_ends(self, told, at_once=()):
        """As by systemd: agent and warden, the word that the machine ends, SIGTERM, and SIGKILL for what stays for half a second
        (in the cgroups `at_once`, sooner). Not `told`: the power goes. `/run` and cgroups are as after a boot."""
        self.kill("agent", "warden", sig=signal.SIGTERM if told else signal.SIGKILL)
        if told:
            p = subprocess.run([os.path.join(self.bin, "paddock-holder"), "-ending", self.run], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, check=False)
            assert (p.returncode, p.stdout) == (0, ""), p.stdout
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
        end = time.monotonic() + (0.5 if told else 0)
        for cgroup in [*at_once, self.cgroup]:
            while cgroup == self.cgroup and self.processes() and time.monotonic() < end:
                time.sleep(0.02)
            with open(f"{cgroup}/cgroup.kill", "w") as f:
                f.write("1")
        self.until(lambda: not self.processes(), "an empty machine")
        self.remove_cgroups()
        shutil.rmtree(self.run)
        os.mkdir(self.run, 0o755)
        with open(os.path.join(self.run, "cgroup"), "w") as f:
            f.write(self.cgroup)

    # --- what there is ---

    def processes(self):
        """{pid: cgroup below ours} of everything in our cgroups."""
        found, top = {}, "/" + os.path.basename(self.cgroup) + "/"
        for p in filter(str.isdigit, os.listdir("/proc")):
            for line in read(f"/proc/{p}/cgroup").splitlines():
                if line.startswith("0::" + top):
                    found[int(p)] = line[3 + len(top):]
        return found

    def payloads(self):
        """{(allocation, task): [pids]}: parents of nothing but themselves, the first process in each leaf."""
        found = {}
        for pid, where in self.processes().items():
            parts = where.split("/")
            if len(parts) == 3 and parts[2] == "task":
                stat = read(f"/proc/{pid}/stat")
                if not stat or stat.rsplit(")", 1)[1].split()[0] == "Z":
                    continue
                parent = int(stat.rsplit(")", 1)[1].split()[1])
                if any(b"paddock-shim" in w for w in cmdline(parent)[:1]):
                    found.setdefault((parts[0], parts[1]), []).append(pid)
        return found

    def fds(self):
        count = {}
        for role, pid in self.daemons().items():
            count[role] = sorted(os.readlink(f"/proc/{pid}/fd/{f}") for f in os.listdir(f"/proc/{pid}/fd")
                                 if os.path.islink(f"/proc/{pid}/fd/{f}"))
        return count

    def mounts(self):
        mine = [x for x in read("/proc/self/mountinfo").splitlines() if self.dir in x]
        return {"host": mine, "warden": len(read(f"/proc/{self.warden.pid}/mountinfo").splitlines())}

    def leftovers(self):
        """Everything that should not be there when no job is."""
        left = []
        for at, dirs, _ in os.walk(self.cgroup):
            left += [f"cgroup {os.path.join(at, d)}" for d in dirs]
        left += [f"record {r}" for r in os.listdir(self.records)]
        left += [f"directory {d}" for d in os.listdir(self.alloc_dir)]
        left += [f"process {p} {cmdline(p)} in {c}" for p, c in self.processes().items()]
        keep = set(self.daemons().values())
        keep.add(named_child(self.daemons().get("warden", 0), "paddock-network"))
        for p in filter(str.isdigit, os.listdir("/proc")):
            words = b" ".join(environ(p) + cmdline(p))
            if int(p) not in keep and self.dir.encode() in words and cmdline(p):
                left.append(f"process {p} {cmdline(p)}")
        left += [f"mount {m}" for m in self.mounts()["host"]]
        return left

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.destroy()
            return
        print(f"# kept: {self.log}")
        for p in (self.proc, self.warden):
            if p and p.poll() is None:
                p.kill()
                p.wait()
        for at, _, _ in os.walk(self.cgroup):
            with open(os.path.join(at, "cgroup.kill"), "w") as f:
                f.write("1")
        self.until(lambda: not self.processes(), "end of all tasks")
        self.remove_cgroups()

    def destroy(self):
        super().destroy()
        self.remove_cgroups()

    def remove_cgroups(self):
        for at, dirs, _ in os.walk(self.cgroup, topdown=False):
            for d in dirs:
                os.rmdir(os.path.join(at, d))
        if os.path.isdir(self.cgroup):
            os.rmdir(self.cgroup)


def with_own_boot_id(variable):
    """Executes this program again, as root, in a mount namespace where the machine's boot id is in the file that the variable
    names: new_boot() writes another one."""
    if os.geteuid() != 0 or variable in os.environ:
        return
    fd, path = tempfile.mkstemp(prefix="paddock-boot-")
    os.fchmod(fd, 0o644)
    os.close(fd)
    os.environ[variable] = path
    new_boot(path)
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", "sh", "-c",
                          f'mount --bind "${variable}" /proc/sys/kernel/random/boot_id && exec "$@"', "boot", *sys.orig_argv])


def new_boot(path):
    with open(path, "w") as f:
        f.write(f"{uuid.uuid4()}\n")


# --- jobs ---

# A second instance of the same task of the same allocation finds the lock taken and says so.
ALONE = ("d=$NOMAD_ALLOC_DIR/data; exec 9>>$d/$NOMAD_TASK_NAME.lock; "
         "/usr/bin/flock -n 9 || { echo $NOMAD_TASK_NAME >>$d/double; exit 9; }; ")
SERVICE = ALONE + "echo start; while :; do sleep 0.3; done"
BATCH = ALONE + "sleep 0.$V; echo done >>$d/$NOMAD_TASK_NAME.done"


def job(job_id, kind, driver, count, version, script=None, policy=None, **task):
    restart = {"Attempts": 20, "Interval": 600 * 10**9, "Delay": 50 * 10**6, "Mode": "fail"}
    body = {"Name": "t", "Driver": driver, "Config": {"command": "/bin/sh", "args": ["-c", script or (
                SERVICE if kind == "service" else BATCH)]}, "Env": {"V": str(version)},
            "KillTimeout": 500 * 10**6, "Resources": {"CPU": 5, "MemoryMB": 10},
            "LogConfig": {"MaxFiles": 2, "MaxFileSizeMB": 1}}
    body.update(task)
    return {"Job": {"ID": job_id, "Name": job_id, "Type": kind, "Datacenters": ["*"], "TaskGroups": [
        {"Name": "g", "Count": count, "RestartPolicy": policy or restart, "Tasks": [body],
         "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}]}}


class Load:
    """Submits, updates, scales and stops jobs, whatever happens to the daemons. `rng` decides what."""

    def __init__(self, node, rng, n=6):
        self.node, self.rng, self.n = node, rng, n
        self.jobs, self.halt, self.thread = {}, threading.Event(), None  # id: (kind, driver, count, version)
        self.ops, self.serial = 0, 0

    def send(self, method, path, body=None):
        while True:  # as a user would, until it is taken
            try:
                status, _, data = self.node.request(method, path, body, timeout=5)
                if status == 200 or (status == 404 and method == "DELETE"):  # the answer was lost before
                    self.ops += 1
                    return
                if status < 500:
                    raise RuntimeError(f"{method} {path}: {status} {data!r}")
            except (OSError, http.client.HTTPException):
                pass
            if self.halt.wait(0.02) and self.node.proc.poll() is not None:
                return

    def step(self):
        rng = self.rng
        ids = list(self.jobs)
        if len(ids) < self.n:
            self.serial += 1
            ident = f"k{self.serial}"
            spec = (rng.choice(["service", "service", "batch"]), rng.choice(["raw_exec", "exec"]),
                    rng.randint(1, 3), 0)
            self.jobs[ident] = spec
            self.send("PUT", "/v1/jobs", job(ident, *spec))
            return
        ident = rng.choice(ids)
        kind, driver, count, version = self.jobs[ident]
        what = rng.random()
        if what < 0.4:  # another environment: destructive
            self.jobs[ident] = spec = (kind, driver, count, (version + 1) % 10)
            self.send("PUT", "/v1/jobs", job(ident, *spec))
        elif what < 0.6:
            self.jobs[ident] = spec = (kind, driver, rng.randint(1, 3), version)
            self.send("PUT", "/v1/jobs", job(ident, *spec))
        else:
            del self.jobs[ident]
            purge = "?purge=true" if rng.random() < 0.7 else ""
            self.send("DELETE", f"/v1/job/{ident}{purge}")

    def loop(self):
        try:
            while not self.halt.is_set():
                self.step()
                self.halt.wait(self.rng.uniform(0, 0.15))
        except BaseException as e:
            self.error = e
            raise

    def start(self):
        self.error = None
        self.halt.clear()
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def pause(self):
        self.halt.set()
        self.thread.join()
        if self.error:
            raise self.error


def agreed(node, load):
    """None, or how the servers' view, the client's and the kernel's differ."""
    allocs = node.get("/v1/allocations")
    living = {}
    for a in allocs:
        if a["ClientStatus"] in ("pending", "running") and not (
                a["ClientStatus"] == "running" and a["DesiredStatus"] == "run"):
            return f"{a['ID']} is {a['ClientStatus']}, wanted {a['DesiredStatus']}"
        if a["ClientStatus"] == "running":
            living.setdefault(a["JobID"], []).append(a["ID"])
        if a["ClientStatus"] in ("failed", "lost"):
            states = json.dumps(node.get(f"/v1/allocation/{a['ID']}")["TaskStates"])
            raise AssertionError(f"{a['ID']} of {a['JobID']} is {a['ClientStatus']}: {states}")
    for ident, (kind, _, count, _) in load.jobs.items():
        if kind == "service" and len(living.get(ident, [])) != count:
            return f"{ident}: {len(living.get(ident, []))} of {count} run"
    stray = set(living) - set(load.jobs)
    if stray:
        return f"{stray} run, and are no jobs"
    want = {(i, "t") for v in living.values() for i in v}
    have = node.payloads()
    if set(have) != want:
        return f"runs without being told {set(have) - want}, told but does not run {want - set(have)}"
    twice = {k: v for k, v in have.items() if len(v) != 1}
    if twice:
        raise AssertionError(f"twice: {twice}")
    return None


def settled(node, load):
    why = "?"

    def look():
        nonlocal why
        try:
            why = agreed(node, load)
        except (OSError, http.client.HTTPException) as e:
            why = repr(e)
        return why is None
    try:
        node.until(look, "agreement")
    except AssertionError as e:
        if "no agreement" in str(e):
            raise AssertionError(f"{why}\n{node.tail(20)}") from None
        raise


def no_doubles(node):
    for a in os.listdir(node.alloc_dir):
        assert not os.path.exists(os.path.join(node.alloc_dir, a, "alloc", "data", "double")), \
            f"a task of {a} ran twice at a time\n{node.tail(20)}"


def all_gone(node, load):
    """Purges every job; nothing may remain."""
    for j in node.get("/v1/jobs"):
        node.request("DELETE", f"/v1/job/{j['ID']}?purge=true")
    load.jobs.clear()
    left = None

    def ended():
        return all(a["ClientStatus"] not in ("running", "pending") for a in node.get("/v1/allocations"))
    node.until(ended, "end of all allocations")

    def look():
        nonlocal left
        node.request("PUT", "/v1/system/gc")
        node.get(f"/v1/client/gc?node_id={node.get('/v1/nodes')[0]['ID']}")
        left = node.leftovers()
        return not left
    try:
        node.until(look, "end of everything", 20)
    except AssertionError:
        raise AssertionError("left over:\n" + "\n".join(left) + "\n" + node.tail(20)) from None
