# SPDX-License-Identifier: Apache-2.0
"""A package of Debian's: installed, at work, upgraded below running tasks, removed, purged. In this order."""
import os
import re

from vm import *

HCL = "/etc/paddock.d/paddock.hcl"
# what a package leaves anywhere: records of dpkg and apt, logs, caches, copies of the user's line, the user itself
KEPT = re.compile(r"/(var/(log|cache|tmp|lib/(apt|dpkg|systemd|dbus|private)|backups)|run|tmp|root|dev|proc|sys|mnt)(/|$)"
                  r"|/etc/(passwd|group|shadow|gshadow)-?$|.*/__pycache__(/|$)")
before_it = set()


def files():
    return {p for p in sh("find", "/", "-xdev", "-print", check=False).splitlines() if not KEPT.match(p)}


def processes():
    return [x for x in sh("ps", "-eo", "pid,args").splitlines() if re.search(r"paddock(-|$| )", x) and "vm_tests" not in x]


def typed(begin, end=None):
    """Types what README.md prints from one command up to another, as root."""
    block = next(b for b in read("/mnt/package/README.md").split("```sh\n") if b.startswith("sudo apt install ./paddock"))
    text = block.split("```")[0]
    text = text[text.index(begin):text.index(end) if end else None]
    return sh("sh", "-ec", 'cd /run/typed; sudo() { "$@"; }\n' + text)


def the_package_starts_nothing():
    before_it.update(files())
    os.makedirs("/run/typed")
    os.symlink("/mnt/package/1.deb", "/run/typed/paddock_0.1.0-1_amd64.deb")
    typed("sudo apt install", "printf")
    for unit in UNITS + ["paddock-hand", "paddock-policy"]:
        assert show(unit, "ActiveState") == "inactive" and show(unit, "LoadState") == "loaded", unit
        assert sh("systemctl", "is-enabled", unit, check=False).strip() in ("disabled", "static"), unit
    assert not [x for x in read(HCL).splitlines() if x and not x.startswith("#")], "it says something"
    owner = os.stat("/var/lib/paddock/client")
    assert owner.st_uid == int(sh("id", "-u", "paddock")) and owner.st_mode & 0o777 == 0o700, owner
    assert not processes(), processes()


def three_commands_make_a_client():
    typed("printf")
    assert show("paddock", "ActiveState") == "active"
    assert not request("GET", "/v1/agent/self")["config"]["Server"]["Enabled"]
    sh("systemctl", "stop", *UNITS)
    os.remove("/etc/paddock.d/node.hcl")


def a_configuration_and_one_command_make_a_node():
    """The second sample of the file that came with it, by taking its comment signs away."""
    text = open(HCL).read()
    head, sample = text.split("for itself alone.\n#\n")
    with open(HCL, "w") as f:
        f.write(head + "for itself alone.\n" + re.sub(r"^#", "", sample, flags=re.M))
    sh("systemctl", "enable", "--now", "paddock")
    until(ready, "ready node")
    submit("stays", "exec sleep 1000000", count=2)
    allocs("stays", "running", 2)


def an_upgrade_leaves_the_tasks_alone():
    def all_pids():
        return {a["ID"]: [(p, start_time(p)) for p in pids(a)] for a in allocs("stays", "running", 2)}
    tasks, main = all_pids(), {u: show(u, "MainPID") for u in UNITS}
    assert all(tasks.values()), tasks
    said = sh("dpkg", "-i", "/mnt/package/2.deb")
    assert "configuration file" not in said, said  # the operator's is kept without a question
    until(ready, "ready node")
    after = {u: show(u, "MainPID") for u in UNITS}
    assert after["paddock-tasks"] == main["paddock-tasks"], "the holder was started again"
    assert after["paddock"] != main["paddock"] and after["paddock-warden"] != main["paddock-warden"], (main, after)
    assert all_pids() == tasks, "not the same processes"
    alloc = allocs("stays", "running", 2)[0]
    assert sh("paddock", "alloc", "exec", alloc["ID"], "echo", "here").strip() == "here"


def a_removal_ends_all_and_keeps_the_data():
    tasks = [p for a in allocs("stays", "running", 2) for p in pids(a)]
    sh("dpkg", "-r", "paddock")
    assert not [p for p in tasks if os.path.exists(f"/proc/{p}")], "a task runs on"
    assert not processes(), processes()
    assert not os.path.exists(TASKS), "the cgroup of the tasks is left"
    assert show("paddock", "LoadState") == "not-found" and "paddock" not in sh("systemctl", "--failed", "--plain")
    assert os.path.exists(HCL) and os.listdir("/var/lib/paddock/client"), "configuration and data are gone"


def installed_again_it_goes_on():
    sh("dpkg", "-i", "/mnt/package/2.deb")
    assert show("paddock", "ActiveState") == "inactive"
    sh("systemctl", "start", "paddock")
    until(ready, "ready node")
    allocs("stays", "running", 2)


def a_purge_leaves_the_user_alone():
    sh("dpkg", "-P", "paddock")
    assert not processes(), processes()
    mounts = [x for x in read("/proc/self/mounts").splitlines() if "paddock" in x]
    assert not mounts, mounts
    assert not os.path.exists("/run/paddock") and not os.path.exists("/var/lib/paddock")
    links = [x for x in os.listdir("/sys/class/net") if x not in ("lo", "sit0", "ip6tnl0")]
    assert not links, links
    left = files() - before_it
    assert not left, sorted(left)[:40]
    assert sh("id", "-un", "paddock").strip() == "paddock"


CASES = {1: [the_package_starts_nothing, three_commands_make_a_client,
             a_configuration_and_one_command_make_a_node,
             an_upgrade_leaves_the_tasks_alone, a_removal_ends_all_and_keeps_the_data,
             installed_again_it_goes_on, a_purge_leaves_the_user_alone]}
