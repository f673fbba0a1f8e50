# SPDX-License-Identifier: Apache-2.0
"""A group of containers with a network of its own, by the engine of a test."""
import json
import os
import signal

from paddock_test import named_child

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


def mixed_group(agent, engine, driver):
    """A container and a process of the warden's in one network: they speak on 127.0.0.1, whatever is killed, and nothing is left."""
    web = "mkdir -p /tmp/w; echo hello >/tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"
    # a line for each answer: "hello", or "none"
    asks = ("import http.client, time\n"
            "while True:\n"
            "    try:\n"
            "        c = http.client.HTTPConnection('127.0.0.1', 8080, timeout=5)\n"
            "        c.request('GET', '/index.html')\n"
            "        print(c.getresponse().read().decode().strip(), flush=True)\n"
            "    except OSError:\n"
            "        print('none', flush=True)\n"
            "    time.sleep(0.05)\n")
    process = {"Name": "asks", "Driver": "exec", "Config": {"command": "/usr/bin/python3", "args": ["-u", "-c", asks]},
               "Resources": {"CPU": 50, "MemoryMB": 64}, "KillTimeout": 10**8}
    network = {"Mode": "bridge", "DynamicPorts": [{"Label": "http", "To": 8080}]}

    def count(a, word="hello"):
        return agent.cli("alloc", "logs", "-task", "asks", a["ID"], check=None).split().count(word)

    def goes_on(a, what):
        n = count(a)
        agent.until(lambda: count(a) >= n + 3, f"answers after {what}")

    submit(agent, "mix", [task(driver, "web", web), process], network)
    a = agent.allocs("mix")[0]
    goes_on(a, "the start")
    info = agent.get(f"/v1/allocation/{a['ID']}")
    env = agent.cli("alloc", "exec", "-task", "asks", a["ID"], "/bin/sh", "-c", "echo $NOMAD_ALLOC_ADDR_http; readlink /proc/self/ns/net")
    address, ns = env.split()
    assert address == f"{info['NetworkStatus']['Address']}:8080", (env, info["NetworkStatus"])
    pause = inspect(engine, f"paddock-network-{a['ID']}")
    assert os.readlink(f"/proc/{pause['State']['Pid']}/ns/net") == ns, (ns, pause["State"])
    # nothing of ours is needed for them to speak, and all of it finds them again
    before = count(a, "none")
    for victim in ("agent", "warden", "hand", "all"):
        if victim == "all":
            agent.kill_all()
            agent.start()
        else:
            os.kill(named_child(agent.proc.pid, "paddock-hand") if victim == "hand" else agent.daemons()[victim], signal.SIGKILL)
            agent.wait_ready()
        goes_on(a, f"kill -9 of {victim}")
    agent.until(lambda: agent.get("/v1/allocation/" + a["ID"])["ClientStatus"] == "running", "the allocation")
    assert count(a, "none") == before, "an answer was missed"
    states = agent.get("/v1/allocation/" + a["ID"])["TaskStates"]
    assert all(s["Restarts"] == 0 for s in states.values()), states
    # each of them is started again: into the same network
    agent.until(lambda: agent.cli("alloc", "restart", "-task", "asks", a["ID"], check=None) is not None and goes_on(a, "a restart of the process") is None, "a restart")
    engine.run("kill", f"web-{a['ID']}")
    agent.until(lambda: agent.get("/v1/allocation/" + a["ID"])["TaskStates"]["web"]["Restarts"] == 1, "a restart of the container")
    goes_on(a, "the container's restart")
    assert inspect(engine, f"paddock-network-{a['ID']}")["Id"] == pause["Id"]
    # the network goes: the next start of a container makes another one, and the process follows
    engine.run(*(["kill"] if driver == "podman" else ["rm", "-f"]), f"paddock-network-{a['ID']}")
    engine.run("kill", f"web-{a['ID']}")
    agent.until(lambda: any("made again" in e["DisplayMessage"] for e in agent.get("/v1/allocation/" + a["ID"])["TaskStates"]["asks"]["Events"]), "the process's restart")
    goes_on(a, "another network")
    # an update, beside which the old one goes
    submit(agent, "mix", [task(driver, "web", web), {**process, "Env": {"V": "2"}}], network)
    b = agent.until(lambda: [x for x in agent.get("/v1/job/mix/allocations") if x["JobVersion"] == 1 and x["ClientStatus"] == "running"], "the new version")[0]
    goes_on(b, "the update")
    agent.until(lambda: agent.get("/v1/allocation/" + a["ID"])["ClientStatus"] == "complete", "the end of the old one")
    agent.until(lambda: a["ID"] not in engine.text("ps", "-a", "--format", "{{.Names}}"), "removed containers of the old one")
    # a drain, after which it is placed again
    node = agent.get("/v1/nodes")[0]["ID"]
    agent.cli("node", "drain", "-enable", "-yes", "-detach", "-deadline", "5s", node)
    agent.until(lambda: agent.get("/v1/allocation/" + b["ID"])["ClientStatus"] == "complete" and not engine.text("ps", "-aq"), "nothing on a drained node")
    agent.cli("node", "drain", "-disable", "-yes", node)
    c = agent.until(lambda: [x for x in agent.get("/v1/job/mix/allocations") if x["ClientStatus"] == "running"], "another allocation")[0]
    goes_on(c, "the drain")
    agent.cli("job", "stop", "-detach", "mix")
    agent.until(lambda: not engine.text("ps", "-aq"), "removed containers and networks")
    agent.until(lambda: not os.listdir(f"{agent.dir}/data/networks"), "removed records")
