# SPDX-License-Identifier: Apache-2.0
"""Files sealed by fs-verity: allocations on an ext4 with the feature, and what a root of the machine, another
task, or a wrong file can do about a task that asks for it."""
import errno
import fcntl
import functools
import hashlib
import os
import struct
import time

from vm import *

DATA, IMAGE, MIB = "/var/lib/paddock", "/var/tmp/verity.img", 1 << 20
BLOCK = 4096
MEASURE = 0xC0046686  # FS_IOC_MEASURE_VERITY
WAIT = "until [ -e /alloc/data/go ]; do sleep 0.2; done"
STAY = "echo good $0; while :; do sleep 1; done"
PROGRAM = "/bin/bash"  # more than 128 blocks: its tree has two levels


def digest(path):
    """By the book (fsverity.rst): hashes of zero-padded blocks, of blocks of these hashes, and so on; then that
    of the descriptor, which has the size and the root."""
    with open(path, "rb") as f:
        data = f.read()
    size, level = len(data), data
    while True:
        level = b"".join(hashlib.sha256(level[i:i + BLOCK].ljust(BLOCK, b"\0")).digest()
                         for i in range(0, len(level), BLOCK))
        if len(level) <= 32:
            break
    head = struct.pack("<BBBBIQ", 1, 1, 12, 0, 0, size) + level
    return "sha256:" + hashlib.sha256(head.ljust(256, b"\0")).hexdigest()


def measured(path):
    """The kernel's own number; None: not sealed."""
    b = bytearray(struct.pack("HH", 0, 64) + bytes(64))
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, MEASURE, b)
    except OSError as e:
        assert e.errno == errno.ENODATA, e
        return None
    finally:
        os.close(fd)
    return "sha256:" + bytes(b[4:36]).hex()


def cannot(error, call, *args):
    try:
        call(*args)
    except OSError as e:
        assert e.errno == error, e
        return
    raise AssertionError(f"root could {call} {args}")


class Job:
    """A task "t" (and others alike) that a task before it holds up, until files are where they shall be."""

    def __init__(self, name, verity, command, args=(), tasks=("t",), **isolation):
        self.name = name
        box = {"Verity": [{"Path": p, "Digest": d} for p, d in verity], **isolation}
        rows = [{"Name": n, "Driver": "exec", "Config": {"command": c, "args": a},
                 "Lifecycle": {"Hook": "prestart"} if n == "put" else None,
                 "Resources": {"CPU": 50, "MemoryMB": 32}, "LogConfig": {"MaxFiles": 1, "MaxFileSizeMB": 1},
                 "Isolation": None if n == "put" else box}
                for n, c, a in [("put", "/bin/sh", ["-c", WAIT])] + [(n, command, list(args)) for n in tasks]]
        group = {"Name": "g", "Count": 1, "RestartPolicy": {"Attempts": 0, "Mode": "fail"},
                 "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}, "EphemeralDisk": {"SizeMB": 10},
                 "Tasks": rows}
        request("PUT", "/v1/jobs", {"Job": {"ID": name, "Name": name, "Type": "service", "Datacenters": ["*"],
                                            "TaskGroups": [group]}})

    @functools.cached_property
    def id(self):
        return until(self.prepared, f"directory of {self.name}")

    @property
    def top(self):
        return f"{DATA}/alloc/{self.id}"

    def prepared(self):
        all_of = request("GET", f"/v1/job/{self.name}/allocations")
        return next((a["ID"] for a in all_of if a["TaskStates"] and
                     a["TaskStates"].get("put", {}).get("State") == "running"), None)

    def path(self, path):
        return f"{self.top}/{path}" if path.startswith("alloc/") else f"{self.top}/t/{path}"

    def plant(self, path, source=PROGRAM, text=None):
        with open(self.path(path), "wb") as f:
            f.write(text if text is not None else open(source, "rb").read())
            os.fchmod(f.fileno(), 0o755)
        return self.path(path)

    def plant_large(self, path, mib):
        with open(self.path(path), "wb") as f:
            f.truncate(mib * MIB)
        os.chmod(self.path(path), 0o644)
        return self.path(path)

    def state(self, task="t"):
        return (request("GET", f"/v1/allocation/{self.id}")["TaskStates"] or {}).get(task, {})

    def go(self):
        open(f"{self.top}/alloc/data/go", "w").close()
        return self

    def runs(self, text="good"):
        """What it says once it runs."""
        self.go()
        def said():
            assert self.state().get("State") != "dead", self.state()
            return next((x for x in sh("paddock", "alloc", "logs", self.id, "t", check=False).splitlines()
                         if text in x), None)
        return until(said, f"\"{text}\" of {self.name}")

    def refused(self, *texts):
        """Why it does not start. It has not run for a moment."""
        self.go()
        until(lambda: self.state().get("State") == "dead", f"end of {self.name}")
        events = self.state()["Events"]
        said = " ".join(e.get("DisplayMessage") or "" for e in events)
        print(f"# {self.name}: {said}")
        assert not any(e["Type"] == "Started" for e in events), events
        for text in texts:
            assert text in said, (text, said)
        assert not os.path.exists(f"{TASKS}/{self.id}/t"), "its cgroup stays"
        self.gone()

    def pid(self):
        return int(read(f"{TASKS}/{self.id}/t/task/cgroup.procs").split()[0])

    def gone(self):
        purge(self.name)


