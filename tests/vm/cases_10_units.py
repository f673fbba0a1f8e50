# SPDX-License-Identifier: Apache-2.0
"""Units: order, privilege, exposure, what systemd sees, reload, watchdog."""
import json
import os
import re
import signal
import socket
import subprocess
import time

from vm import *


def units_start_in_order():
    sh("systemctl", "start", "paddock")
    times = [int(show(u, "ActiveEnterTimestampMonotonic")) for u in UNITS]
    assert times == sorted(times) and times[0] > 0, dict(zip(UNITS, times))
    assert show("paddock-policy", "Result") == "success"
    assert read("/run/paddock/cgroup") == TASKS
    until(ready, "ready node")


def agent_has_no_privilege():
    status = read(f"/proc/{show('paddock', 'MainPID')}/status")
    got = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    uid = sh("id", "-u", "paddock").strip()
    assert got["Uid"].split() == [uid] * 4, got["Uid"]
    for key, want in (("CapEff", 0), ("CapPrm", 0), ("CapBnd", 0)):
        assert int(got[key], 16) == want, f"{key} {got[key]}"
    assert got["NoNewPrivs"] == "1" and got["Seccomp"] == "2", status
    less = [e["MESSAGE"] for e in journal("-u", "paddock", "-b") if "its own confinement" in str(e.get("MESSAGE"))]
    assert not less, less
    assert show("paddock", "WatchdogUSec") == "1min"


def exposure_is_low():
    for unit, limit in (("paddock", 1.7), ("paddock-policy", 1.9), ("paddock-reload", 1.5), ("paddock-tasks-clear", 2.1), ("paddock-tasks", 2.6),
                        ("paddock-hand", 4.1), ("paddock-warden", 8.7)):
        text = sh("systemd-analyze", "security", "--no-pager", f"{unit}.service")
        value = float(re.search(r"exposure level for \S+: ([0-9.]+)", text).group(1))
        print(f"# exposure of {unit}.service: {value}")
        assert value <= limit, text


def the_hand_starts_within_its_unit():
    """Without an engine: whoever turned one on has the hand before dockerd."""
    text = read("/etc/paddock.d/vm.hcl")
    reload(text + '\nplugin "docker" {\n  config {\n    enabled = true\n  }\n}\n')
    sh("systemctl", "start", "paddock-hand")
    until(lambda: any('"docker"' in str(e) or "docker" in str(e.get("MESSAGE")) for e in journal("-b", "-u", "paddock-hand")), "word of the hand")
    status = read(f"/proc/{show('paddock-hand', 'MainPID')}/status")
    got = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(got["CapEff"], 16) == 0 and int(got["CapBnd"], 16) == 0, status
    assert got["NoNewPrivs"] == "1" and got["Seccomp"] == "2", status
    less = [e["MESSAGE"] for e in journal("-u", "paddock-hand", "-b") if "its own confinement" in str(e.get("MESSAGE"))]
    assert not less, less
    sh("systemctl", "stop", "paddock-hand")
    reload(text + "\n")


def a_job_runs_and_systemd_sees_it():
    sh("paddock", "job", "run", "-detach", "/root/examples/hello.hcl")
    alloc = allocs("hello", "running")[0]
    tree = sh("systemctl", "--no-pager", "-l", "-n", "0", "status", "paddock-tasks")
    assert alloc["ID"] in tree and "sleep 1000000" in tree, tree
    tree = sh("systemd-cgls", "--no-pager", "-u", "paddock-tasks.service")
    assert alloc["ID"] in tree, tree
    log = until(lambda: sh("paddock", "alloc", "logs", alloc["ID"]), "log")
    assert "capabilities 0000000000000000" in log, log
    purge("hello")
    until(lambda: not os.path.exists(f"{TASKS}/{alloc['ID']}"), "end of the cgroup")


