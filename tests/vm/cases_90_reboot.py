# SPDX-License-Identifier: Apache-2.0
"""What a reboot, a reboot with a drain, and a power cut leave; and what is left when Paddock goes."""
import glob
import os

from vm import *


def boot_id():
    return read("/proc/sys/kernel/random/boot_id")


def write_variable(path, items):
    """As soon as the leader has made its first key."""
    def written():
        try:
            return request("PUT", f"/v1/var/{path}", {"Path": path, "Items": items}) or True
        except AssertionError:
            return False
    until(written, f"variable {path}")


def registered():
    return {s["AllocID"] for s in request("GET", "/v1/service/comeback")}


def submit_comeback():
    write_variable("nomad/jobs/comeback", {"word": "hello"})
    text = '{{ with nomadVar "nomad/jobs/comeback" }}WORD={{ .word }}{{ end }}\n'
    submit("comeback", "exec sleep 1000000", count=2,
           in_task={"Templates": [{"EmbeddedTmpl": text, "DestPath": "secrets/env", "Envvars": True}]},
           in_group={"Services": [{"Name": "comeback", "Provider": "nomad", "PortLabel": "p"}],
                     "Networks": [{"DynamicPorts": [{"Label": "p"}]}]})
    # as many programs do, it answers the machine's signal with exit status 0
    submit("polite", "trap 'exit 0' TERM; while :; do sleep 1; done", kind="batch")
    remember(boot=boot_id(), comeback=[a["ID"] for a in allocs("comeback", "running", 2)],
             polite=[a["ID"] for a in allocs("polite", "running")])


def a_job_is_there_before():
    sh("systemctl", "enable", "paddock")
    submit_comeback()


def came_back():
    """The same allocations run again, and no attempt is counted."""
    before = recall()
    assert boot_id() != before["boot"]
    until(ready, "ready node")
    now = allocs("comeback", "running", 2) + allocs("polite", "running")
    assert {a["ID"] for a in now} == set(before["comeback"] + before["polite"]), "other allocations than before"
    for a in now:
        def runs(a=a):  # the servers still say so of the time before, until the client has told them
            state = request("GET", f"/v1/allocation/{a['ID']}")["TaskStates"]["t"]
            return os.path.exists(leaf(a)) and pids(a) and state["State"] == "running" and state["Restarts"] == 0
        until(runs, "running task")
    until(lambda: registered() == set(before["comeback"]), "the registrations of what runs")
    for a in now[:2]:
        assert any(b"WORD=hello" in open(f"/proc/{p}/environ", "rb").read().split(b"\0") for p in pids(a)), "no variable of a template"
    purge("comeback")
    until(lambda: not registered(), "end of the registrations")
    purge("polite")
    until(lambda: len(glob.glob(f"{TASKS}/*-*/t/task")) == 0, "empty tasks unit")


def jobs_come_back_after_a_reboot():
    came_back()


def a_shutdown_is_watched():
    """Life 2 ends with a reboot that waits for this agent's drain."""
    os.makedirs("/etc/systemd/logind.conf.d", exist_ok=True)
    with open("/etc/systemd/logind.conf.d/paddock.conf", "w") as f:
        f.write("[Login]\nInhibitDelayMaxSec=120\n")
    sh("systemctl", "restart", "systemd-logind")
    with open("/etc/paddock.d/drain.hcl", "w") as f:
        f.write('client {\n  drain_on_shutdown {\n    deadline = "60s"\n  }\n}\n')
    sh("chgrp", "paddock", "/etc/paddock.d/drain.hcl")
    sh("systemctl", "restart", "paddock")
    until(ready, "ready node")
    def locked():
        return "Paddock" in sh("systemd-inhibit", "--list", "--no-pager", "--mode=delay", check=False)
    until(locked, "lock of logind")
    sh("systemctl", "restart", "dbus")  # the lock went with the connection, and comes with another one
    until(lambda: "it is tried again" in sh("journalctl", "-b", "-u", "paddock", "--no-pager", "-o", "cat"), "loss of the bus")
    until(locked, "lock of logind again")
    submit("drained", "trap 'sleep 1; exit 0' INT TERM; while :; do sleep 1000000 & wait; done")
    remember(boot=boot_id(), drained=allocs("drained", "running")[0]["ID"])


def a_drain_preceded_the_shutdown():
    before = recall()
    assert boot_id() != before["boot"]
    said = [e["MESSAGE"] for e in journal("-b", "-1", "-u", "paddock") if isinstance(e["MESSAGE"], str)]

    def at(text):
        hits = [i for i, m in enumerate(said) if text in m]
        assert hits, f"nobody said {text!r}: {said[-40:]}"
        return hits[-1]
    assert at("the machine is about to go down") < at("the machine may go down") < at("Stopping paddock.service")
    until(ready, "ready node")
    alloc = request("GET", f"/v1/allocation/{before['drained']}")
    assert alloc["ClientStatus"] == "complete", alloc["ClientStatus"]
    print(f"# drained: {alloc['DesiredTransition']} {[e['Type'] for e in alloc['TaskStates']['t']['Events']]}")
    node = request("GET", f"/v1/node/{alloc['NodeID']}")
    assert node["LastDrain"], node
    purge("drained")
    sh("paddock", "node", "eligibility", "-enable", "-self")
    submit_comeback()


def jobs_come_back_after_a_power_cut():
    came_back()


def executable(link):
    try:
        return os.readlink(link)
    except OSError:  # of the kernel, or gone
        return ""


def it_goes_without_a_trace():
    """After the end of its units and files there is nothing but what is the operator's."""
    submit("last", "exec sleep 1000000")
    allocs("last", "running")
    sh("systemctl", "disable", "--now", "paddock", "paddock-warden", "paddock-tasks")
    until(lambda: not os.path.exists(TASKS), "end of the cgroup")
    left = [p for p in glob.glob("/proc/[0-9]*/exe") if "paddock" in executable(p)]
    assert not left, left
    assert "paddock" not in read("/proc/self/mounts"), read("/proc/self/mounts")
    for d, _, files in os.walk("/mnt/root"):
        for f in files:
            os.remove(os.path.join(d, f).removeprefix("/mnt/root"))
    sh("systemctl", "daemon-reload")
    found = sh("find", "/", "-xdev", "-name", "*paddock*", "-not", "-path", "/root/*", "-not", "-path",
               "/proc/*").split()
    mine = ("/etc/paddock.d", "/var/lib/paddock", "/usr/share/doc/paddock", "/usr/libexec/paddock",
            "/etc/systemd/logind.conf.d/paddock.conf")  # configuration, data, empty directories
    assert not [p for p in found if p not in mine and not p.startswith("/var/lib/paddock/")], found


CASES = {1: [a_job_is_there_before], 2: [jobs_come_back_after_a_reboot, a_shutdown_is_watched],
         3: [a_drain_preceded_the_shutdown], 4: [jobs_come_back_after_a_power_cut, it_goes_without_a_trace]}
