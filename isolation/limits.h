/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of isolation/, named. `make check-docs` holds paddock-limits(7) against this file:
 * the comment of each is its text there.
 */
#ifndef PADDOCK_ISOLATION_LIMITS_H
#define PADDOCK_ISOLATION_LIMITS_H

enum {
    /* --- connections of the agent --- */
    WARDEN_CONNS_MAX = 8,          /* connections; more are closed at once */
    WARDEN_OUT_MAX = 8 << 20,      /* bytes of answers that wait for the agent to read them */
    PROTO_PACKET_MAX = 384 * 1024, /* bytes of a request or an answer */
    PROTO_DECODE_MAX = 4 << 20,    /* bytes of memory of a decoded request */
    PACKET_FDS_MAX = 8,            /* file descriptors of an answer */
    PROTO_LIST_MAX = 256,          /* task records of one answer; the agent asks on */
    PROTO_READDIR_MAX = 256,       /* directory entries of one answer; the agent asks on */
    WARDEN_PUT_MAX = 128 * 1024,   /* bytes written by one request */
    WARDEN_OUTSTANDING_MAX = 4096, /* requests of the agent without an answer */
    WARDEN_LOSSES_MAX = 5, /* connections lost with a request; two, if it was the last one sent */
    WARDEN_SUSPECT_MS = 600000,  /* until such a request is sent again */
    WARDEN_QUEUE_MAX = 16 << 20, /* bytes of requests that wait in the agent */

    /* --- tasks --- */
    WARDEN_TASKS_MAX = 8192,           /* tasks, and records of tasks that have ended */
    WARDEN_JOBS_MAX = 64,              /* directories that are removed at the same time */
    WARDEN_FDS_KEPT = 64,              /* file descriptors kept for what is no launch */
    WARDEN_LAUNCH_MS = 30000,          /* a launch; beyond, everything of it is killed */
    WARDEN_SEAL_MS = 600000,           /* the sealing of its files besides */
    WARDEN_EXECS_MAX = 128,            /* commands that run in tasks beside them */
    WARDEN_EXECS_TASK_MAX = 16,        /* of them in one task */
    WARDEN_EXEC_MS = 10000,            /* the start of one; beyond, it is killed */
    WARDEN_CACHE_FILES = 1024,         /* downloads that a node keeps for others */
    WARDEN_HELPERS_MAX = 32,           /* programs of ours that work for tasks at the same time */
    WARDEN_HELPER_MS_MAX = 90000000,   /* the longest time of one */
    WARDEN_HELPER_PIDS_MAX = 256,      /* threads of one */
    WARDEN_HELPER_BYTES_MAX = 1 << 30, /* bytes of memory of one */
    WARDEN_USERNS_MAX = 8192,          /* allocations with a user namespace of their own */
    QUOTA_PROJECTS_MAX = 65536,        /* allocations with a limit on disk, of a file system */
    QUOTA_INODES_MIN = 1024,           /* inodes of such an allocation, however small */
    QUOTA_MB_MAX = 2147483647,         /* MiB of the largest such limit */
    QUOTA_DEPTH_MAX = 128,             /* directories within each other that change hands */
    WARDEN_FILTERS_MAX = 64,           /* system call filters of jobs that are kept compiled */
    WARDEN_PAD_MS = 10000,             /* the fork of a shim */
    WARDEN_SHIM_EXIT_MS = 100,         /* the death of a shim whose record is complete */
    WARDEN_DESTROY_MS = 15000,         /* the end of a destroyed task */
    WARDEN_RETRY_MS = 10,              /* between tries to remove a cgroup that is not empty yet */
    PAUSE_CLEAR_MS = 60000,            /* the end of what an ended pause process left */
    WARDEN_LOCK_TRIES_MAX = 100,       /* tries for the lock of the run directory, as far apart */
    WARDEN_RETRIES_MAX = 500,          /* such tries */
    WARDEN_TRASH_MS = 5000,            /* until what could not be removed is tried again; doubled */
    WARDEN_TRASH_MAX_MS = 600000,      /* the longest such pause */
    WARDEN_RECORDS_MAX = 32768,        /* task records that are read at the start */
    PLAN_BYTES_MAX = 1 << 20,          /* bytes of the plan that a shim gets */
    PLAN_ARGS_MAX = 4096,              /* arguments, and environment entries, of a task */
    PLAN_PATHS_MAX = 64,               /* directories in which the command is looked for */
    MOUNTS_OPS_MAX = 384,              /* mount operations of a launch */
    MOUNTS_BYTES_MAX = 256 * 1024,     /* bytes of their plan */
    MOUNTS_PATH_MAX = 4096,            /* bytes of a mounted path */
    MOUNTS_DEPTH_MAX = 32,             /* components of a mount target */
    MOUNTS_BYTES_PER_INODE = 1024,     /* bytes of a task's tmpfs for each file that it may hold */
    MOUNTS_PTYS_MAX = 64,              /* pseudo-terminals of a task; the machine has few */
    MOUNTS_TREES_MAX = 128,            /* host directories that are mounted in one task */
    VERITY_FILES_MAX = 16,             /* files of a task that are sealed */
    CONFINE_GROUPS_MAX = 64,           /* supplementary groups of a task */
    CONFINE_PORTS_MAX = 64,            /* TCP ports of a list of Landlock */
    CONFINE_RLIMITS_MAX = 16,          /* resource limits of a task */
    CONFINE_HOSTNAME_MAX = 64,         /* bytes of its host name */
    CONFINE_APPARMOR_MAX = 255,        /* bytes of the name of its AppArmor profile */
    CGROUP_FILES_MAX = 48,             /* limits written to its cgroup */
    CGROUP_IO_MAX = 8,                 /* disks whose use by a task is limited */
    CGROUP_HUGE_MAX = 4,               /* sizes of huge pages of the machine */
    CGROUP_CPUS_MAX = 1024,            /* processors of the machine that may be reserved */
    CGROUP_CPUS_TEXT_MAX = 5120,       /* bytes of a list of them */
    NUMA_NODES_MAX = 64,               /* memory nodes of the machine that are looked at */
    SECCOMP_INSNS_MAX = 4096,          /* instructions of a system call filter */
    SECCOMP_RULES_MAX = 1024,          /* rules of a profile */
    RECORD_CALLS_MAX = 16,             /* denied system calls of a task, each with its count */