def collected(path):
    """The servers forget what ended, and then the client removes its directories."""
    sh("paddock", "system", "gc")
    return not os.path.exists(path)


def a_sealed_program_runs():
    want = digest(PROGRAM)
    j = Job("right", [("local/server", want), ("alloc/data/conf", "")], "local/server", ["-c", STAY])
    file, conf = j.plant("local/server"), j.plant("alloc/data/conf", text=b"x = 1\n")
    j.runs("good")
    assert measured(file) == want and measured(conf) == digest(conf), (measured(file), want)
    pid = until(j.pid, "process")
    st, exe = os.stat(file), os.stat(f"/proc/{pid}/exe")
    assert (st.st_dev, st.st_ino) == (exe.st_dev, exe.st_ino)
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"], os.listdir(f"/proc/{pid}/fd")
    print(f"# comm {read(f'/proc/{pid}/comm')}")
    for path, error in ((file, errno.ETXTBSY), (conf, errno.EPERM)):  # we are root
        cannot(error, open, path, "r+b")
        cannot(error, os.truncate, path, 0)
    # a task that starts once more finds what is sealed already
    sh("paddock", "alloc", "restart", j.id, "t")
    until(lambda: j.state().get("Restarts") == 1 and j.state()["State"] == "running", "restarted task")
    out = sh("paddock", "alloc", "exec", "-i=false", "-task", "t", j.id, "local/server", "-c", "echo joined")
    assert "joined" in out, out
    j.gone()
    until(lambda: collected(j.top), "removal of sealed files")


def a_wrong_file_does_not():
    other = digest("/bin/sh")
    j = Job("wrong", [("local/server", other)], "/local/server", ["-c", STAY])
    j.plant("local/server")
    j.refused('"local/server" is not the file that the job names', digest(PROGRAM))
    j = Job("second", [("local/server", ""), ("alloc/data/conf", other)], "/local/server", ["-c", STAY])
    j.plant("local/server")
    j.plant("alloc/data/conf", text=b"")
    j.refused('"alloc/data/conf" is not the file', digest(j.path("alloc/data/conf")))
    cannot(errno.EPERM, open, j.path("local/server"), "r+b")  # nobody executes it


def what_cannot_be_sealed_is_told():
    paths = {"host": "usr/bin/env", "dir": "local"}
    jobs = {n: Job(n, [(paths.get(n, "local/server"), "")], "local/server", ["-c", STAY],
                   **({"Seccomp": {"Deny": ["execveat"]}} if n == "denied" else {}))
            for n in ("busy", "missing", "dir", "link", "fifo", "host", "denied")}
    with open(jobs["busy"].plant("local/server"), "r+b"):
        jobs["busy"].refused('"local/server" is open for writing')
    os.symlink("/usr/bin/env", jobs["link"].path("local/server"))
    os.mkfifo(jobs["fifo"].path("local/server"))
    jobs["denied"].plant("local/server")
    texts = {"missing": '"local/server" does not exist', "dir": '"local" is a directory',
             "link": '"local/server" goes through a symbolic link', "fifo": '"local/server" is not a regular file',
             "host": '"usr/bin/env" is not in the directory', "denied": "seccomp must allow execveat"}
    for name in texts:
        jobs[name].go()
    for name, text in texts.items():
        jobs[name].refused(text)


def a_script_is_read_by_descriptor():
    text = b"#!/bin/sh\n" + STAY.encode() + b"\n"
    j = Job("script", [("local/run", "")], "run")
    j.plant("local/run", text=text)
    assert j.runs("good") == "good /dev/fd/3"
    j.gone()
    j = Job("nothing", [("local/run", "")], "run")
    j.plant("local/run", text=b"#!/no/such\n")
    j.refused("interpreter or loader that it names is missing")


