# SPDX-License-Identifier: Apache-2.0
"""README, typed: from `make install` to a node in four commands, and how to remove it; and what forgot one of them."""
import glob
import os
import subprocess

from vm import *

SOURCE = "/root/tests/source"
ASIDE = "/var/tmp/paddock.d.tar"


def blocks(title):
    """Commands of the shell's blocks in a section, without comments."""
    section = read(f"{SOURCE}/README.md").split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [[line.split("   #")[0].strip() for line in b.split("```")[0].strip().splitlines()] for b in section.split("```sh\n")[1:]]


def type_all(commands):
    for c in commands:
        if "make " in c:  # it was done when the machine was made, and is not undone
            continue
        p = subprocess.run(["sh", "-c", c.replace("sudo ", "")], cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE_S, check=False)
        assert p.returncode == 0, (c, p.stdout)
        print(f"# {c}", flush=True)


def nothing_is_there():
    for path in "/etc/paddock.d", "/var/lib/paddock", "/run/paddock", TASKS:
        assert not os.path.exists(path), path
    assert not glob.glob("/etc/systemd/system/*/paddock*"), "a link is left"
    assert "paddock" not in read("/etc/passwd")
    assert not any("active" == show(u, "ActiveState") for u in UNITS)


def the_commands_of_the_readme():
    _, install, remove = blocks("By hand")
    assert len(install) == 4 and "make install" in install[0] and "make uninstall" in remove[1], (install, remove)
    sh("tar", "-C", "/etc", "-cf", ASIDE, "paddock.d")
    try:
        type_all(remove)
        nothing_is_there()
        type_all(install)
        until(ready, "ready node")
        assert show("paddock", "UnitFileState") == "enabled"
        submit("first", "exec sleep 1000000")
        allocs("first", "running")
        type_all(remove)
        nothing_is_there()
    finally:  # as the other cases want it
        sh("systemd-sysusers")
        sh("systemd-tmpfiles", "--create", "paddock.conf")
        sh("tar", "-C", "/etc", "-xf", ASIDE)
        os.remove(ASIDE)
        sh("chgrp", "-R", "paddock", "/etc/paddock.d")
        sh("systemctl", "start", "paddock")
        until(ready, "ready node")


def without_systemd_tmpfiles():
    """Directories that nobody made are made."""
    sh("systemctl", "stop", *UNITS)
    sh("rm", "-rf", "/var/lib/paddock", "/run/paddock")
    sh("systemctl", "start", "paddock")
    until(ready, "ready node")
    assert [show(u, "NRestarts") for u in UNITS] == ["0"] * 3


def another_data_dir():
    """The journal says what its units lack."""
    config = read("/etc/paddock.d/vm.hcl")
    with open("/etc/paddock.d/vm.hcl", "w") as f:
        f.write(config.replace("/var/lib/paddock", "/srv/paddock") + "\n")
    try:
        p = subprocess.run(["systemctl", "start", "paddock-policy"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        said = sh("journalctl", "-b", "-u", "paddock-policy", "-p", "err", "--no-pager", "-o", "cat")
        assert p.returncode != 0 and 'drop-in with [Service] ReadWritePaths=/srv/paddock' in said, said
    finally:
        with open("/etc/paddock.d/vm.hcl", "w") as f:
            f.write(config + "\n")
    sh("systemctl", "start", "paddock-policy")


CASES = {1: [without_systemd_tmpfiles, another_data_dir, the_commands_of_the_readme]}
