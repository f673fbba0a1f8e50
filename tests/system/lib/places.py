# SPDX-License-Identifier: Apache-2.0
"""Agents in network namespaces of their own, on the links of a bridge, which are cut and healed: three servers that are
one cluster, and their clients."""
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from paddock_test import PADDOCK, Agent, need, open_log

SLOW = int(os.environ.get("PADDOCK_TEST_SLOW", "1"))
# what servers and clients are before an upgrade, and after: the same program, where nobody says
FIRST = os.environ.get("PADDOCK_FIRST", PADDOCK)
LATER = os.environ.get("PADDOCK_LATER", PADDOCK)
libc = ctypes.CDLL(None, use_errno=True)
started = time.monotonic()


def say(text):
    print(f"# {time.monotonic() - started:6.1f} {text}", flush=True)


class Place:
    """A network namespace, which lives as long as a process in it that does nothing."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        ours = os.stat("/proc/self/ns/net").st_ino
        path = f"/proc/{self.holder.pid}/ns/net"
        while os.stat(path).st_ino == ours or open(f"/proc/{self.holder.pid}/comm").read() != "sleep\n":
            assert self.holder.poll() is None, "unshare failed"
            time.sleep(0.002)
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.enter = ["nsenter", f"--net={path}"]
        self.ip("link", "set", "lo", "up")

    def ip(self, *args):
        subprocess.run([*self.enter, "ip", *args], check=True)

    def connect(self, port, timeout):
        """A socket stays in the namespace in which it was made; which one that is, each thread says for itself."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            assert libc.setns(self.fd, 0) == 0, os.strerror(ctypes.get_errno())
            s = socket.socket()
        finally:
            assert libc.setns(home, 0) == 0
            os.close(home)
        s.settimeout(timeout)
        try:
            s.connect(("127.0.0.1", port))
        except OSError:
            s.close()
            raise
        return s

    def end(self):
        self.holder.kill()
        self.holder.wait()
        os.close(self.fd)


