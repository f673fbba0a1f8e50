# SPDX-License-Identifier: Apache-2.0
"""A node that does exactly what a test says: its three calls (register, status, allocations) over the RPC of
net/rpc.h, whose types it reads from api/schema. It runs nothing. Standard library only."""
import os
import re
import socket
import struct
import uuid

SCALARS = {"bool", "int", "uint", "float", "dur", "time", "string", "bytes", "any"}


class RpcError(Exception):
    pass


class Schema:
    """Fields of the structs and ids of the methods, by name."""

    def __init__(self, top):
        self.structs, self.methods, self.of_nodes = {}, {}, set()
        folder = os.path.join(top, "api", "schema")
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".schema"):
                continue
            cur = None
            for line in open(os.path.join(folder, name), encoding="utf-8"):
                words = line.split("#")[0].split()
                if not words:
                    continue
                if words[0] == "struct":
                    cur = self.structs.setdefault(words[1], {})
                elif words[0] == "rpc":
                    self.methods[words[2]] = (int(words[1]), words[3], words[4])
                    if "cap=client" in words:
                        self.of_nodes.add(words[2])
                elif words[0].isdigit() and cur is not None:
                    cur[words[1]] = (int(words[0]), words[2].rstrip("?"))


def pack(v):
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        if 0 <= v < 128:
            return bytes([v])
        return b"\xcf" + struct.pack(">Q", v) if v >= 0 else b"\xd3" + struct.pack(">q", v)
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, str):
        b = v.encode()
        return b"\xdb" + struct.pack(">I", len(b)) + b
    if isinstance(v, list):
        return b"\xdd" + struct.pack(">I", len(v)) + b"".join(map(pack, v))
    return b"\xdf" + struct.pack(">I", len(v)) + b"".join(pack(k) + pack(x) for k, x in sorted(v.items()))


class Reader:
    def __init__(self, data):
        self.d, self.i = data, 0

    def take(self, n):
        self.i += n
        return self.d[self.i - n:self.i]

    def num(self, fmt):
        return struct.unpack(">" + fmt, self.take(struct.calcsize(fmt)))[0]

    def get(self):
        t = self.take(1)[0]
        if t < 0x80:
            return t
        if t >= 0xe0:
            return t - 256
        if t < 0x90:
            return self.map(t & 15)
        if t < 0xa0:
            return [self.get() for _ in range(t & 15)]
        if t < 0xc0:
            return self.take(t & 31).decode(errors="replace")
        if t in (0xc0, 0xc2, 0xc3):
            return {0xc0: None, 0xc2: False, 0xc3: True}[t]
        if t in (0xc4, 0xc5, 0xc6):
            return self.take(self.num("BHI"[t - 0xc4]))
        if t in (0xd9, 0xda, 0xdb):
            return self.take(self.num("BHI"[t - 0xd9])).decode(errors="replace")
        if t in (0xdc, 0xdd):
            return [self.get() for _ in range(self.num("HI"[t - 0xdc]))]
        if t in (0xde, 0xdf):
            return self.map(self.num("HI"[t - 0xde]))
        return self.num({0xca: "f", 0xcb: "d", 0xcc: "B", 0xcd: "H", 0xce: "I", 0xcf: "Q",
                         0xd0: "b", 0xd1: "h", 0xd2: "i", 0xd3: "q"}[t])

    def map(self, n):
        return {self.get(): self.get() for _ in range(n)}


