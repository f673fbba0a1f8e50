# SPDX-License-Identifier: Apache-2.0
"""Machines that boot: systemd of a root with the package as process 1 of namespaces of its own, on this kernel. What a
machine writes is a layer above the root and stays over its reboots; its network is a namespace with one address on a bridge
of the namespace that the test runs in. Of cgroup v2 it has what this machine's has (often no controller but the tree itself),
its boot id is another one each time. Standard library only.
"""
import os
import signal
import socket
import subprocess
import time
import uuid

from kills import Node, cgroup_mount
from paddock_test import children

BRIDGE, NETWORK = "pdbooted", "10.77.0"
ENGINE = ("docker.service", "docker.socket", "containerd.service")
MASKED = ("console-getty.service", "getty.target", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
          "fstrim.timer", "systemd-timesyncd.service", "systemd-resolved.service")
# Of the first process in the namespaces, before it becomes systemd.
INIT = """set -e
mount --make-rprivate /
mount -t overlay overlay -o lowerdir="$1",upperdir="$2/up",workdir="$2/work" "$2/root"
cd "$2/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for n in null zero full random urandom tty; do touch dev/$n; mount --bind /dev/$n dev/$n; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount --bind "$2/boot_id" proc/sys/kernel/random/boot_id
hostname "$3"
pivot_root . mnt
cd /
umount -l /mnt
exec env -i container=paddock PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=0
"""


def ip(*args):
    subprocess.run(["ip", *args], check=True)


class Booted(Node):
    """One with this name, of `number` in the fleet. What it says of agent and warden is what systemd has."""

    def __init__(self, root, name, number, config, engine=False):
        super().__init__(mode="server", name=name)
        self.name, self.root, self.host, self.http, self.rpc, self.serf = name, root, f"{NETWORK}.{number}", 4646, 4647, 4648
        self.up = f"{self.dir}/up"
        self.cgroup = f"{cgroup_mount()}/booted-{os.path.basename(self.dir)}"
        for d in ("work", "root", "up/etc/paddock.d", "up/etc/systemd/system", "up/var/log/journal"):
            os.makedirs(f"{self.dir}/{d}")
        for unit in MASKED + (() if engine else ENGINE):
            os.symlink("/dev/null", f"{self.up}/etc/systemd/system/{unit}")
        self.config = f"{self.up}/etc/paddock.d/fleet.hcl"
        with open(self.config, "w") as f:
            f.write(f'name       = "{name}"\ndata_dir   = "/var/lib/paddock"\nbind_addr  = "{self.host}"\n{config}')
        self.enabled = False
        self.net = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "-n", "sleep", "infinity"], stdout=subprocess.DEVNULL)
        if BRIDGE not in {name for _, name in socket.if_nameindex()}:
            ip("link", "add", BRIDGE, "type", "bridge")
            ip("addr", "add", f"{NETWORK}.254/24", "dev", BRIDGE)
            ip("link", "set", BRIDGE, "up")
        here = os.readlink("/proc/self/ns/net")
        self.until(lambda: os.readlink(f"/proc/{self.net.pid}/ns/net") != here, "a network")
        ip("link", "add", f"pd{number}", "type", "veth", "peer", "name", "eth0", "netns", str(self.net.pid))
        ip("link", "set", f"pd{number}", "master", BRIDGE, "up")
        for words in (["link", "set", "lo", "up"], ["addr", "add", f"{self.host}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
            subprocess.run(["nsenter", f"--net=/proc/{self.net.pid}/ns/net", "ip", *words], check=True)

    @property
    def alloc_dir(self):
        """As the machine sees it: what is made in the layer alone, it may not find."""
        return f"/proc/{(children(self.proc.pid) or [0])[0]}/root/var/lib/paddock/alloc"

    @alloc_dir.setter
    def alloc_dir(self, value):
        pass  # that of a node which does not boot

    def inside(self, *command, check=True):
        """Runs a command there; returns what it says."""
        (pid1,) = children(self.proc.pid)
        p = subprocess.run(["nsenter", "-t", str(pid1), "-m", "-p", "-n", "-i", "-u", "-C", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, check=False, timeout=300)
        assert not check or p.returncode == 0, (command, p.returncode, p.stdout)
        return p.stdout

    def boot(self):
        with open(f"{self.dir}/boot_id", "w") as f:
            f.write(f"{uuid.uuid4()}\n")
        os.makedirs(self.cgroup, exist_ok=True)
        self.proc = self.spawn("sh", "-c", 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"', "booted", self.cgroup, "nsenter", f"--net=/proc/{self.net.pid}/ns/net",
                               "unshare", "--pid", "--mount", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child", "sh", "-c", INIT, "init", self.root,
                               self.dir, self.name)

    def has_booted(self):
        assert self.proc.poll() is None, f"the machine ended by {self.proc.returncode}: {self.dir}/agent.log"
        return children(self.proc.pid) and self.inside("systemctl", "is-system-running", check=False).strip() in ("running", "degraded")

    def start(self, wait=True):
        self.boot()
        if not self.enabled:
            self.until(self.has_booted, "a booted machine")
            self.inside("systemctl", "enable", "--now", "paddock")
            self.enabled = True
        if wait:
            self.wait_ready()
        return self

    def machine_ends(self, told, at_once=()):
        """By `systemctl reboot`; not `told`: by the end of its process 1, with which the kernel ends all others."""
        (pid1,) = children(self.proc.pid)
        if told:
            self.inside("systemctl", "reboot", check=False)  # the answer may not come
        else:
            os.kill(pid1, signal.SIGKILL)
        status = self.proc.wait(180)
        assert (status == -signal.SIGHUP) == told, f"the machine ended by {status}"  # reboot(2) has it of a pid namespace
        self.until(lambda: not self.processes(), "an empty machine")
        self.remove_cgroups()

    def payloads(self):
        """{(allocation, task): [one of its processes]}"""
        found = {}
        for at, _, _ in os.walk(self.cgroup):
            parts = at.split("/")
            if parts[-1] == "task" and len(parts[-3]) == 36:
                try:
                    with open(f"{at}/cgroup.procs") as f:
                        pids = f.read().split()
                except OSError:  # it went meanwhile
                    continue
                if pids:
                    found[parts[-3], parts[-2]] = pids[:1]
        return found

    def tail(self, n=30):
        alive = self.proc.poll() is None and children(self.proc.pid)
        return self.inside("journalctl", "--no-pager", "-q", "-n", str(n), check=False) if alive else super().tail(n)

    def stop(self):
        if self.proc and self.proc.poll() is None:
            for pid1 in children(self.proc.pid):
                os.kill(pid1, signal.SIGKILL)
            self.proc.wait(60)
            self.until(lambda: not self.processes(), "an empty machine")
        if self.net.poll() is None:
            self.net.kill()
            self.net.wait()

    def remove_cgroups(self):
        end = time.monotonic() + 10
        while os.path.isdir(self.cgroup):  # the kernel lets go of a namespace a moment after its processes
            try:
                super().remove_cgroups()
            except OSError:
                assert time.monotonic() < end, f"{self.cgroup} stays"
                time.sleep(0.05)

    def __exit__(self, kind, *_):
        print(f"# kept: {self.dir}")
        self.stop()
        self.remove_cgroups()
