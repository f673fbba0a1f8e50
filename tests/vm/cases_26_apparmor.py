# SPDX-License-Identifier: Apache-2.0
"""Tasks under a profile of AppArmor's: the job's within the client's list, and the client's own."""
import contextlib
import os

from vm import *

KERNEL = "/sys/kernel/security/apparmor"
SCRIPT = """cat /proc/self/attr/apparmor/current; mkdir -p /local/denied; echo x >/local/free && echo free
echo x >/local/denied/x || echo denied; env true || echo not executed; grep -E 'NoNewPrivs|Seccomp:' /proc/self/status"""


def load(path="/root/tests/apparmor.bin"):
    with open(path, "rb") as f, open(f"{KERNEL}/.replace", "wb", buffering=0) as to:
        to.write(f.read())  # one write, as the kernel wants it


def logs(alloc):
    text = sh("paddock", "alloc", "logs", alloc["ID"], check=False)
    return text if "Seccomp:" in text else None


def ran(name, profile):
    """What a task says of itself, started under `profile` of its job (None: it names none)."""
    submit(name, SCRIPT, kind="batch", isolation={"Apparmor": profile} if profile else None)
    alloc = allocs(name, "complete")[0]
    out = until(lambda: logs(alloc), "output")
    purge(name)
    return out.splitlines()


def why_not(name, profile):
    submit(name, SCRIPT, kind="batch", isolation={"Apparmor": profile} if profile else None)
    alloc = allocs(name, "failed")[0]
    state = request("GET", f"/v1/allocation/{alloc['ID']}")["TaskStates"]["t"]
    purge(name)
    return " ".join(e.get("DisplayMessage") or "" for e in state["Events"])


def confined(out):
    assert out[0] == "paddock-task-vm (enforce)" and {"free", "denied", "not executed"} <= set(out), out
    assert "NoNewPrivs:\t1" in out and "Seccomp:\t2" in out, out


def a_job_has_its_profile():
    node = request("GET", "/v1/node/" + request("GET", "/v1/nodes")[0]["ID"])
    assert node["Attributes"]["isolation.apparmor"] == "true", node["Attributes"]
    load()
    out = ran("free", None)
    assert out[0] == "unconfined" and "denied" not in out and "not executed" not in out, out
    confined(ran("boxed", "paddock-task-vm"))
    text = why_not("unknown", "paddock-task-none")
    assert '"paddock-task-none" is not loaded' in text, text
    text = why_not("other", "paddock-task-other")
    assert "isolation.apparmor_allowed" in text and "paddock-task-other" in text, text


def the_client_has_one_for_all():
    text = read("/etc/paddock.d/vm.hcl")
    load()
    reload(text.replace("isolation {", "isolation {\n  apparmor = \"paddock-task-vm\""))
    confined(ran("plain", None))
    reload(text + "\n")
    assert ran("plain", None)[0] == "unconfined"


@contextlib.contextmanager
def unit_profile(unit, profile, *restart):
    """A drop-in that starts the unit under a profile, and its end, with both of which `restart` starts again."""
    drop_in = f"/run/systemd/system/{unit}.service.d/apparmor.conf"
    os.makedirs(os.path.dirname(drop_in), exist_ok=True)
    with open(drop_in, "w") as f:
        f.write(f"[Service]\nAppArmorProfile={profile}\n")
    sh("systemctl", "daemon-reload")
    try:
        sh("systemctl", "restart", *restart)
        until(ready, "ready node")
        yield
    finally:
        os.remove(drop_in)
        sh("systemctl", "daemon-reload")
        sh("systemctl", "restart", *restart)
        until(ready, "ready node")


def below_another_profile():
    """A shim that is confined: its tasks are under both profiles, which is all that no_new_privs lets through."""
    load()
    with unit_profile("paddock-warden", "paddock-wide", "paddock-warden"):
        assert ran("wide", None)[0] == "paddock-wide (enforce)"
        out = ran("both", "paddock-task-vm")
        assert out[0] in ("paddock-wide//&paddock-task-vm (enforce)", "paddock-task-vm//&paddock-wide (enforce)"), out
        assert {"free", "denied", "not executed"} <= set(out), out
        assert '"paddock-task-none" is not loaded' in why_not("unknown", "paddock-task-none")


def profile_of(pid):
    return read(f"/proc/{pid}/attr/apparmor/current")


def the_contributed_ones_hold():
    """Agent, warden, shims and tasks under contrib/apparmor: jobs run as ever, nothing is denied. A task that is older than
    the profiles is joined (alloc exec) as well."""
    submit("older", "exec sleep 1000000")
    older = allocs("older", "running")[0]
    load("/root/tests/contrib-apparmor.bin")
    with unit_profile("paddock", "paddock-agent", "paddock-warden", "paddock"):
        for unit, profile in (("paddock", "paddock-agent"), ("paddock-warden", "paddock-warden")):
            assert profile_of(show(unit, "MainPID")) == f"{profile} (enforce)", unit
        node = request("GET", "/v1/node/" + request("GET", "/v1/nodes")[0]["ID"])
        assert node["Attributes"]["os.version"] == read("/etc/debian_version"), node["Attributes"]
        out = ran("free", None)
        assert out[0] == "paddock-shim (enforce)" and "free" in out, out
        submit("stays", "exec sleep 1000000")
        alloc = allocs("stays", "running")[0]
        shim = read(leaf(alloc) + "/../shim/cgroup.procs")
        assert profile_of(shim) == "paddock-shim (enforce)"
        out = sh("paddock", "alloc", "exec", "-i=false", alloc["ID"], "cat", "/proc/self/attr/apparmor/current")
        assert out.strip() == "paddock-shim (enforce)", out
        out = sh("paddock", "alloc", "exec", "-t", alloc["ID"], "tty")
        assert "/dev/pts/" in out, out
        out = sh("paddock", "alloc", "exec", "-i=false", older["ID"], "cat", "/proc/self/attr/apparmor/current")
        assert out.strip() == "paddock-shim (enforce)", out
        purge("older")
        purge("stays")
        for a in alloc, older:
            until(lambda: not os.path.exists(f"{TASKS}/{a['ID']}"), "end of the task")
    for profile in ("paddock-agent", "paddock-warden", "paddock-shim"):
        with open(f"{KERNEL}/.remove", "w") as f:
            f.write(profile)
    sh("systemctl", "restart", "paddock-warden")  # found by its path, and so still under the profile that was
    until(ready, "ready node")


CASES = {1: [a_job_has_its_profile, the_client_has_one_for_all, below_another_profile,
             the_contributed_ones_hold]}
