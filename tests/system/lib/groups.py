# SPDX-License-Identifier: Apache-2.0
"""A group of containers with a network of its own, by the engine of a test."""
import json
import os
import signal

GET = r"printf 'GET /index.html HTTP/1.0\r\n\r\n' | nc 127.0.0.1 8080 | tail -n 1"


def task(driver, name, script, **more):
    return {"Name": name, "Driver": driver, "Config": {"image": "busybox:1", "command": "/bin/sh", "args": ["-c", script], **more},
            "Resources": {"CPU": 50, "MemoryMB": 64}, "KillTimeout": 10**8}


def register(agent, name, tasks, network):
    return agent.request("PUT", "/v1/jobs", {"Job": {"ID": name, "Name": name, "Datacenters": ["*"], "TaskGroups": [{
        "Name": "g", "Tasks": tasks, "Networks": [network], "ReschedulePolicy": {"Attempts": 0, "Unlimited": False},
        "RestartPolicy": {"Attempts": 20, "Mode": "fail", "Interval": 600 * 10**9, "Delay": 10**6}}]}})


def submit(agent, name, tasks, network):
    status, _, data = register(agent, name, tasks, network)
    assert status == 200, data


def said(agent, alloc, task, want):
    return agent.until(lambda: (lambda t: t if want in t else None)(agent.cli("alloc", "logs", "-task", task, alloc["ID"], check=None)), f"{want!r} of {task}")


def inspect(engine, name):
    return json.loads(engine.text("inspect", name))[0]


def own_network(agent, engine, driver):
    """Two containers, one loopback; the ports are the network's, which is made again when it has gone, and goes with the last one."""
    web = "echo hello >/local/index.html; echo here=$NOMAD_ALLOC_ADDR_http=$(hostname); exec httpd -f -p 8080 -h /local"
    asks = f"until {GET} | grep hello; do sleep 0.05; done; echo asked; exec sleep 1000"
    network = {"Mode": "bridge", "Hostname": "ours-${NOMAD_ALLOC_INDEX}", "DynamicPorts": [{"Label": "http", "To": 8080}]}
    submit(agent, "pair", [task(driver, "web", web, ports=["http"]), task(driver, "asks", asks)], network)
    a = agent.allocs("pair")[0]
    name = f"paddock-network-{a['ID']}"
    said(agent, a, "asks", "hello\nasked\n")
    text = said(agent, a, "web", "here=")
    info = agent.get(f"/v1/allocation/{a['ID']}")
    p = info["AllocatedResources"]["Shared"]["Ports"][0]
    c = inspect(engine, name)
    assert c["HostConfig"]["PortBindings"]["8080/tcp"] == [{"HostIp": p["HostIP"], "HostPort": str(p["Value"])}], c["HostConfig"]
    assert text == f"here={info['NetworkStatus']['Address']}:8080=ours-0\n", (text, info["NetworkStatus"])
    assert not inspect(engine, f"web-{a['ID']}")["HostConfig"]["PortBindings"]
    # the agent is killed: nothing changes; the network is removed: the next start makes it again
    os.kill(agent.daemons()["agent"], signal.SIGKILL)
    agent.wait_ready()
    assert inspect(engine, name)["Id"] == c["Id"] and agent.allocs("pair")[0]["ID"] == a["ID"]
    engine.run(*(["kill"] if driver == "podman" else ["rm", "-f"]), name)  # podman removes none that others have joined
    for t in ("web", "asks"):
        engine.run("kill", f"{t}-{a['ID']}", check=False)
    agent.until(lambda: agent.cli("alloc", "logs", "-task", "asks", a["ID"], check=None).count("hello\nasked\n") == 2, "the group in another network")
    assert inspect(engine, name)["State"]["Pid"] not in (0, c["State"]["Pid"])
    # none: loopback alone, and shared
    submit(agent, "none", [task(driver, "web", web), task(driver, "asks", asks + " " + "$(true)")], {"Mode": "none"})
    b = agent.allocs("none")[0]
    said(agent, b, "asks", "hello\nasked\n")
    # what is the group's is not the task's, and no container of another engine can be in it
    other = {"docker": "podman", "podman": "docker"}[driver]
    for job, tasks, why in (("twice", [task(driver, "web", web, hostname="mine")], "hostname: the container is in the network of its group"),
                            ("mixed", [task(driver, "web", web), task(other, "other", web)], "of one engine: ")):
        status, _, data = register(agent, job, tasks, {"Mode": "bridge"})
        assert status != 200 and why in data.decode(), (status, data)
    for job in ("pair", "none"):
        agent.cli("job", "stop", "-detach", job)
    agent.until(lambda: not engine.text("ps", "-aq"), "removed containers and networks")
