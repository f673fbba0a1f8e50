# SPDX-License-Identifier: Apache-2.0
"""A running fleet simulator (bench/fleet), driven by its control socket."""
import json
import os
import socket
import subprocess
import tempfile

from paddock_test import DEADLINE_S, TOP_BUILD

BINARY = os.path.join(TOP_BUILD, "bench", "fleet", "fleet")


class Fleet:
    def __init__(self, rpc, nodes, *args):
        self.dir = tempfile.mkdtemp(prefix="fleet-")
        self.nodes, self.path = nodes, os.path.join(self.dir, "control")
        self.errors = os.path.join(self.dir, "errors")
        self.proc = subprocess.Popen(
            [BINARY, "-servers", f"127.0.0.1:{rpc}", "-nodes", str(nodes), "-control", self.path, "-json", *args],
            stdout=subprocess.PIPE, stderr=open(self.errors, "w"), text=True)
        self.sock = None

    def connect(self, agent):
        """Once it listens; `agent` waits."""
        def there():
            assert self.proc.poll() is None, f"the fleet ended: {open(self.errors).read()}"
            try:
                s = socket.socket(socket.AF_UNIX)
                s.connect(self.path)
            except OSError:
                return False
            s.settimeout(DEADLINE_S)
            self.sock, self.file = s, s.makefile("r")
            return True
        agent.until(there, "control socket")
        return self

    def ask(self, line):
        """The number of the answer, or the object that `stats` gives."""
        self.sock.sendall(line.encode() + b"\n")
        answer = self.file.readline()
        if line == "stats":
            return json.loads(answer)
        assert answer.startswith("ok "), (line, answer)
        return int(answer.split()[1])

    def end(self):
        """(exit status, last figures)"""
        self.ask("quit")
        out = self.proc.communicate(timeout=DEADLINE_S)[0]
        return self.proc.returncode, json.loads(out)

    def destroy(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        if self.sock:
            self.file.close()
            self.sock.close()
        for f in os.listdir(self.dir):
            os.unlink(os.path.join(self.dir, f))
        os.rmdir(self.dir)
