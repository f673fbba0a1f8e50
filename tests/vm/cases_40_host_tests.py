# SPDX-License-Identifier: Apache-2.0
"""The tests that need root and a kernel's features, on this kernel and with every controller: the
binaries of tests/isolation and tests/attempts, as run-vm brought them (VM_BINARIES)."""
import os
import re
import subprocess

from vm import *

BUILD = "/root/build"


def binary(path):
    def case():
        env = {**os.environ, "top_builddir": BUILD, "top_srcdir": BUILD, "CK_TIMEOUT_MULTIPLIER": "20"}
        p = subprocess.run([os.path.join(BUILD, path)], env=env, cwd=BUILD, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace", timeout=2 * DEADLINE_S)
        lines = p.stdout.splitlines()
        told = [x for x in lines if x.startswith(("ok ", "not ok "))]
        skipped = [x for x in told if "# SKIP" in x]
        print("\n".join(f"# {path}: {x}" for x in skipped), end="\n" if skipped else "")
        print("".join(x + "\n" for x in lines if re.match(r"# .*\d+ of \d+", x)), end="")
        bad = [x for x in told if x.startswith("not ok ")]
        print(f"# {path}: {len(told) - len(bad) - len(skipped)} passed, {len(bad)} failed, {len(skipped)} skipped")
        assert told and p.returncode == 0 and not bad, "\n".join(lines[-60:])
    case.__name__ = os.path.basename(path).replace("-", "_")
    return case


def brought():
    with open(os.path.join(BUILD, "vm-binaries")) as f:
        return [x for x in f.read().split() if "/test-" in x]


def limits_on_disk_are_given_back_each_time():
    """test-quota again and again: what the kernel takes down late is seen in some rounds only."""
    for _ in range(ROUNDS - 1):
        binary("tests/isolation/root/test-quota")()


CASES = {1: [binary(p) for p in brought()] + [limits_on_disk_are_given_back_each_time]}
