# SPDX-License-Identifier: Apache-2.0
"""A network of an allocation's own, its policy and what is counted, through the command line, on this
kernel. (cases_40 runs the tests of the warden's parts.)"""
import re
import socket

from vm import *

JOB = """
job "bridged" {
  datacenters = ["*"]
  group "g" {
    network {
      mode = "bridge"
      port "web" {
        static = 20080
        to     = 8080
      }
      egress { allow = ["127.0.0.0/8"] }
    }
    ephemeral_disk { size = 10 }
    task "t" {
      driver = "exec"
      config {
        command = "/usr/bin/python3"
        args = ["-S", "-c", <<TEXT
import socket
def reach(address, port):
    s = socket.socket()
    s.settimeout(60)
    return s.connect_ex((address, port))
print("denied", reach("10.9.9.9", 80), reach("169.254.169.254", 80), flush=True)
s = socket.create_server(("0.0.0.0", 8080))
print("up", flush=True)
while True:
    c, peer = s.accept()
    c.sendall(bytes(%d))
    c.close()
TEXT
        ]
      }
      resources {
        cpu    = 50
        memory = 64
      }
      logs {
        max_files     = 1
        max_file_size = 1
      }
    }
  }
}
"""
SIZE = 4 << 20


def port_is_up():
    try:
        socket.create_connection(("127.0.0.1", 20080), timeout=5).close()
        return True
    except OSError:
        return False


def a_bridge_with_a_policy_is_counted():
    path = "/var/tmp/bridged.hcl"
    with open(path, "w") as f:
        f.write(JOB % SIZE)
    sh("paddock", "job", "run", "-detach", path)
    alloc = allocs("bridged", "running")[0]
    log = until(lambda: (lambda t: t if "up" in t else None)(sh("paddock", "alloc", "logs", alloc["ID"], check=False)),
                "listening task")
    assert "denied 1 1" in log, log  # EPERM: by the job's rules, and by those of every task
    got = 0
    with socket.create_connection(("127.0.0.1", 20080), timeout=DEADLINE_S) as s:
        while chunk := s.recv(1 << 16):
            got += len(chunk)
    assert got == SIZE, got
    net = request("GET", f"/v1/client/allocation/{alloc['ID']}/stats")["Tasks"]["t"]["ResourceUsage"]["NetworkStats"]
    # 40 bytes before at most 65 KiB and at least 1 KiB of data: segments are not cut on the way
    assert SIZE < net["TxBytes"] < SIZE * 1.05 and net["DeniedConnects"] == 2, net
    text = sh("paddock", "alloc", "status", "-stats", alloc["ID"])
    sent = re.search(r"Network Stats.*?(4(?:\.\d)?) MiB \((\d+) packets\)", text, re.S)
    assert sent, text
    print(f"# sent {net['TxBytes']} bytes in {net['TxPackets']} packets, told as {sent.group(1)} MiB")
    sh("paddock", "job", "stop", "-purge", "-detach", "bridged")
    until(lambda: not port_is_up(), "end of the mapped port")


def requests_to_disks_are_counted():
    """What a task writes, past the cache and through it, is told within 1 %, by the kernel's programs and
    by io.stat."""
    size = 24 << 20
    submit("disk", "dd if=/dev/zero of=/local/x bs=64k count=256 oflag=direct conv=fsync 2>/dev/null; "
                   "dd if=/dev/zero of=/local/y bs=64k count=128 conv=fsync 2>/dev/null; echo done; "
                   "exec sleep 1000000")
    alloc = allocs("disk", "running")[0]
    until(lambda: "done" in sh("paddock", "alloc", "logs", alloc["ID"], check=False), "written file")
    usage = request("GET", f"/v1/client/allocation/{alloc['ID']}/stats")["Tasks"]["t"]["ResourceUsage"]
    block, io = usage["BlockStats"], usage["IOStats"]
    print(f"# told {block['WriteBytes']} bytes in {block['WriteOps']} requests, io.stat {io['WriteBytes']} in "
          f"{io['WriteOps']}; p50 < {block['TimeP50'] / 1000:.0f} us, p99 < {block['TimeP99'] / 1000:.0f} us")
    assert abs(block["WriteBytes"] - size) < size / 100, block
    assert abs(block["WriteBytes"] - io["WriteBytes"]) < size / 100, (block, io)
    assert abs(block["ReadBytes"] - io["ReadBytes"]) <= io["ReadBytes"] / 100, (block, io)
    assert sum(block["TimeHistogram"]) == block["ReadOps"] + block["WriteOps"] > 0 and block["Errors"] == 0, block
    text = sh("paddock", "alloc", "status", "-stats", alloc["ID"])
    assert re.search(r"Block Stats.*?24 MiB \(\d+ requests\)", text, re.S), text
    metrics = request("GET", "/v1/metrics?format=prometheus")
    told = re.search(r'^nomad_client_allocs_block_write_bytes{.*job="disk".*} (\S+)$', metrics, re.M)
    assert told and abs(float(told.group(1)) - size) < size / 100, told
    purge("disk")


CASES = {1: [a_bridge_with_a_policy_is_counted, requests_to_disks_are_counted]}