def a_swap_changes_nothing():
    """Between the seal and the execve, while another file is hashed."""
    j = Job("swap", [("alloc/data/server", digest(PROGRAM)), ("alloc/data/large", "")], "/alloc/data/server", ["-c", STAY])
    file = j.plant("alloc/data/server")
    evil = j.plant("alloc/data/evil", text=b"#!/bin/sh\necho evil\n")
    large = j.plant_large("alloc/data/large", 192)
    j.go()
    while not measured(file):  # no until(): a moment counts
        pass
    os.rename(evil, file)
    assert measured(large) is None, "the second file was sealed before the first was swapped: make it larger"
    assert "good" in j.runs("good")
    assert measured(file) is None and os.stat(f"/proc/{j.pid()}/exe").st_size == os.stat(PROGRAM).st_size
    j.gone()
    until(lambda: collected(j.top), "removal of sealed files")


def two_tasks_seal_one_file():
    j = Job("twins", [("alloc/data/large", "")], "/bin/sh", ["-c", STAY], tasks=("t", "u", "v"))
    large = j.plant_large("alloc/data/large", 64)
    j.go()
    for task in ("t", "u", "v"):
        until(lambda: j.state(task).get("State") == "running", f"running task {task}")
    assert measured(large) == digest(large)
    j.gone()


def hashes_are_within_the_limit_on_disk():
    """A file that takes no room itself: its hashes are more than the allocation may have."""
    j = Job("sparse", [("alloc/data/large", "")], "/bin/true")
    large = j.plant_large("alloc/data/large", 192)  # 1.5 MiB of hashes
    j.plant("alloc/data/filler", text=bytes(9 * MIB))
    j.refused('"alloc/data/large" cannot be sealed: there is no room for its hashes')
    assert measured(large) is None and os.stat(large).st_blocks == 0, os.stat(large)


def a_job_stops_while_it_is_sealed():
    j = Job("stops", [("alloc/data/huge", "")], "/bin/true")
    huge = j.plant_large("alloc/data/huge", 16384)  # an hour of this machine
    j.go()
    cgroup = f"{TASKS}/{j.id}/t/shim"
    until(lambda: os.path.exists(cgroup) and int(flat(f"{cgroup}/cpu.stat", "usage_usec")) > 2000000, "hashing shim")
    assert measured(huge) is None
    j.gone()
    until(lambda: not os.path.exists(cgroup), "end of the shim")
    until(lambda: collected(j.top), "removal")


def fact():
    node = request("GET", "/v1/node/" + request("GET", "/v1/nodes")[0]["ID"])
    return node["Attributes"]["isolation.verity"]


def start():
    sh("systemctl", "start", "paddock")
    until(ready, "ready node")


def stop():
    sh("systemctl", "stop", "paddock", "paddock-warden", "paddock-tasks")


def sealed_files_stay_what_they_are():
    assert "no fs-verity" in fact(), fact()
    submit("without", "true", kind="batch", isolation={"Verity": [{"Path": "local/x"}]})
    events = allocs("without", "failed")[0]["TaskStates"]["t"]["Events"]
    assert any("tune2fs -O verity" in (e.get("DisplayMessage") or "") for e in events), events
    purge("without")
    sh("modprobe", "loop")
    sh("modprobe", "quota_v2")
    stop()
    with open(IMAGE, "wb") as f:
        f.truncate(512 * MIB)
    sh("mkfs.ext4", "-q", "-b", str(BLOCK), "-O", "verity,project,quota", "-E", "quotatype=prjquota", IMAGE)
    sh("mount", "-o", "loop,prjquota", IMAGE, DATA)
    try:
        start()
        assert fact() == "true", fact()
        for part in (a_sealed_program_runs, a_wrong_file_does_not, what_cannot_be_sealed_is_told,
                     a_script_is_read_by_descriptor, a_swap_changes_nothing, two_tasks_seal_one_file,
                     hashes_are_within_the_limit_on_disk, a_job_stops_while_it_is_sealed):
            begin = time.monotonic()
            part()
            print(f"# {part.__name__} ({time.monotonic() - begin:.0f} s)")
    finally:
        stop()
        sh("umount", DATA)
        os.remove(IMAGE)
        start()


CASES = {1: [sealed_files_stay_what_they_are]}
