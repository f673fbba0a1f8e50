# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of the VM lane (cases_*.py, in order of name) as root inside the machine, started by
`guest`: a real systemd, cgroup v2 with every controller. TAP on standard output. Cases assert ratios
and counts, no milliseconds: everything is emulated.

A module has CASES = {LIFE: [function...]}; what LIFE ends with is in ENDS. VM_CASES=package runs those of
package_*.py instead, on a machine where nothing is installed.

usage: vm_tests.py LIFE [NAME...]   exit 10: there is more in the next life
"""
import glob
import importlib
import os
import sys
import time
import traceback

import vm

KIND = os.environ.get("VM_CASES", "cases")
ENDS = {1: "systemctl reboot", 2: "systemctl reboot, with a drain", 3: "a power cut", 4: "power off"}


def load():
    lives = {n: [] for n in ENDS}
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), KIND + "_*.py"))):
        for life, cases in importlib.import_module(os.path.basename(path)[:-3]).CASES.items():
            lives[life] += cases
    return lives


def run(number, case):
    begin = time.monotonic()
    try:
        case()
        note = ""
    except vm.Skip as e:
        note = f" # SKIP {e}"
    except BaseException:  # noqa: a failed case must not take the others along
        print("\n".join("# " + x for x in traceback.format_exc().splitlines()))
        print(f"not ok {number} - {case.__name__} ({time.monotonic() - begin:.0f} s)", flush=True)
        return False
    print(f"ok {number} - {case.__name__} ({time.monotonic() - begin:.0f} s){note}", flush=True)
    return True


def journal():
    log = vm.sh("journalctl", "--no-pager", "-b", "-o", "short-monotonic", "-n", "150", "-u", "paddock*", "-u", "devel", "-u", "byhand",
                check=False)
    print("\n".join("# " + x for x in log.splitlines()), flush=True)


def main():
    life, names = int(sys.argv[1]), sys.argv[2:]
    lives = {n: [c for c in cases if not names or c.__name__ in names] for n, cases in load().items()}
    if life == 1:
        print(f"1..{sum(map(len, lives.values()))}", flush=True)
        if KIND == "cases" and names and "units_start_in_order" not in names:
            vm.sh("systemctl", "start", "paddock")
            try:
                vm.until(vm.ready, "ready node")
            except AssertionError:
                journal()
                raise
    first = 1 + sum(len(lives[n]) for n in lives if n < life)
    results = [run(i, c) for i, c in enumerate(lives[life], first)]
    if not all(results):
        journal()
    more = any(lives[n] for n in lives if n > life)
    print(f"# life {life} ended after {vm.read('/proc/uptime').split()[0]} s"
          + (f", next: {ENDS[life]}" if more else ""), flush=True)
    sys.exit(10 if more else 0)


main()