class Rpc:
    """One connection to a server."""

    def __init__(self, schema, port):
        self.schema, self.port, self.sock, self.last = schema, port, None, 0

    def wire(self, kind, v):
        """By names -> by ids."""
        m = re.fullmatch(r"(list|map)\((.*)\)", kind)
        if v is None or kind in SCALARS:
            return v
        if m and m[1] == "list":
            return [self.wire(m[2], x) for x in v]
        if m:
            return {k: self.wire(m[2], x) for k, x in v.items()}
        fields = self.schema.structs[kind]
        return {fields[k][0]: self.wire(fields[k][1], x) for k, x in v.items() if k in fields and x is not None}

    def named(self, kind, v):
        """By ids -> by names."""
        m = re.fullmatch(r"(list|map)\((.*)\)", kind)
        if v is None or kind in SCALARS:
            return v
        if m and m[1] == "list":
            return [self.named(m[2], x) for x in v]
        if m:
            return {k: self.named(m[2], x) for k, x in v.items()}
        names = {i: (n, t) for n, (i, t) in self.schema.structs[kind].items()}
        return {names[k][0]: self.named(names[k][1], x) for k, x in v.items() if k in names}

    def proof(self, method, req):
        """The envelope of a call: a node's id, secret and run, which a test says beside the rest of its request."""
        if method not in self.schema.of_nodes:
            return {}
        said = req["Node"] if "Node" in req else req
        return {"NodeID": said.get("NodeID", said.get("ID")), "NodeSecret": said.get("SecretID"), "AgentRun": said.get("AgentRun")}

    def send(self, method, req, wait_s=60):
        """Sends; returns what receive() takes."""
        if self.sock is None:
            self.sock = socket.create_connection(("127.0.0.1", self.port), timeout=wait_s)
            self.sock.sendall(b"P")
        number, kind, _ = self.schema.methods[method]
        self.last += 1
        envelope = pack(self.wire("RpcEnvelope", self.proof(method, req)))
        body = struct.pack(">H", len(envelope)) + envelope + pack(self.wire(kind, req))
        self.sock.sendall(struct.pack(">IBBHQI", len(body), 1, 2, number, self.last, wait_s * 1000) + body)
        return method, self.last

    def exactly(self, n):
        out = b""
        while len(out) < n:
            more = self.sock.recv(n - len(out))
            if not more:
                self.sock = None
                raise RpcError("the connection was closed")
            out += more
        return out

    def receive(self, ticket):
        method, call = ticket
        while True:
            n, kind, _, _, i, _ = struct.unpack(">IBBHQI", self.exactly(20))
            body = self.exactly(n)
            if i != call or kind not in (2, 3):
                continue
            if kind == 3:
                raise RpcError(body[4:].decode(errors="replace"))
            return self.named(self.schema.methods[method][2], Reader(body).get())

    def call(self, method, req):
        return self.receive(self.send(method, req))

    def close(self):
        if self.sock is not None:
            self.sock.close()
        self.sock = None


class FakeNode:
    def __init__(self, schema, port, name, dc="dc1", meta=None, cpu=4000, mem=4096):
        self.rpc = Rpc(schema, port)
        self.id, self.secret, self.name = str(uuid.uuid4()), str(uuid.uuid4()), name
        self.node = {
            "ID": self.id, "SecretID": self.secret, "Datacenter": dc, "Name": name, "NodePool": "default",
            "Attributes": {"kernel.name": "linux", "driver.raw_exec": "1", "unique.hostname": name},
            "Meta": meta or {}, "HTTPAddr": "127.0.0.1:1",
            "Drivers": {"raw_exec": {"Detected": True, "Healthy": True}},
            "NodeResources": {"Cpu": {"CpuShares": cpu}, "Memory": {"MemoryMB": mem}, "Disk": {"DiskMB": 20000},
                              "MinDynamicPort": 20000, "MaxDynamicPort": 32000},
        }

    def register(self, **more):
        return self.rpc.call("Node.Register", {"Node": dict(self.node, **more)})

    def status_request(self, status="ready"):
        return {"NodeID": self.id, "SecretID": self.secret, "Status": status, "AgentRun": self.node.get("AgentRun")}

    def beat(self, status="ready"):
        return self.rpc.call("Node.UpdateStatus", self.status_request(status))

    def report_request(self, allocs):
        return {"NodeID": self.id, "SecretID": self.secret, "Allocs": allocs, "AgentRun": self.node.get("AgentRun")}

    def report(self, *allocs):
        """Each a dict with ID, ClientStatus and whatever else the client says."""
        return self.rpc.call("Node.UpdateAlloc", self.report_request(list(allocs)))
