# SPDX-License-Identifier: Apache-2.0
"""The harness of the system tests: real agents in directories and on ports of their own, driven by the
command line and the HTTP API as a user would, TAP on standard output. Standard library only.

Waiting is by blocking queries and process ends, never by sleeping for a guess.
"""
import atexit
import base64
import hashlib
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

TOP_BUILD = os.environ.get("top_builddir", os.getcwd())
TOP_SRC = os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
PADDOCK = os.path.join(TOP_BUILD, "paddock")
SANITIZED = any(w in open(PADDOCK, "rb").read() for w in (b"__asan_init", b"__tsan_init"))
EXAMPLES = os.path.join(TOP_SRC, "contrib", "examples")
DEADLINE_S = 60 * int(os.environ.get("PADDOCK_TEST_SLOW", "1"))


# Logs of all agents of this program, open: what a crashed one said is told when its directory is gone.
agent_logs = {}


def open_log(path):
    """The file that an agent is to write to."""
    f = open(path, "ab")
    if path not in agent_logs:
        agent_logs[path] = open(path, errors="replace")
    return f


def crashes():
    """The lines of agents that crashed, by which build-aux/try-again knows."""
    for f in agent_logs.values():
        f.seek(0)
        yield from (line.rstrip() for line in f
                    if re.search("paddock: (bug: |out of memory)|Sanitizer|: runtime error: ", line))


class Skip(Exception):
    """A need that this machine does not meet: 'need: why'."""


def need(cond, what, why):
    if not cond:
        raise Skip(f"{what}: {why}")


PORTS = range(10000, 20000)  # below the kernel's ports for outgoing connections, and those that jobs are given
next_port = os.getpid() * 61 % len(PORTS)


def free_port():
    """A port of 127.0.0.1 that nobody listens at, by TCP or UDP; never the same twice in a process, so that the
    port of an agent that stands still is not another's."""
    global next_port
    for _ in PORTS:
        port = PORTS[next_port % len(PORTS)]
        next_port += 1
        try:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_INET, kind) as s:
                    s.bind(("127.0.0.1", port))
        except OSError:
            continue
        return port
    raise AssertionError("no free port")


def children(pid):
    try:
        return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []


def cmdline(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")[:-1]
    except OSError:
        return []


def named_child(pid, name):
    """The child of pid that the kernel knows by this name (its command line is its parent's), or None."""
    for p in children(pid):
        try:
            with open(f"/proc/{p}/comm") as f:
                if f.read().strip() == name:
                    return p
        except OSError:
            pass
    return None


def start_time(pid):
    """Start time in ticks: with the pid, the identity of a process."""
    try:
        return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[19])
    except OSError:
        return None


def unmount_below(path):
    """Memory of secrets is mounted in an allocation's directory for as long as that is there."""
    for line in reversed(open("/proc/self/mounts").read().splitlines()):
        if (at := line.split()[1]).startswith(path + "/"):
            subprocess.run(["umount", "-l", at], check=False)


