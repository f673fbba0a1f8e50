# SPDX-License-Identifier: Apache-2.0
"""A docker engine of a test's own: its directories, its sockets, a network and a mount namespace that go with it."""
import glob
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from paddock_test import need

BUSYBOX = "/bin/busybox"
TAKES_FD = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_FDS=\"1\", LISTEN_PID=str(os.getpid())); "
            "os.execv(sys.argv[2], sys.argv[2:])")


def busybox_root(where):
    """A root file system of this machine's static busybox."""
    root = f"{where}/root"
    os.makedirs(f"{root}/bin", exist_ok=True)
    if not os.path.exists(f"{root}/bin/busybox"):
        subprocess.run(["cp", BUSYBOX, f"{root}/bin/busybox"], check=True)
        for a in "sh cat dd df echo env grep hostname id kill ln ls mkdir nc printf rmdir seq sleep stty tail tar true tty httpd".split():
            os.symlink("busybox", f"{root}/bin/{a}")
    return root


def end_all(where):
    """What an engine that was killed has lost: processes whose command line has its directory, and those below them."""
    below, found = {}, []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            below.setdefault(open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[1], []).append(p)
            if where.encode() in open(f"/proc/{p}/cmdline", "rb").read():
                found.append(p)
        except OSError:
            pass  # it has gone
    while found:
        p = found.pop()
        found += below.get(p, [])
        try:
            os.kill(int(p), signal.SIGKILL)
        except ProcessLookupError:
            pass


class Docker:
    def __init__(self, *options, disk=None, held=False):
        self.disk = disk  # its images and containers are on one so small: "32m"
        self.options = " ".join(options)
        for program in ("/usr/sbin/dockerd", BUSYBOX):
            need(os.path.exists(program), "docker", f"there is no {program}: contrib/install-deps has it")
        self.dir = tempfile.mkdtemp(prefix="paddock-docker-", dir="/var/tmp")  # overlayfs wants a real file system
        self.socket, self.proc, self.served = f"{self.dir}/docker.sock", None, None
        self.cgroup = os.path.basename(self.dir)
        self.held = None
        if held:  # as systemd holds it: the socket is there before the engine, and after it
            self.held = socket.socket(socket.AF_UNIX)
            self.held.bind(self.socket)
            self.held.listen(64)

    def start(self):
        addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()
        own = "".join(f"ip addr add {a}/32 dev lo; " for a in addresses if ":" not in a)  # ports are bound to them
        small = f"mkdir -p {self.dir}/data && mount -t tmpfs -o size={self.disk} none {self.dir}/data && " if self.disk else ""
        begin, where = "/usr/sbin/dockerd", f"unix://{self.socket}"
        if self.held:
            begin, where = f"{sys.executable} -c '{TAKES_FD}' {self.held.fileno()} /usr/sbin/dockerd", "fd://"
        script = (f"ip link set lo up; {own}{small}exec {begin} -H {where} --data-root {self.dir}/data "
                  f"--exec-root {self.dir}/exec --pidfile {self.dir}/pid --bip 10.213.0.1/24 "
                  f"--cgroup-parent /{self.cgroup} {self.options}")
        self.proc = subprocess.Popen(["unshare", "-n", "-m", "--propagation", "private", "sh", "-c", script],
                                     stdout=open(f"{self.dir}/log", "ab"), stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=[self.held.fileno()] if self.held else [])
        end = time.monotonic() + 40
        while self.run("version", check=False).returncode != 0:
            log = open(f"{self.dir}/log", errors="replace").read().strip().splitlines()[-1:]
            need(self.proc.poll() is None and time.monotonic() < end, "docker", f"dockerd does not start here: {log}")
            time.sleep(0.05)
        return self

    def run(self, *args, check=True, **kw):
        env = dict(os.environ, DOCKER_HOST=f"unix://{self.socket}", DOCKER_CONFIG=self.dir)
        return subprocess.run(["/usr/bin/docker", *args], env=env, check=check, capture_output=True, timeout=60, **kw)

    def text(self, *args, **kw):
        return self.run(*args, **kw).stdout.decode().strip()

    def image(self, name, *labels):
        """From this machine's static busybox."""
        root = busybox_root(self.dir)
        tar = subprocess.run(["tar", "-C", root, "-c", "."], check=True, capture_output=True).stdout
        changes = [x for label in labels for x in ("--change", f"LABEL {label}")]
        self.run("import", *changes, "-", name, input=tar)

    def inside(self, *args, **kw):
        """A program in the engine's network."""
        return subprocess.Popen(["nsenter", "-t", str(self.proc.pid), "-n", *args], stdin=subprocess.DEVNULL,
                                start_new_session=True, **kw)

    def registry(self, user, password):
        """A registry with a password, at 127.0.0.1:5000 of the engine."""
        for program in ("/usr/bin/docker-registry", "/usr/bin/htpasswd"):
            need(os.path.exists(program), "docker", f"there is no {program}: contrib/install-deps has it")
        hashed = subprocess.run(["/usr/bin/htpasswd", "-Bbn", user, password], check=True, capture_output=True).stdout
        with open(f"{self.dir}/htpasswd", "wb") as f:
            f.write(hashed)
        with open(f"{self.dir}/registry.yml", "w") as f:
            f.write(f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {self.dir}/registry\n"
                    "http:\n  addr: 127.0.0.1:5000\n"
                    f"auth:\n  htpasswd:\n    realm: test\n    path: {self.dir}/htpasswd\n")
        self.served = self.inside("/usr/bin/docker-registry", "serve", f"{self.dir}/registry.yml",
                                  stdout=open(f"{self.dir}/registry.log", "ab"), stderr=subprocess.STDOUT)
        end = time.monotonic() + 20
        while self.run("login", "-u", user, "-p", password, "127.0.0.1:5000", check=False).returncode != 0:
            assert time.monotonic() < end, open(f"{self.dir}/registry.log", errors="replace").read()[-2000:]
            time.sleep(0.05)

    def kill(self):
        """dockerd and containerd by -9: what runs in containers goes on."""
        pids = [self.proc.pid] + self.children()
        for p in pids:
            try:
                os.kill(p, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.proc.wait()
        for f in glob.glob(f"{self.dir}/pid") + glob.glob(f"{self.dir}/exec/containerd/*.pid"):
            os.unlink(f)

    def children(self):
        out = open(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children").read().split()
        return [int(p) for p in out]

    def destroy(self):
        if self.served:
            self.served.kill()
            self.served.wait()
        if self.proc and self.proc.poll() is None:
            for c in self.text("ps", "-aq", check=False).split():
                self.run("rm", "-f", c, check=False)
            self.proc.terminate()
            try:
                self.proc.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        end_all(f"{self.dir}/")
        for base in glob.glob("/sys/fs/cgroup/*/") + ["/sys/fs/cgroup/"]:
            for where, _, _ in sorted(os.walk(base + self.cgroup), reverse=True):
                try:
                    os.rmdir(where)
                except OSError:
                    pass
        subprocess.run(["rm", "-rf", "--one-file-system", self.dir], check=False)