    /* --- networks of allocations --- */
    WARDEN_NETS_MAX = 8192, /* allocations with a network namespace of their own */
    NET_PORTS_MAX = 512,    /* ports of an allocation that the host leads to it */
    NET_CONNS_MAX = 8192,   /* connections from one on the bridge that the host tracks, and no more
                               than a sixteenth of its table */
    NET_SPARES_MAX = 8,     /* network namespaces that are made ahead of time */
    NET_REFILL_MS = 50,     /* after one was taken, while there are some */
    NET_ASKED_MAX = 64,     /* requests that the network worker has at once; further ones wait */
    NET_WORKER_MS = 20000,  /* an answer of the network worker at the start of the warden */

    /* --- network accounting and policy --- */
    BPF_SLOTS_MAX = 4096, /* tasks whose packets are counted; further ones have rules, no numbers */
    BPF_LEAFS_MAX = 16384,     /* tasks that the programs in the kernel know */
    BPF_RULES_MAX = 1 << 16,   /* prefixes of all network policies; beyond, no such task starts */
    BPF_DEVICES_MAX = 1 << 14, /* devices of all tasks; beyond, no task with one starts */

    /* --- files that are read --- */
    POLICY_BYTES_MAX = 1 << 20, /* bytes of the policy file */
    USERS_LINE_MAX =
        4096, /* bytes of a line of /etc/passwd and /etc/group; longer ones are passed over */
    USERS_FILE_MAX = 4 * 1024 * 1024, /* bytes of these files */
    USERS_GROUPS_MAX = 64,            /* groups of a user */
    USERS_NAME_MAX = 32,              /* bytes of a user name */
    BASE_FILE_MAX = 1024 * 1024, /* bytes of a file of /etc that is copied into the base root */
    CGROUP_PROCS_MAX = 16 * 1024 * 1024, /* bytes of the process ids of a cgroup */
    CGROUP_TEXT_MAX = 64 * 1024,         /* bytes of a cgroup file */
    CGROUP_KILL_ROUNDS_MAX = 100, /* rounds of killing one by one, where cgroup.kill is missing */
    CGROUP_STATS_MAX = 8192,      /* bytes of a statistics file */
    PROC_PASSES_MAX = 16,         /* passes over /proc for the processes of a task without cgroup */
    PROC_PROCS_MAX = 65536,       /* processes of the machine that such a pass looks at */
    PROC_ENVIRON_MAX = 256 * 1024, /* bytes of a process's environment that are searched */
    SHIM_END_ROUNDS_MAX = 10000,   /* rounds in which a shim without cgroup ends its children */
};

#endif
