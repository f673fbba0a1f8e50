/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands, in the order help lists them. A name of several words makes the words
 * before the last one a parent.
 */
#include "cli/command.h"

#define PATH_HELP \
    "The path names a job file in HCL (or in JSON with -json); \"-\" reads standard input. "

const struct command commands[] = {
    /* common */
    {"run", "[options] <path>", "Run a new job or update an existing one", NULL, cmd_job_run,
     "job run", true},
    {"stop", "[options] <job>", "Stop a running job", NULL, cmd_job_stop, "job stop", true},
    {"status", "[options] [id]", "Show the status of whatever the id belongs to",
     "Looks the id up among jobs, allocations, nodes and evaluations and shows what it finds. "
     "Without an id all jobs are listed.",
     cmd_status, NULL, true},
    {"alloc", "", "Interact with allocations", NULL, NULL, NULL, true},
    {"job", "", "Interact with jobs", NULL, NULL, NULL, true},
    {"node", "", "Interact with nodes", NULL, NULL, NULL, true},
    {"agent", "[options]", "Run an agent: server, client or both", NULL, NULL, NULL, true},
    /* others */
    {"agent-info", "[options]", "Show what the agent says of itself",
     "Prints the statistics of the agent at -address, one section per part.", cmd_agent_info, NULL,
     false},
    {"deployment", "", "Interact with deployments", NULL, NULL, NULL, false},
    {"eval", "", "Interact with evaluations", NULL, NULL, NULL, false},
    {"exec", "[options] <allocation> <command> [args...]", "Run a command in a running task", NULL,
     cmd_alloc_exec, "alloc exec", false},
    {"fmt", "[options] [path...]", "Rewrite files of jobs and configurations in canonical layout",
     "Formats files in HCL: .nomad and .hcl below the paths, which are files or directories; here "
     "without any. \"-\" formats standard input to standard output. Only blanks change.",
     cmd_fmt, NULL, false},
    {"fs", "[options] <allocation> [path]", "Inspect the files of an allocation", NULL,
     cmd_alloc_fs, "alloc fs", false},
    {"init", "[options] [file]", "Create an example job file", NULL, cmd_job_init, "job init",
     false},
    {"inspect", "[options] <job>", "Print a job as the servers have it", NULL, cmd_job_inspect,
     "job inspect", false},
    {"isolate", "", "Run and explain isolation without a server", NULL, NULL, NULL, false},
    {"logs", "[options] <allocation> [task]", "Print the logs of a task", NULL, cmd_alloc_logs,
     "alloc logs", false},
    {"migrate", "", "Come from Nomad", NULL, NULL, NULL, false},
    {"operator", "", "Look after the fleet", NULL, NULL, NULL, false},
    {"plan", "[options] <path>", "Show what running a job file would change", NULL, cmd_job_plan,
     "job plan", false},
    {"server", "", "Interact with servers", NULL, NULL, NULL, false},
    {"start", "[options] <job>", "Start a job that was stopped", NULL, cmd_job_start, "job start",
     false},
    {"system", "", "Interact with the system", NULL, NULL, NULL, false},
    {"ui", "-show-url [id]", "Print where Nomad has its web interface",
     "Prints the address at which Nomad has its web interface, or the page there of a job, an "
     "allocation or a node. Paddock has no web interface yet.",
     cmd_ui, NULL, false},
    {"validate", "[options] <path>", "Check a job file", NULL, cmd_job_validate, "job validate",
     false},
    {"version", "", "Print the version",
     "Prints the release of Paddock and the release of "
     "Nomad whose interface it speaks.",
     cmd_version, NULL, false},
    /* job */
    {"job allocs", "[options] <job>", "List the allocations of a job",
     "Lists the allocations of a job, newest first.", cmd_job_allocs, NULL, false},
    {"job deployments", "[options] <job>", "List the deployments of a job",
     "Lists the deployments of a job, newest first.", cmd_job_deployments, NULL, false},
    {"job dispatch", "[options] <job> [input]", "Dispatch an instance of a parameterized job",
     "Makes a job of a parameterized one. The input is its payload: the name of a file, or \"-\" "
     "for "
     "standard input. The evaluation is watched until it ends.",
     cmd_job_dispatch, NULL, false},
    {"job eval", "[options] <job>", "Evaluate a job anew",
     "Makes an evaluation of the job, which places what is missing. It is watched until it ends.",
     cmd_job_eval, NULL, false},
    {"job explain", "[options] <job>", "Say why a job can be placed where, and not elsewhere",
     "Says for each node whether one more allocation of the job could be placed there, and why "
     "not, "
     "grouped by reason: also of a job that waits. Nomad has no such command.",
     cmd_job_explain, NULL, false},
    {"job history", "[options] <job>", "Show the versions of a job",
     "Shows the versions of a job that the servers keep, newest first.", cmd_job_history, NULL,
     false},
    {"job init", "[options] [file]", "Create an example job file",
     "Writes an example job file that runs as it is. The default name is example.nomad.hcl; a file "
     "that exists is left alone.",
     cmd_job_init, NULL, false},
    {"job inspect", "[options] <job>", "Print a job as the servers have it",
     "Prints the job as the API has it, as JSON.", cmd_job_inspect, NULL, false},
    {"job periodic", "", "Interact with periodic jobs", NULL, NULL, NULL, false},
    {"job periodic force", "[options] <job>", "Launch a periodic job now",
     "Launches an instance of a periodic job, whenever it is due and whatever runs of it. The "
     "evaluation is watched until it ends.",
     cmd_job_periodic_force, NULL, false},
    {"job plan", "[options] <path>", "Show what running a job file would change",
     PATH_HELP "Nothing is submitted. Exit code 0: nothing would be created or destroyed, 1: "
               "something would, 255: an error.",
     cmd_job_plan, NULL, false},
    {"job promote", "[options] <job>", "Promote the canaries of a job",
     "Promotes the canaries of the job's latest deployment; see deployment promote.",
     cmd_job_promote, NULL, false},
    {"job restart", "[options] <job>", "Restart the allocations of a job",
     "Restarts the running tasks of a job's allocations in place, or replaces the allocations, "
     "batch by "
     "batch.",
     cmd_job_restart, NULL, false},
    {"job revert", "[options] <job> <version|tag>", "Go back to an earlier version of a job",
     "Registers an earlier version of a job anew. The evaluation and its deployment are watched "
     "until they "
     "end.",
     cmd_job_revert, NULL, false},
    {"job run", "[options] <path>", "Run a new job or update an existing one",
     PATH_HELP "The evaluation is watched until it ends. Exit code 1: an error, 2: not everything "
               "could be placed.",
     cmd_job_run, NULL, false},
    {"job start", "[options] <job>", "Start a job that was stopped",
     "Registers a job that was stopped once more, as the servers have it. The evaluation is "
     "watched "
     "until it ends.",
     cmd_job_start, NULL, false},
    {"job status", "[options] [job]", "Show a job, or list all",
     "Lists all jobs, or shows one: its summary and allocations. A prefix of the id will do when "
     "it is the only one.",
     cmd_job_status, NULL, false},
    {"job stop", "[options] <job>...", "Stop jobs",
     "Stops the allocations of the named jobs. The jobs are kept, stopped, until garbage "
     "collection, or forgotten at once with -purge.",
     cmd_job_stop, NULL, false},
    {"job tag apply", "[options] -name <tag> <job>", "Give a version of a job a name",
     "Tags a version of the job: it is kept as long as it has the tag, and job revert takes the "
     "tag for its "
     "number.",
     cmd_job_tag_apply, NULL, false},
    {"job tag unset", "-name <tag> <job>", "Take a version's name away",
     "Removes a tag from the job; the version stays as long as others of its age.",
     cmd_job_tag_unset, NULL, false},
    {"job validate", "[options] <path>", "Check a job file",
     PATH_HELP "The file is parsed here and checked by a server. Exit code 1: it is not valid.",
     cmd_job_validate, NULL, false},
    /* migrate */
    {"migrate check", "[options] <address|path>...", "Check what of a Nomad runs here unchanged",
     "Reads the jobs of a running Nomad by its API (http://host:4646), or job files and "
     "configurations of "
     "agents from directories (*.nomad, *.hcl, *.json), and tells for each job whether it runs "
     "here "
     "unchanged, differs or is refused, where, and what to do. Nothing is changed. Exit code 0: "
     "all "
     "unchanged, 1: something differs, 2: something is refused, 255: something cannot be read.",
     cmd_migrate_check, NULL, false},
    /* node */
    {"node config", "[options] [<server>...]", "Show or set the servers that a client knows",
     "With -servers: lists the servers that the addressed client talks to. With -update-servers: "
     "it "
     "talks to those that are given, until they tell it of others.",
     cmd_node_config, NULL, false},
    {"node drain", "[options] <node>", "Move all work off a node",
     "The node takes no new allocations, and those that it has are stopped here and placed "
     "elsewhere, as their groups' migrate blocks say. Batch jobs are waited for, system jobs end "
     "last. The drain is watched until it ends; leaving the watch does not end the drain.",
     cmd_node_drain, NULL, false},
    {"node eligibility", "[options] <node>", "Allow or stop new work on a node",
     "Marks a node as eligible or not for new allocations. What runs there goes on.",
     cmd_node_eligibility, NULL, false},
    {"node explain", "[options] <job> <node>", "Say why a node takes a job, or does not",
     "Says whether one more allocation of the job could be placed on the node, and why not. "
     "Nomad has no such command.",
     cmd_node_explain, NULL, false},
    {"node meta apply", "[options] <key>=<value>...", "Set metadata of a node",
     "Sets metadata of a node while it runs, over what its configuration says. It is kept across "
     "restarts of the agent.",
     cmd_node_meta_apply, NULL, false},
    {"node meta read", "[options]", "Show the metadata of a node",
     "Shows the metadata that holds, what of it was set at run time, and what the configuration "
     "says.",
     cmd_node_meta_read, NULL, false},
    {"node status", "[options] [node]", "Show a node, or list all",
     "Lists all nodes, or shows one with its resources and allocations.", cmd_node_status, NULL,
     false},
    /* alloc */
    {"alloc checks", "[options] <allocation>", "Show the checks of an allocation",
     "Shows what the allocation's node knows of the checks of its services.", cmd_alloc_checks,
     NULL, false},
    {"alloc exec", "[options] <allocation> <command> [args...]", "Run a command in a running task",
     "Runs a command in a task, as the task's user and confined as the task is. Its output and "
     "exit code "
     "become this command's; it is killed when this command ends. Options end at the allocation. "
     "In a "
     "terminal session \"~.\" at the beginning of a line ends it.",
     cmd_alloc_exec, NULL, false},
    {"alloc fs", "[options] <allocation> [path]", "Inspect the files of an allocation",
     "Lists a directory or prints a file of the allocation. The path starts at the allocation's "
     "directory.",
     cmd_alloc_fs, NULL, false},
    {"alloc logs", "[options] <allocation> [task]", "Print the logs of a task",
     "Prints the standard output of a task, or its standard error. The task may be left out when "
     "there is only one.",
     cmd_alloc_logs, NULL, false},
    {"alloc pause", "[options] <allocation> [task]", "Freeze a task, or let it go on",
     "Stops all processes of the named task, or of all running tasks, where they are: they keep "
     "their "
     "memory and use no processor. Nomad has no such command: no schedule is needed.",
     cmd_alloc_pause, NULL, false},
    {"alloc restart", "[options] <allocation> [task]", "Restart an allocation or a task",
     "Restarts the named task, or all running tasks, in place.", cmd_alloc_restart, NULL, false},
    {"alloc signal", "[options] <allocation> [task]", "Send a signal to a task",
     "Sends a signal to the named task, or to all running tasks.", cmd_alloc_signal, NULL, false},
    {"alloc status", "[options] <allocation>", "Show an allocation",
     "Shows an allocation: its tasks, their recent events, ports and resources.", cmd_alloc_status,
     NULL, false},
    {"alloc stop", "[options] <allocation>", "Stop an allocation and place a new one",
     "Stops the allocation; the scheduler places another one. The evaluation is watched until it "
     "ends.",
     cmd_alloc_stop, NULL, false},
    {"alloc why", "[options] <allocation>", "Say why an allocation is where it is",
     "Shows of what its tasks died, what comes next, what was known when it was placed, and where "
     "one more of its "
     "group could go "
     "now. Nomad has no such command.",
     cmd_alloc_why, NULL, false},
    /* deployment */
    {"deployment fail", "[options] <deployment>", "Mark a deployment as failed",
     "Marks a deployment as failed: it places nothing more, and a job with auto_revert goes back "
     "to its "
     "latest stable version.",
     cmd_deployment_fail, NULL, false},
    {"deployment list", "[options]", "List deployments", "Lists deployments, newest first.",
     cmd_deployment_list, NULL, false},
    {"deployment pause", "[options] <deployment>", "Pause a deployment",
     "Pauses a deployment: it places and stops nothing more until it is resumed.",
     cmd_deployment_pause, NULL, false},
    {"deployment promote", "[options] <deployment>", "Promote the canaries of a deployment",
     "Promotes canaries that are healthy: they stay, and the other allocations of their groups are "
     "updated. To go back instead: deployment fail, or job revert.",
     cmd_deployment_promote, NULL, false},
    {"deployment resume", "[options] <deployment>", "Resume a paused deployment",
     "Lets a paused deployment go on.", cmd_deployment_resume, NULL, false},
    {"deployment status", "[options] [deployment]", "Show a deployment, or list all",
     "Shows a deployment: how much of each group is placed and healthy. Without an id all are "
     "listed.",
     cmd_deployment_status, NULL, false},
    {"deployment unblock", "[options] <deployment>", "Unblock a blocked deployment",
     "Lets a deployment of a multiregion job go on that waits for other regions.",
     cmd_deployment_unblock, NULL, false},
    /* eval */
    {"eval delete", "[options] [evaluation]", "Delete evaluations, in an emergency",
     "Deletes an evaluation, or those that a filter matches: of a backlog that nobody wants worked "
     "off. The scheduler must be paused before (operator scheduler set-config "
     "-pause-eval-broker=true), and goes on after (=false). Evaluations that have allocations stay "
     "while their job is not stopped.",
     cmd_eval_delete, NULL, false},
    {"eval list", "[options]", "List evaluations", "Lists evaluations, newest first.",
     cmd_eval_list, NULL, false},
    {"eval status", "[options] <evaluation>", "Show an evaluation",
     "Shows an evaluation and why something could not be placed.", cmd_eval_status, NULL, false},
    /* isolate */
    {"isolate explain", "[options] <path>", "Say what the tasks of a job file may do",
     PATH_HELP "Nothing is submitted; no server is asked.", cmd_isolate_explain, NULL, false},
    {"isolate probe", "[alloc_dir]", "Show what this kernel offers for isolation",
     "Tries the features that the sandbox uses and says which are missing, and why. As root it "
     "tries them all; limits on disk in the directory that is named.",
     cmd_isolate_probe, NULL, false},
    {"isolate run", "[options] <spec> | -- <command> [args...]",
     "Run one program in the exec sandbox",
     "Runs a command, or a launch spec in JSON, through a warden and shim of its own, without any "
     "server. As root. Its output and exit code (128 and the signal) become this command's; an "
     "interrupt kills it.",
     cmd_isolate_run, NULL, false},
    /* operator */
    {"operator api", "[options] <path>", "Send a request to the HTTP API",
     "Sends a request with the address, region, namespace and token of every command, and prints "
     "the "
     "answer, whatever its status is. What is piped in is its body.",
     cmd_operator_api, NULL, false},
    {"operator metrics", "[options]", "Print the metrics of an agent",
     "Prints the metrics of the addressed agent as the API has them.", cmd_operator_metrics, NULL,
     false},
    {"operator gossip keyring generate", "", "Make a key of gossip",
     "Prints a new key of 32 bytes, for server.encrypt or operator gossip keyring install.",
     cmd_keyring_generate, NULL, false},
    {"operator gossip keyring install", "[options] <key>", "Give all servers another key of gossip",
     "Installs a key at all servers of all regions: they read what is encrypted by it, and encrypt "
     "by the one before until it is used.",
     cmd_keyring_install, NULL, false},
    {"operator gossip keyring list", "[options]", "List the keys of gossip",
     "Lists the keys of gossip that servers have, the one in use among them.", cmd_keyring_list,
     NULL, false},
    {"operator gossip keyring remove", "[options] <key>", "Take a key of gossip from all servers",
     "Removes a key that is not in use from all servers of all regions.", cmd_keyring_remove, NULL,
     false},
    {"operator gossip keyring use", "[options] <key>", "Encrypt gossip by another key",
     "Has all servers of all regions encrypt by a key that is installed; nothing changes where one "
     "of "
     "them has it not.",
     cmd_keyring_use, NULL, false},
    {"operator raft list-peers", "[options]", "Show the servers of the cluster",
     "Shows the servers that vote, and which of them leads.", cmd_operator_raft_list, NULL, false},
    {"operator raft remove-peer", "[options]", "Take a server out of the cluster",
     "Takes a server out of the cluster, whether it is alive or not. It does not become a member "
     "again with the data that it has. The leader cannot be removed: let another one lead first.",
     cmd_operator_raft_remove, NULL, false},
    {"operator raft transfer-leadership", "[options]", "Let another server lead",
     "Hands the leadership over to the server that is named, and waits until it leads: no write is "
     "lost, and none waits for long.",
     cmd_operator_raft_transfer, NULL, false},
    {"operator scheduler get-config", "[options]", "Show the configuration of the scheduler",
     "Shows what all schedulers of the region keep to.", cmd_operator_scheduler_get, NULL, false},
    {"operator scheduler set-config", "[options]", "Change the configuration of the scheduler",
     "Changes what is given and leaves the rest as it is.", cmd_operator_scheduler_set, NULL,
     false},
    {"operator scheduler simulate", "[options]", "Say what draining nodes would move, and where",
     "Places what runs on the named nodes elsewhere, on a copy of the state: nothing changes. Exit "
     "code 2: "
     "not everything would find a place. Nomad has no such command.",
     cmd_operator_scheduler_simulate, NULL, false},
    /* server, system */
    {"server force-leave", "[options] <server>", "Take a server that failed out of the cluster",
     "Takes a server that failed out of the cluster, so that it counts for no majority any more. "
     "It does not become a member again with the data that it has.",
     cmd_server_force_leave, NULL, false},
    {"server join", "[options] <address>...", "Have a server join others",
     "Asks other servers, by the addresses of their gossip port (4648 where none is said). A new "
     "server joins the cluster that it hears of; one that is of a cluster shows it to new ones.",
     cmd_server_join, NULL, false},
    {"server members", "[options]", "List the servers", "Lists the known servers and the leader.",
     cmd_server_members, NULL, false},
    {"system gc", "[options]", "Collect garbage now",
     "Asks the servers to forget jobs, evaluations, allocations and nodes that ended.",
     cmd_system_gc, NULL, false},
    /* older spellings, not listed */
    {"alloc-status", "", NULL, NULL, cmd_alloc_status, "alloc status", false},
    {"eval-status", "", NULL, NULL, cmd_eval_status, "eval status", false},
    {"node-drain", "", NULL, NULL, cmd_node_drain, "node drain", false},
    {"node-status", "", NULL, NULL, cmd_node_status, "node status", false},
    {"server-force-leave", "", NULL, NULL, cmd_server_force_leave, "server force-leave", false},
    {"server-join", "", NULL, NULL, cmd_server_join, "server join", false},
    {"server-members", "", NULL, NULL, cmd_server_members, "server members", false},
};
const size_t commands_n = ARRAY_LEN(commands);