class WebSocket:
    """A client of RFC 6455, over a blocking socket; what it sends may be as wrong as a test wants."""

    def __init__(self, port, path, headers=()):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", *headers, "", ""]
        self.sock.sendall("\r\n".join(lines).encode())
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().strip()):
            k, v = line.decode().split(":", 1)
            self.headers[k.lower()] = v.strip()
        if self.status == 101:
            want = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            assert self.headers["sec-websocket-accept"] == base64.b64encode(want).decode(), self.headers
        else:
            self.body = self.file.read(int(self.headers.get("content-length", 0)))
            self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def frame(self, op, data=b"", fin=True):
        mask, n = os.urandom(4), len(data)
        head = bytes([(0x80 if fin else 0) | op])
        head += bytes([0x80 | n]) if n < 126 else struct.pack(">BH" if n < 65536 else ">BQ",
                                                              0x80 | (126 if n < 65536 else 127), n)
        key = (mask * (n // 4 + 1))[:n]
        return head + mask + (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(n, "big")

    def send(self, obj):
        self.sock.sendall(self.frame(1, json.dumps(obj).encode()))

    def receive(self):
        """(opcode, payload) of the next frame; None at the end."""
        head = self.file.read(2)
        if len(head) < 2:
            return None
        n = head[1]
        assert n < 128, "a server's frame is masked"
        if n >= 126:
            n = int.from_bytes(self.file.read(2 if n == 126 else 8), "big")
        return head[0] & 15, self.file.read(n)

    def messages(self):
        """Every JSON message up to the end; self.code and self.reason are those of the close frame."""
        self.code = self.reason = None
        while (f := self.receive()):
            if f[0] == 8:
                self.code, self.reason = int.from_bytes(f[1][:2], "big"), f[1][2:].decode()
                return
            if f[0] == 1:
                yield json.loads(f[1])


pki = None


def rpc_over_tls(mode, config):
    """With PADDOCK_TEST_TLS=1: the block by which an agent's RPC, Raft and gossip's TCP are mutual TLS, with roles checked, so
    that any test of a cluster runs over it. The certificates are of one CA, made when the first is asked for."""
    global pki
    if os.environ.get("PADDOCK_TEST_TLS") != "1":
        return ""

    def make(*args):
        subprocess.run([os.path.abspath(PADDOCK), "tls", *args], cwd=pki, capture_output=True, check=True)

    if pki is None:
        pki = tempfile.mkdtemp(prefix="paddock-pki-")
        atexit.register(shutil.rmtree, pki, True)
        make("ca", "create")
    hit = re.search(r'^ *region *= *"(\w+)"', config, re.M)
    region, kind = hit[1] if hit else "global", "client" if mode == "client" else "server"
    if not os.path.exists(f"{pki}/{region}-{kind}-nomad.pem"):
        make("cert", "create", f"-{kind}", f"-region={region}")
    return f"""tls {{
  rpc = true
  verify_server_hostname = true
  ca_file = "{pki}/nomad-agent-ca.pem"
  cert_file = "{pki}/{region}-{kind}-nomad.pem"
  key_file = "{pki}/{region}-{kind}-nomad-key.pem"
}}
"""


class Agent:
    """One `paddock agent`: as root the supervisor with warden and agent below it."""
    host = "127.0.0.1"
    token = None  # of requests that name none

    def __init__(self, config="", log="DEBUG", dev=False, mode="both", servers=None, name="test"):
        self.dir = tempfile.mkdtemp(prefix="paddock-sys-")
        os.chmod(self.dir, 0o755)
        self.http, self.rpc, self.serf = free_port(), free_port(), free_port()
        self.seen = set()
        self.dev, self.proc, self.log = dev, None, os.path.join(self.dir, "agent.log")
        data = os.path.join(self.dir, "data")
        text = f"""
name       = "{name}"
data_dir   = "{data}"
bind_addr  = "127.0.0.1"
log_level  = "{log}"
ports {{
  http = {self.http}
  rpc  = {self.rpc}
  serf = {self.serf}
}}
advertise {{
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}}
"""
        text += f'isolation {{\n  run_dir = "{self.dir}/run"\n}}\n'
        if mode in ("both", "server"):
            text += "server {\n  enabled = true\n  bootstrap_expect = 1\n}\n"
        if mode in ("both", "client"):
            to = servers or [f"127.0.0.1:{self.rpc}"]
            text += "client {\n  enabled = true\n  servers = [" + ", ".join(f'"{s}"' for s in to) + "]\n}\n"
            text += 'plugin "raw_exec" {\n  config {\n    enabled = true\n  }\n}\n'
        self.config = os.path.join(self.dir, "paddock.hcl")
        with open(self.config, "w") as f:
            f.write(text + config + rpc_over_tls(mode, config))
        self.client = mode != "server"

    def start(self, wait=True):
        args = [PADDOCK, "agent", "-config", self.config] + (["-dev"] if self.dev else [])
        self.proc = subprocess.Popen(args, stdout=open_log(self.log), stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True)
        if wait:
            self.wait_ready()
        return self

    def tail(self, n=30):
        try:
            return "".join([x for x in open(self.log, errors="replace") if "http: request answered" not in x][-n:])
        except OSError:
            return ""

    def wait_ready(self):
        def ready():
            if self.proc.poll() is not None:
                raise AssertionError(f"the agent ended with {self.proc.returncode}:\n{self.tail()}")
            try:
                if not self.client:
                    return self.get("/v1/status/leader")
                return any(n["Status"] == "ready" for n in self.get("/v1/nodes"))
            except (OSError, http.client.HTTPException, AssertionError):
                return False
        self.until(ready, "a ready agent")

    def until(self, cond, what, deadline=None):
        """Waits for a condition that has no blocking query of its own. A file or process that goes while the condition
        looks at it is looked for again."""
        end = time.monotonic() + (deadline or DEADLINE_S)
        while True:
            gone = ""
            try:
                value = cond()
            except (FileNotFoundError, ProcessLookupError) as e:
                value, gone = None, f" ({e})"
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"no {what} in time{gone}; the agent's log ends:\n{self.tail()}")
            time.sleep(0.02)

    def request(self, method, path, body=None, timeout=70, token=None):
        c = http.client.HTTPConnection(self.host, self.http, timeout=timeout)
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            token = token if token is not None else self.token
            c.request(method, path, body=body, headers={"X-Nomad-Token": token} if token else {})
            r = c.getresponse()
            return r.status, dict(r.getheaders()), r.read()
        finally:
            c.close()

    def get(self, path):
        status, _, data = self.request("GET", path)
        assert status == 200, f"GET {path}: {status} {data[:300]!r}"
        return json.loads(data)

    def blocking(self, path, cond, what):
        """Follows a blocking query until cond(answer) is true; returns its value."""
        index, end = 0, time.monotonic() + DEADLINE_S
        while True:
            sep = "&" if "?" in path else "?"
            status, headers, data = self.request("GET", f"{path}{sep}index={index}&wait=5s")
            answer = json.loads(data) if status == 200 else None
            value = cond(answer) if answer is not None else None
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not in time; last answer {status} {data[:2000]!r}\n{self.tail()}")
            low = {k.lower(): v for k, v in headers.items()}
            index = int(low.get("x-nomad-index", "0"))

    def cli(self, *args, check=0, **kw):
        env = dict(os.environ, NOMAD_ADDR=f"http://127.0.0.1:{self.http}")
        p = subprocess.run([PADDOCK, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, errors="replace", timeout=DEADLINE_S + 30, **kw)
        if check is not None:
            assert p.returncode == check, f"paddock {' '.join(args)}: exit {p.returncode}, want {check}:\n{p.stdout}"
        return p.stdout

    def run(self, example, *args, check=0):
        path = example if os.path.isabs(example) else os.path.join(EXAMPLES, example)
        return self.cli("job", "run", *args, path, check=check)

    def allocs(self, job, status="running", count=1):
        """Waits until `count` allocations of the job have the client status; returns them."""
        def cond(allocs):
            hit = [a for a in allocs if a["ClientStatus"] == status and
                   (status != "running" or a["DesiredStatus"] == "run")]
            return hit if len(hit) == count else None
        try:
            return self.blocking(f"/v1/job/{job}/allocations", cond, f"{count} {status} allocations of {job}")
        except AssertionError as e:  # what became of them is told first: of a long reason only its begin is shown
            became = [(a["ID"][:8], a["DesiredStatus"], a["ClientStatus"],
                       {t: [f"{x['Type']}: {x['DisplayMessage']}" for x in s["Events"]] for t, s in (a["TaskStates"] or {}).items()})
                      for a in self.get(f"/v1/job/{job}/allocations")]
            raise AssertionError(f"{became}, for {e}") from None

    def daemons(self):
        """pids below the supervisor by role: agent, warden."""
        roles = {}
        for pid in children(self.proc.pid):
            words = cmdline(pid)
            if not words:
                continue
            base = os.path.basename(words[0].decode(errors="replace"))
            if base.startswith("paddock-warden"):
                roles["warden"] = pid
            elif b"agent" in words[1:]:
                roles["agent"] = pid
        return roles

    def task_pids(self, marker):
        """{pid: start time} of this agent's processes whose command line holds marker: their cgroup
        names one of its allocations, so tasks of other agents on the machine do not count."""
        try:
            self.seen |= {a["ID"] for a in self.get("/v1/allocations")}
        except (OSError, http.client.HTTPException, AssertionError):
            pass  # the agent is down: what it had is known
        found = {}
        for p in filter(str.isdigit, os.listdir("/proc")):
            if not any(marker.encode() in w for w in cmdline(p)):
                continue
            try:
                where = open(f"/proc/{p}/cgroup").read()
            except OSError:
                continue
            if any(i in where for i in self.seen):
                found[int(p)] = start_time(p)
        return found

    def tasks(self, marker, count):
        """As task_pids, once there are `count`: what runs has its command line a moment after it runs."""
        return self.until(lambda: len(p := self.task_pids(marker)) == count and p, f"{count} processes of {marker}")

    def kill_all(self):
        """The supervisor and both daemons, by -9; tasks are left."""
        pids = [self.proc.pid] + list(self.daemons().values())
        for p in pids:
            try:
                os.kill(p, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.proc.wait()
        self.until(lambda: not any(start_time(p) is not None and cmdline(p) for p in pids), "end of the daemons")

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(30)
            except subprocess.TimeoutExpired:
                self.kill_all()
                raise AssertionError(f"the agent did not end within 30 s of TERM:\n{self.tail()}") from None

    def destroy(self):
        """Stops every job and the agent, then removes the directory."""
        try:
            if self.proc and self.proc.poll() is None and not self.dev:
                for j in self.get("/v1/jobs"):
                    self.request("DELETE", f"/v1/job/{urllib.parse.quote(j['ID'])}?purge=true")
                if self.client:
                    self.until(lambda: all(a["ClientStatus"] not in ("running", "pending")
                                           for a in self.get("/v1/allocations")), "end of all tasks")
        finally:
            self.stop()
            unmount_below(self.dir)
            shutil.rmtree(self.dir, ignore_errors=True)


def main(*tests, needs_root=True):
    """Runs the functions as TAP."""
    if needs_root:
        why = None if os.geteuid() == 0 else "not running as root"
        try:
            pwd.getpwnam("paddock")
        except KeyError:
            why = why or "no user 'paddock': contrib/quickstart and contrib/check make it"
        if why:
            print(f"1..{len(tests)}")
            for i, t in enumerate(tests, 1):
                print(f"ok {i} - {t.__name__} # SKIP root: {why}")
            return
    print(f"1..{len(tests)}", flush=True)
    bad = 0
    for i, t in enumerate(tests, 1):
        begin = time.monotonic()
        try:
            t()
            print(f"ok {i} - {t.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Skip as s:
            print(f"ok {i} - {t.__name__} # SKIP {s}", flush=True)
        except BaseException:  # noqa: a failed test must not take the others along
            bad += 1
            print("\n".join("# " + x for x in [*traceback.format_exc().splitlines(), *crashes()]))
            print(f"not ok {i} - {t.__name__}", flush=True)
    sys.exit(bad > 0)
