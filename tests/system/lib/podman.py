# SPDX-License-Identifier: Apache-2.0
"""A podman service of a test's own: its directories, its socket, a network and a mount namespace that go with it."""
import glob
import os
import signal
import subprocess
import tempfile
import time

from docker import BUSYBOX, busybox_root, end_all
from paddock_test import need

# Debian 12's podman asks for more open files than a container of a CI runner may have.
CONF = """[containers]
default_ulimits = []
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


class Podman:
    def __init__(self):
        for program in ("/usr/bin/podman", "/usr/bin/conmon", BUSYBOX):
            need(os.path.exists(program), "podman", f"there is no {program}: contrib/install-deps has it")
        self.dir = tempfile.mkdtemp(prefix="paddock-podman-", dir="/var/tmp")  # overlayfs wants a real file system
        self.socket, self.proc = f"{self.dir}/podman.sock", None
        self.env = dict(os.environ, CONTAINERS_CONF=f"{self.dir}/containers.conf", CONTAINERS_REGISTRIES_CONF=f"{self.dir}/registries.conf")
        with open(f"{self.dir}/containers.conf", "w") as f:
            f.write(CONF)
        with open(f"{self.dir}/registries.conf", "w") as f:
            f.write('unqualified-search-registries = ["docker.io"]\n')

    def start(self):
        runtime = "crun" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "runc"
        addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()
        own = "".join(f"ip addr add {a}/32 dev lo; " for a in addresses if ":" not in a)  # ports are bound to them
        script = (f"ip link set lo up; {own}exec /usr/bin/podman --root {self.dir}/root --runroot {self.dir}/run --tmpdir {self.dir}/tmp "
                  f"--runtime {runtime} system service --time=0 unix://{self.socket}")
        self.proc = subprocess.Popen(["unshare", "-n", "-m", "--propagation", "private", "sh", "-c", script], env=self.env,
                                     stdout=open(f"{self.dir}/log", "ab"), stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + 40
        while self.run("version", check=False).returncode != 0:
            log = open(f"{self.dir}/log", errors="replace").read().strip().splitlines()[-1:]
            need(self.proc.poll() is None and time.monotonic() < end, "podman", f"podman does not start here: {log}")
            time.sleep(0.05)
        return self

    def run(self, *args, check=True, **kw):
        return subprocess.run(["/usr/bin/podman", "--remote", "--url", f"unix://{self.socket}", *args], env=self.env, check=check,
                              capture_output=True, timeout=60, **kw)

    def text(self, *args, **kw):
        return self.run(*args, **kw).stdout.decode().strip()

    def image(self, name):
        """From this machine's static busybox."""
        tar = f"{self.dir}/image.tar"
        subprocess.run(["tar", "-C", busybox_root(f"{self.dir}/image"), "-cf", tar, "."], check=True, capture_output=True)
        self.run("import", tar, f"docker.io/library/{name}")

    def kill(self):
        """The service by -9: containers and who minds them go on."""
        self.proc.kill()
        self.proc.wait()

    def destroy(self):
        if self.proc and self.proc.poll() is None:
            self.run("rm", "-af", "-t", "0", check=False)
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        end_all(f"{self.dir}/")
        for base in glob.glob("/sys/fs/cgroup/*/") + ["/sys/fs/cgroup/"]:
            for where, _, _ in sorted(os.walk(base + "libpod_parent"), reverse=True):
                try:
                    os.rmdir(where)
                except OSError:
                    pass  # somebody else's
        subprocess.run(["umount", "-q", f"{self.dir}/root/overlay"], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--one-file-system", self.dir], check=False)
