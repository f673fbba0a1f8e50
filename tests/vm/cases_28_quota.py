# SPDX-License-Identifier: Apache-2.0
"""Limits on disk (A19): a whole data_dir on a file system with project quotas, where a task fills what
it may have, by bytes and by inodes, and hurts nobody."""
import ctypes
import os
import struct

from vm import *

DATA, IMAGE, SIZE = "/var/lib/paddock", "/var/tmp/quota.img", 16
MIB = 1 << 20


def quota(project):
    """Limit and use of bytes, limit and use of inodes: quotactl_fd(Q_GETQUOTA, PRJQUOTA)."""
    b = ctypes.create_string_buffer(72)
    fd = os.open(f"{DATA}/alloc", os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        r = libc.syscall(443, fd, ctypes.c_uint(0x800007 << 8 | 2), ctypes.c_int(project), b)
        assert r == 0, os.strerror(ctypes.get_errno())
    finally:
        os.close(fd)
    hard, _, space, ihard, _, inodes = struct.unpack_from("6Q", b)
    return hard << 10, space, ihard, inodes


def project(alloc):
    import fcntl
    fd = os.open(f"{DATA}/alloc/{alloc['ID']}", os.O_RDONLY)
    try:
        return struct.unpack_from("4I", fcntl.ioctl(fd, 0x801c581f, bytes(28)))[3]
    finally:
        os.close(fd)


def group(name, script, kind="service"):
    submit(name, script, kind=kind, disk=SIZE)


def out(alloc, text):
    return until(lambda: next((x for x in sh("paddock", "alloc", "logs", alloc["ID"], check=False).splitlines()
                               if text in x), None), f"\"{text}\" of the task")


def start():
    sh("systemctl", "start", "paddock")
    until(ready, "ready node")


def stop():
    sh("systemctl", "stop", "paddock", "paddock-warden", "paddock-tasks")


def fact():
    node = request("GET", "/v1/node/" + request("GET", "/v1/nodes")[0]["ID"])
    return node["Attributes"]["isolation.disk_quota"]


def fills_and_hurts_nobody():
    group("other", "while :; do dd if=/dev/zero of=/local/x bs=64k count=64 2>/dev/null && echo wrote || echo failed; "
          "sleep 1; done")
    other = allocs("other", "running")[0]
    out(other, "wrote")
    group("fills", "echo begin; dd if=/dev/zero of=/local/a bs=64k; dd if=/dev/zero of=/tmp/b bs=64k; "
          "dd if=/dev/zero of=/alloc/data/c bs=1k; echo never seen; exec sleep 1000000")
    fills = allocs("fills", "running")[0]
    one, two = project(fills), project(other)
    assert one != two and min(one, two) >= 0x70000000, (one, two)
    hard = quota(one)[0]
    assert hard == SIZE * MIB, hard
    until(lambda: quota(one)[1] > hard - 8192, "full project")
    used = quota(one)[1]
    print(f"# used {used} of {hard} bytes ({used / hard:.4f})")
    assert 0.99 < used / hard <= 1.0, used
    text = sh("paddock", "alloc", "logs", "-stderr", fills["ID"], check=False)
    print(f"# the task was told: {text.splitlines()[-1] if text else 'nothing, its log is full as well'}")
    # the agent's state is on the same file system, as is the other's directory
    group("after", "exec dd if=/dev/zero of=/local/x bs=1M count=4", kind="batch")
    allocs("after", "complete")
    before = sh("paddock", "alloc", "logs", other["ID"]).count("wrote")
    until(lambda: sh("paddock", "alloc", "logs", other["ID"]).count("wrote") > before, "another write")
    assert "failed" not in sh("paddock", "alloc", "logs", other["ID"])
    return fills, other, one, two


def a_restart_keeps_it(fills, other, one, two):
    sh("systemctl", "restart", "paddock-warden", "paddock")
    until(ready, "ready node")
    assert fact() == "true", fact()
    assert (project(fills), project(other)) == (one, two) and quota(one)[0] == SIZE * MIB
    group("third", "exec sleep 1000000")
    third = allocs("third", "running")[0]
    assert project(third) not in (one, two), project(third)
    purge("third")


def inodes_run_out():
    """And the exit status of a task whose log finds no room is known."""
    group("files", "i=0; while true >/local/$i; do i=$((i+1)); done 2>/dev/null; dd if=/dev/zero of=/local/0 bs=64k; "
          "dd if=/dev/zero bs=64k count=64 2>/dev/null; exit 7", kind="batch")
    files = allocs("files", "running")[0]
    project_id = project(files)
    most = quota(project_id)[2]
    until(lambda: quota(project_id)[3] == most, "as many files as there may be")
    print(f"# {most} inodes of {os.statvfs(DATA).f_files}: {most / os.statvfs(DATA).f_files:.4f}")
    failed = allocs("files", "failed")[0]
    assert terminated(failed)["Details"]["exit_code"] == "7", terminated(failed)
    purge("files")


def collected(number):
    """The servers forget what ended, and then the client removes its directories."""
    sh("paddock", "system", "gc")
    return quota(number) == (0, 0, 0, 0)


def disk_limits_hold_a_task():
    sh("modprobe", "loop")
    sh("modprobe", "quota_v2")
    stop()
    with open(IMAGE, "wb") as f:
        f.truncate(512 * MIB)
    sh("mkfs.ext4", "-q", "-O", "project,quota", "-E", "quotatype=prjquota", IMAGE)
    sh("mount", "-o", "loop,prjquota", IMAGE, DATA)
    try:
        start()
        assert fact() == "true", fact()
        fills, other, one, two = fills_and_hurts_nobody()
        a_restart_keeps_it(fills, other, one, two)
        inodes_run_out()
        for name in ("fills", "other", "after"):
            purge(name)
        until(lambda: collected(one) and collected(two), "projects without anything")
    finally:
        stop()
        sh("umount", DATA)
        os.remove(IMAGE)
        start()
    assert "prjquota" in fact(), fact()


CASES = {1: [disk_limits_hold_a_task]}
