# SPDX-License-Identifier: Apache-2.0
"""Jobs of one task with artifacts, that run to their end: what the task printed, or why it did not start."""


class ArtifactJobs:
    def __init__(self, agent):
        self.agent, self.number = agent, 0

    def submit(self, name, script, *artifacts, driver="exec", restarts=0, want=200, disk=20):
        task = {"Name": "t", "Driver": driver, "User": "nobody", "Artifacts": list(artifacts),
                "Config": {"command": "/bin/sh", "args": ["-c", script]}, "Resources": {"CPU": 20, "MemoryMB": 32},
                "Env": {"FILE": "hello.txt"}, "LogConfig": {"MaxFiles": 1, "MaxFileSizeMB": 1}}
        restart = {"Attempts": restarts, "Interval": 600 * 10**9, "Delay": 10**9 // 4, "Mode": "fail"}
        status, _, data = self.agent.request("PUT", "/v1/jobs", {"Job": {
            "ID": name, "Name": name, "Type": "batch", "Datacenters": ["*"], "TaskGroups": [
                {"Name": "g", "Tasks": [task], "EphemeralDisk": {"SizeMB": disk}, "RestartPolicy": restart,
                 "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}]}})
        assert status == want, (status, data)
        return data.decode()

    def events(self, name):
        a = self.agent.get(f"/v1/job/{name}/allocations")[0]
        return a["ID"], a["TaskStates"]["t"]["Events"]

    def ended(self, name, status="complete"):
        self.agent.blocking(f"/v1/job/{name}/allocations",
                            lambda l: l and l[0]["ClientStatus"] in ("complete", "failed") and l, f"the end of {name}")
        alloc, list_ = self.events(name)
        got = self.agent.get(f"/v1/allocation/{alloc}")["ClientStatus"]
        assert got == status, (got, [(e["Type"], e["DisplayMessage"]) for e in list_])
        return alloc, list_

    def run(self, script, *artifacts, **more):
        """What the task prints, once its artifacts are there."""
        self.number += 1
        name = f"a{self.number}"
        self.submit(name, script, *artifacts, **more)
        alloc, list_ = self.ended(name)
        types = [e["Type"] for e in list_]
        assert "Downloading Artifacts" in types and types.index("Downloading Artifacts") < types.index("Started"), types
        return self.agent.cli("alloc", "logs", alloc)

    def refuse(self, *artifacts, **more):
        """The text of the event that says why."""
        self.number += 1
        name = f"a{self.number}"
        self.submit(name, "echo ran", *artifacts, **more)
        _, list_ = self.ended(name, "failed")
        failed = [e for e in list_ if e["Type"] == "Failed Artifact Download"]
        assert failed and "Started" not in [e["Type"] for e in list_], list_
        assert failed[0]["Details"]["download_error"] == failed[0]["DisplayMessage"], failed[0]
        return failed[0]["DisplayMessage"]


def has(text, *parts):
    for p in parts:
        assert p in text, f"no {p!r} in {text!r}"