class Member(Agent):
    """An agent in its place, and its link to the others."""

    def __init__(self, hub, i, mode, text="", **kw):
        self.i, self.hub, self.place = i, hub, Place()
        self.addr, self.label, self.program = f"10.99.0.{i}", f"{mode}{i}", FIRST
        hub.ip("link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", str(self.place.holder.pid))
        hub.ip("link", "set", f"port{i}", "master", "bridge", "up")
        self.place.ip("addr", "add", f"{self.addr}/24", "dev", "eth0")
        self.place.ip("link", "set", "eth0", "up")
        super().__init__(mode=mode, name=self.label, **kw)
        cfg = open(self.config).read().replace('bind_addr  = "127.0.0.1"', f'bind_addr = "{self.addr}"\naddresses {{\n  http = "127.0.0.1"\n}}')
        cfg = re.sub(r'(http|rpc|serf) = "127.0.0.1"\n(?=.*\n?.*\}\nisolation)', rf'\1 = "{self.addr}"\n', cfg)
        cfg = re.sub(r'advertise \{[^}]*\}', f'advertise {{\n  rpc = "{self.addr}"\n  serf = "{self.addr}"\n}}', cfg)
        with open(self.config, "w") as f:
            f.write(cfg + text)

    def start(self, wait=False):
        self.proc = subprocess.Popen([*self.place.enter, self.program, "agent", "-config", self.config], stdout=open_log(self.log),
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)

    def output(self, *args):
        """What a program prints in its place."""
        return subprocess.run([*self.place.enter, *args], capture_output=True, text=True, check=True).stdout

    def request(self, method, path, body=None, timeout=30, token=None):
        c = http.client.HTTPConnection("127.0.0.1", self.http, timeout=timeout)
        c.sock = self.place.connect(self.http, timeout)
        try:
            headers = {"X-Nomad-Token": token or self.token} if token or self.token else {}
            c.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
            r = c.getresponse()
            return r.status, dict(r.getheaders()), r.read()
        except http.client.HTTPException as e:
            raise OSError(str(e)) from None
        finally:
            c.close()

    def link(self, on):
        self.hub.ip("link", "set", f"port{self.i}", "up" if on else "down")

    def deaf(self, to, on):
        """What it sends there is lost; what it is sent comes, but for connections, which need both ways."""
        self.place.ip("route", "add" if on else "del", "blackhole", f"{to.addr}/32")

    def agent_pid(self):
        return self.until(lambda: self.daemons().get("agent"), "a process of the agent")

    def kill(self):
        """By -9, its supervisor first, so that nobody starts it again."""
        pid = self.agent_pid()
        os.kill(self.proc.pid, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        self.kill_all()

    def upgrade(self):
        """As a package's upgrade does it: stopped, and started as the later program with the same data."""
        self.stop()
        self.program = LATER
        self.start()

    def release(self):
        """The codename of the system whose root the agent sees."""
        text = open(f"/proc/{self.agent_pid()}/root/etc/os-release").read()
        return dict(x.split("=", 1) for x in text.split("\n") if "=" in x).get("VERSION_CODENAME", "another system")

    def end(self):
        self.link(True)
        self.stop()
        self.place.end()
        shutil.rmtree(self.dir, ignore_errors=True)


hubs, servers, clients = [], [], []


def stale(a, path):
    """None: it does not answer."""
    try:
        status, _, data = a.request("GET", path + ("&" if "?" in path else "?") + "stale", timeout=5)
    except OSError:
        return None
    return json.loads(data) if status == 200 else None


def leader():
    said = {a.addr: stale(a, "/v1/status/leader") for a in servers}
    if len(set(said.values())) == 1 and None not in said.values():
        return next(a for a in servers if f"{a.addr}:{a.rpc}" == said[a.addr])
    return None


def processes(comm):
    """{allocation: pid} of the tasks of our clients, which the kernel knows by this name. A child of a task that the kernel still knows by it
    (a shell forks before it becomes another program) is not one of its own."""
    found = {}
    dirs = [c.dir.encode() for c in clients]
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{p}/comm").read() != comm + "\n":
                continue
            env = open(f"/proc/{p}/environ", "rb").read()
            parent = int(open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        m = re.search(rb"NOMAD_ALLOC_ID=([0-9a-f-]{36})", env)
        if m and any(d in env for d in dirs):
            found[int(p)] = m[1].decode(), parent
    own = [(alloc, p) for p, (alloc, parent) in found.items() if found.get(parent, ("",))[0] != alloc]
    assert len(dict(own)) == len(own), f"two processes of one allocation: {found}"
    return dict(own)


def build(n_clients, server_text, text="", led=None):
    """Three servers, of which each is told one other, and clients, which are told one of them each; until all are ready. `text`:
    of the configuration of each; `led`: called when there is a leader."""
    for tool in ("ip", "nsenter", "unshare"):
        need(shutil.which(tool), tool, "not installed")
    hub = Place()
    hubs.append(hub)
    hub.ip("link", "add", "bridge", "type", "bridge")
    hub.ip("link", "set", "bridge", "up")
    for i in (1, 2, 3):
        servers.append(Member(hub, i, "server", text))
    for i, a in enumerate(servers):
        to = servers[(i + 1) % 3]
        with open(a.config, "a") as f:
            f.write(f'server {{\n  bootstrap_expect = 3\n  plain_rpc = true\n{server_text}'
                    f'  server_join {{\n    retry_join = ["{to.addr}:{to.serf}"]\n  }}\n}}\n')
        a.start()
    for i in range(n_clients):
        first = servers[i % 3]
        clients.append(Member(hub, 4 + i, "client", 'client {\n  network_interface = "eth0"\n}\n' + text, servers=[f"{first.addr}:{first.rpc}"]))
        clients[-1].start()
    servers[0].until(leader, "a leader", 30 * SLOW)
    if led is not None:
        led()

    def ready():
        n = stale(servers[0], "/v1/nodes")
        return n and len(n) == n_clients and all(x["Status"] == "ready" for x in n)
    servers[0].until(ready, f"{n_clients} ready nodes", 60 * SLOW)


def end():
    for a in clients + servers:
        a.end()
    for h in hubs:
        h.end()
