# SPDX-License-Identifier: Apache-2.0
"""A terminal with `alloc exec` in it."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

from paddock_test import PADDOCK


class Terminal:
    """`alloc exec` in a terminal of its own."""

    def __init__(self, agent, task, *args, rows=33, columns=101):
        self.master, slave = pty.openpty()
        self.size(rows, columns)
        self.slave, self.seen = slave, b""
        self.before = termios.tcgetattr(slave)
        env = dict(os.environ, NOMAD_ADDR=f"http://127.0.0.1:{agent.http}")

        def lead():  # the terminal is the controlling one: SIGWINCH comes from it
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        self.proc = subprocess.Popen([PADDOCK, "alloc", "exec", "-task", task, *args], env=env, stdin=slave,
                                     stdout=slave, stderr=slave, preexec_fn=lead)

    def size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text)

    def until(self, text):
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], 30)
            assert ready, f"{text} did not come: {self.seen}"
            self.seen += os.read(self.master, 4096)
        at = self.seen.index(text) + len(text)
        seen, self.seen = self.seen[:at], self.seen[at:]
        return seen

    def end(self, code):
        assert self.proc.wait(30) == code, self.proc.returncode
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        os.close(self.slave)
        os.close(self.master)
