# SPDX-License-Identifier: Apache-2.0
"""The differences that paddock-nomad(7) names: (request, difference, words of the page), the first two as regular
expressions over what compare prints. compare fails when the words are not on the page."""

WORDS = "One that neither has is answered 404 with words, which Nomad leaves empty."
EMPTY = "Members that are empty are written where Nomad leaves some of them out"
NOTHING = "What answers nothing answers null , where Nomad may send no body at all."

KNOWN = [
    # requests
    (r"", r"status: .* \| 501 .*(is not in Paddock|Enterprise)", "An endpoint of Nomad's that is not built yet is answered 501"),
    (r"", r"words: b'' \| b'there is no endpoint", WORDS),
    (r"", r"header content-type: None \| text/plain", WORDS),
    (r"^GET /v1/job$|^GET /v1///jobs", r"status: 307|header content-type|words", "A redirect has no page"),
    (r"^GET /(ui/)?$", r"", "is another one, of the same addresses"),
    (r"^HEAD", r"status: 405", "is answered where GET is, which Nomad answers 405."),
    (r"^PUT /v1/job/[a-z-]*/summary", r"status: 200.* \| 405", "and so is a method that an endpoint does not have"),
    (r"^PUT /v1/client/metadata", r"status: 405", "is taken wherever POST is"),
    (r"client/fs", r"status: 200 .* \| 4", "The answer to a wrong request on files"),
    (r"/stats", r"status: 200 .* \| 404", "Stats of a task or an allocation that the client does not run are 404"),
    (r"SIGNOPE", r"status: 200 .* \| 400", "Signals that there are not are refused"),
    (r"=(maybe|abc|-1|x)|Priority", r"status: (200|500) .* \| 400", "Malformed parameters are always refused, also where Nomad ignores them"),
    (r"case=Priority", r"status: 400 .* \| 200", "Bodies may have durations as text"),
    (r"next_token", r"list", "In a list without pages a next_token has no effect"),
    (r"", r"status: [45]00 .* \| (404|403|400|409)", "An id that is not found is 404, what is wrong with a request 400, and what its state forbids 409"),
    (r"region=mars", r"status: 200 .* \| 500 'No path to region", "A region of which no server is there is refused"),
    (r"^OPTIONS", r"", "a preflight request is answered 405"),
    (r"Origin", r"header access-control", "No answer has Access-Control-Allow-Origin"),
    (r"", r"header vary: (Accept-Encoding|Origin|.*) \| None", "is sent with what is compressed"),
    (r"gc$|force-leave", r"header content-type|header x-nomad-index", NOTHING),
    (r"^GET /v1/node/", r"\.(LastReport|LastHeardIndex): absent", "It has LastReport and LastHeardIndex"),
    (r"", r"body: b'.*' \| b'null'$", NOTHING),
    (r"^(PUT|DELETE) ", r"\.KnownLeader: empty \| bool", "is true in the answer to a write"),
    (r"eligibility", r"(Index|index): .*(0|empty) \| ", "Setting a node's eligibility to what it is answers the present index"),
    (r"^DELETE /v1/job/nope", r"(I|-i)ndex: (0|empty) ", "an unknown job that is deleted, where Nomad says 0"),
    (r"", r"\.Job\.(Status|Stable): |Versions\[\]\.(Status|Stable): ",
     "have the status that the job had when it was registered"),
    (r"/deployments?$", r"ModifyTime", "A deployment has the time at which it was made"),
    (r"cmp-sys|_sys\}|DeploymentID", r"Deployment|list \| empty|rows: 200", "system jobs have no deployments in this release"),
    (r"jwks", r"", "answers an empty set of keys"),
    # jobs
    (r"", r"\.Identity: object \| null|\.Consul: object \| null", "Paddock takes the defaults of both and prints null ,"),
    (r"/job/cmp-ba|allocation/\{A_ba", r"\.Update: object \| null", "A batch job has no Update"),
    (r"", r"\.Mode: absent \| string", "is printed with host ,"),
    (r"/plan", r"\.Diff\..*(Annotations|Objects): |CreatedEvals|AllocationTime|(I|-i)ndex: (empty|0) ", "The difference in a plan"),
    # shapes
    (r"", r"~ ", EMPTY),
    (r"", r"ResourcesExhausted: object \| null|NodesAvailable: object \| null", EMPTY),
    (r"", r"\.(MemoryMaxMB|TaskLifecycles|Device|NodePool|NodeModifyIndex): ", "Where Nomad fills what it has twice"),
    (r"", r"PlanAnnotations: object|\.Processors: object|Topology", "of an evaluation, Topology of a node's processors"),
    (r"", r"SigningKeyID|IdentitySigningKeyID", "are empty, as there are no identities yet"),
    (r"", r"Events\[\]\.(DriverMessage|Type:.*Driver)|driver_message", "an event of each task"),
    # the event that limits are not enforced is one of the last ten, in place of the set-up
    (r"", r"Events\[\]\.(Message: empty/string \| empty|Type: .*Task Setup)", "an event of each task"),
    (r"/node|/stats", r"\.(Drivers|Attributes\.(driver|plugins|isolation|nomad\.service|unique|paddock|os\.))|\.Version: =", "A node tells the drivers that Paddock has"),
    (r"/node|metadata", r"(Meta|Static)\.connect\.", "nor of connect. in its meta"),
    (r"/node", r"Events\[\]\.CreateIndex", "The events of a node have"),
    (r"/node/", r"Events\[\]\.Details: null/object", "does not tell whether its deadline was reached"),
    (r"/node", r"LastDrain\.AccessorID", "names nobody as who drained a node"),
    (r"/node/.*/evaluate", r"", "The answer to the evaluation of a node"),
    (r"agent/self|members", r"\.(config|stats|member|Members\[\])\.?", "durations are numbers of nanoseconds, and blocks that are not configured are null ."),
    (r"/stats", r"\.(ResourceUsage|Tasks|Timestamp|AllocDirStats|DiskStats|CPU|Memory)", "Stats of an allocation hold"),
    (r"metrics", r"", "there are no Samples (summaries) and no Counters"),
    (r"scheduler/configuration", r"(I|-i)ndex|NodeLimit|PreemptionConfig", "that was never set has index 0"),
    (r"fs/stat", r"ContentType", "is not told: nobody reads a file"),
    (r"cmp-svc/allocations$", r": empty \| list", "The allocations of a purged job are listed until they are collected"),
    (r"^GET /v1/allocation/\{A_svc\}$", r"Events\[\]\.(Details\.(message|task_signal)|TaskSignal)", "the last ten events"),
    (r"^BLOCK /v1/job/cmp-none", r"at the end", "Who waits for a list by prefix, job, node or evaluation, or for what is not there"),
]