def the_journal_has_fields():
    submit("fields", "exec sleep 1000000")
    alloc = allocs("fields", "running")[0]

    def said(unit, text, *fields):
        return [e for e in journal("-u", unit, f"PADDOCK_ALLOC_ID={alloc['ID']}", *fields) if text in e["MESSAGE"]]
    line = until(lambda: said("paddock", "task started", "PADDOCK_TASK=t"), "line of the agent")[0]
    assert line["PRIORITY"] == "6" and line["SYSLOG_IDENTIFIER"] == "paddock", line
    assert line["PADDOCK_ROOM"] == "client" and line["_TRANSPORT"] == "journal", line
    received = said("paddock", "allocation received")[0]
    assert received["PADDOCK_JOB_ID"] == "fields", received
    submit("broken", "true", kind="batch", config={"command": "/nonexistent"})
    bad = allocs("broken", "failed")[0]
    lines = until(lambda: journal("-u", "paddock-warden", f"PADDOCK_ALLOC_ID={bad['ID']}"), "line of the warden")
    assert lines[0]["SYSLOG_IDENTIFIER"] == "paddock-warden" and lines[0]["PADDOCK_ERROR"], lines[0]
    purge("fields")
    purge("broken")


def the_audit_log_is_in_the_journal():
    """Also after another journald has come."""
    text = read("/etc/paddock.d/vm.hcl")

    def configure(config):
        with open("/etc/paddock.d/vm.hcl", "w") as f:
            f.write(config)
        sh("systemctl", "restart", "paddock")
        until(ready, "ready node")

    def lines(path):
        return [line for line in (json.loads(e["MESSAGE"]) for e in journal("-b", "-t", "paddock-audit")) if line.get("Path") == path]
    configure(text + '\naudit {\n  enabled = true\n  sink "journal" {\n    type = "journal"\n  }\n}\n')
    request("GET", "/v1/regions")
    line = until(lambda: lines("/v1/regions"), "a line in the journal")[0]
    assert line["Status"] == 200 and line["Method"] == "GET" and line["Type"] == "request", line
    sh("systemctl", "restart", "systemd-journald")
    request("GET", "/v1/status/peers")
    until(lambda: lines("/v1/status/peers"), "a line in the journal of the later journald")
    configure(text)
    request("GET", "/v1/regions")
    assert len(lines("/v1/regions")) == 1


def policy_is_taken_up_by_reload():
    text = read("/etc/paddock.d/vm.hcl")
    changed = re.sub(r"(pids_max +)= 64", r"\1= 32", text)
    assert changed != text
    reload(changed)
    submit("later", "exec sleep 1000000")
    alloc = allocs("later", "running")[0]
    assert read(leaf(alloc) + "/pids.max") == "32", read(leaf(alloc) + "/pids.max")
    purge("later")
    reload(text + "\n")


def watchdog_restarts_a_hung_agent():
    os.makedirs("/run/systemd/system/paddock.service.d", exist_ok=True)
    with open("/run/systemd/system/paddock.service.d/vm.conf", "w") as f:
        f.write("[Service]\nWatchdogSec=20\nTimeoutAbortSec=2\n")
    sh("systemctl", "daemon-reload")
    sh("systemctl", "restart", "paddock")
    until(ready, "ready node")
    pid, restarts = show("paddock", "MainPID"), int(show("paddock", "NRestarts"))
    time.sleep(25)  # longer than the deadline: it does send its messages
    assert show("paddock", "MainPID") == pid, "an agent that works was killed"
    os.kill(int(pid), signal.SIGSTOP)
    until(lambda: int(show("paddock", "NRestarts")) > restarts, "restart by the watchdog")
    os.remove("/run/systemd/system/paddock.service.d/vm.conf")
    sh("systemctl", "daemon-reload")
    until(ready, "ready node")


