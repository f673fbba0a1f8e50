#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""epochs: do two ever run at the same time? (doc/fencing.md)

usage: epochs.py FILE...    lines "NAME EPOCH TIME", as tasks write them while they run, TIME of one clock for all
"""
import sys


def spans(lines):
    """{name: {epoch: (first, last)}}"""
    out = {}
    for line in lines:
        words = line.split()
        if len(words) != 3:
            continue  # torn by the end of its writer
        try:
            name, epoch, at = words[0], int(words[1]), float(words[2])
        except ValueError:
            continue
        first, last = out.setdefault(name, {}).get(epoch, (at, at))
        out[name][epoch] = min(first, at), max(last, at)
    return out


def overlaps(lines):
    """Words for each pair of one name that ran at the same time, or began in the wrong order."""
    bad = []
    for name, by in sorted(spans(lines).items()):
        ran = sorted(by.items())
        for (e1, (_, last)), (e2, (first, _)) in zip(ran, ran[1:]):
            if first <= last:
                bad.append(f"{name}: epoch {e2} began {last - first:.3f} s before epoch {e1} ended")
    return bad


if __name__ == "__main__":
    found = overlaps(line for f in sys.argv[1:] for line in open(f, errors="replace"))
    print("\n".join(found) or "at most one ran")
    sys.exit(bool(found))