def a_start_that_fails_is_tried_more_slowly():
    """A port that somebody else has: systemd says so at once and tries on; a restart by hand waits for nothing."""
    sh("systemctl", "stop", "paddock")
    with socket.create_server(("127.0.0.1", 4646)):
        out = sh("systemctl", "start", "paddock", check=False)
        assert "failed" in out, out
        words = until(lambda: re.match(r"Waits (\d+) s after (\d+) starts that failed: (.+)", show("paddock", "StatusText")), "pause")
        assert "4646" in words[3], words[0]
        until(lambda: show("paddock", "StatusText").startswith("Waits 7 s after 6 starts"), "longer pause")
        assert show("paddock", "NRestarts") == "6" and show("paddock", "ActiveState") == "activating"
    sh("systemctl", "restart", "paddock")
    until(ready, "ready node")
    assert show("paddock", "StatusText") == "Running" and show("paddock", "NFileDescriptorStore") == "0"


def the_api_has_the_files_read_anew():
    """POST /v1/agent/reload: the agent may not read them, and a unit does what `systemctl reload` does."""
    text = read("/etc/paddock.d/vm.hcl")
    try:
        with open("/etc/paddock.d/vm.hcl", "w") as f:
            f.write(text + '\nclient {\n  meta {\n    asked = "yes"\n  }\n}\n')
        os.chmod("/etc/paddock.d/vm.hcl", 0o600)
        told = request("POST", "/v1/agent/reload")
        assert told["Changed"] == ["client.meta"] and not told["NeedsRestart"], told
        assert request("POST", "/v1/agent/reload")["Changed"] == []
    finally:
        os.chmod("/etc/paddock.d/vm.hcl", 0o644)
        reload(text)


def reloads():
    sh("journalctl", "--sync")
    return sum("configuration reloaded" in str(e.get("MESSAGE")) for e in journal("-b", "-u", "paddock"))


def rung():
    """Which call of the bell was answered last; the next one will be heard."""
    until(lambda: show("paddock-reload", "ActiveState") == "inactive" and show("paddock-reload.path", "SubState") == "waiting", "end of the reload")
    return show("paddock-reload", "InvocationID")


def ring():
    with open("/run/paddock/reload", "a") as f:
        f.write("reload\n")


def a_policy_made_again_rings_no_bell():
    """The bell is the agent's alone: who asks once is answered once."""
    before, last = reloads(), rung()
    for _ in range(3):
        sh("systemctl", "start", "paddock-policy")
    assert rung() == last and reloads() == before, reloads() - before
    sh("systemctl", "reload", "paddock")
    until(lambda: reloads() > before, "reload by hand")
    assert rung() == last and reloads() == before + 1, reloads() - before
    for _ in range(5):  # each as soon as the last one is answered
        assert request("POST", "/v1/agent/reload")["Changed"] == []
    assert rung() != last and reloads() == before + 6, reloads() - before


def a_bell_that_nobody_hears():
    """Rung while the agent stops, is away, or is removed: nothing starts, nothing fails, and the next agent's is heard."""
    last = rung()
    stopping = subprocess.Popen(["systemctl", "stop", *UNITS])
    ring()
    assert stopping.wait(DEADLINE_S) == 0
    until(lambda: rung() != last, "answer to a word behind a stop")
    last = rung()
    ring()
    until(lambda: rung() != last, "answer to a word without an agent")
    last = rung()
    os.remove("/run/paddock/reload")  # as whoever removes Paddock does
    until(lambda: rung() != last, "answer to the end of the bell")
    assert [show(u, "ActiveState") for u in UNITS] == ["inactive"] * 3
    assert not sh("systemctl", "--failed", "--no-legend", "--no-pager").strip()
    sh("systemctl", "start", "paddock")
    until(ready, "ready node")
    before = reloads()
    assert request("POST", "/v1/agent/reload")["Changed"] == []
    assert reloads() == before + 1, reloads() - before


CASES = {1: [units_start_in_order, agent_has_no_privilege, exposure_is_low, the_hand_starts_within_its_unit, a_job_runs_and_systemd_sees_it,
             the_journal_has_fields, the_audit_log_is_in_the_journal, policy_is_taken_up_by_reload, the_api_has_the_files_read_anew,
             a_policy_made_again_rings_no_bell, a_bell_that_nobody_hears, a_start_that_fails_is_tried_more_slowly,
             watchdog_restarts_a_hung_agent]}
