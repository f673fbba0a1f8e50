/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of api/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_API_LIMITS_H
#define PADDOCK_API_LIMITS_H

enum {
    /* --- a job, however it is sent --- */
    JOB_GROUPS_MAX = 1000,        /* groups of a job */
    JOB_AT_ONCE_MAX = 10000,      /* allocations of a job with all_at_once */
    JOB_TASKS_MAX = 200,          /* tasks of a group */
    JOB_PORTS_MAX = 512,          /* ports of a network */
    JOB_PIDS_MAX = 4194304,       /* processes of a task */
    JOB_NOFILE_MAX = 1048576,     /* open files of a process of a task */
    JOB_MEMORY_MIB_MAX = 1 << 30, /* MiB of each limit of memory in isolation */
    JOB_IO_WEIGHT_MAX = 10000,    /* io_weight */
    JOB_CORES_MAX = 1024,         /* processors of a task */
    JOB_DISKS_MAX = 8,            /* disks whose use by a task is limited */
    JOB_TCP_PORTS_MAX = 64,       /* ports of a list of landlock */
    JOB_VERITY_MAX = 16,          /* verity blocks of a task */
    JOB_CALLS_MAX = 128,          /* system calls of a list of seccomp */
    JOB_NET_RULES_MAX = 64,       /* rules of a list of a network policy */
    JOB_DNS_MAX = 16,             /* servers, searches or options of a network */
    JOB_HOSTNAME_MAX = 64,        /* bytes of the host name of a network */
    JOB_ID_MAX = 1024,            /* bytes of the id and name of a job, and a group's name */
    JOB_DISPATCH_ID_MAX = 900,    /* bytes of the id of a parameterized job and IdPrefixTemplate */
    JOB_TAGS_MAX = 64,            /* tagged versions of a job */
    JOB_TAG_MAX = 128,            /* bytes of the name of a tag of a version */
    JOB_TAG_TEXT_MAX = 1000,      /* bytes of its description */
    JOB_CONFIG_DEPTH_MAX = 32,    /* nested blocks and lists in the config of a task's driver */
    JOB_LABEL_MAX = 256,          /* bytes of the label of a port */
    JOB_TASK_NAME_MAX = 128,      /* bytes of the name of a task */
    JOB_IDENTITIES_MAX = 32,      /* identities of a task */
    JOB_IDENTITY_NAME_MAX = 128,  /* bytes of the name of one, or of a secret */
    JOB_SECRETS_MAX = 64,         /* secret blocks of a task */
    JOB_PATH_MAX = 1024,          /* bytes of a path below the allocation's directory */
    JOB_PATH_DEPTH_MAX = 64,      /* components of such a path */
    JOB_ENV_MAX = 4000,           /* variables of a task that its env, meta and ports make */
    JOB_LAUNCH_MAX = 368 << 10,   /* bytes of its command, arguments, variables and isolation */
    JOB_WORD_MAX = 131071,        /* bytes of an argument, or of a variable with its name */
    HOST_VOLUME_NAME_MAX = 128,   /* bytes */
    DEVICE_ID_MAX = 64,           /* bytes of the id of a device */
    DEVICE_IDS_MAX = 64,          /* instances of a device that a client names */
    DEVICE_PATHS_MAX = 16,        /* paths of one instance */
    JOB_SECRETS_MIB_MAX = 1024,   /* MiB of the secrets of a task */
    JOB_LOG_FILES_MAX = 10000,    /* log files of a stream of a task */
    JOB_CRONS_MAX = 64,           /* expressions of a periodic block */
    JOB_CRON_MAX = 1024,          /* bytes of one */
    JOB_ERRORS_MAX = 100,         /* errors that a validation reports */
    JOB_ERRORS_TEXT_MAX = 256 << 10, /* bytes of their text */

    /* --- a node pool, a namespace --- */
    OBJECT_NAME_MAX = 128,            /* bytes of the name of a node pool or a namespace */
    OBJECT_TEXT_MAX = 256,            /* bytes of its description */
    OBJECT_META_MAX = 128,            /* entries of its meta */
    OBJECT_META_BYTES_MAX = 64 << 10, /* bytes of all of them */

    /* --- a method of login --- */
    ACL_URL_MAX = 2048,  /* bytes of a URL of a method of login */
    ACL_CLAIMS_MAX = 64, /* claims of each of its mappings */

    /* --- a request --- */
    EVAL_DELETE_MAX = 7281, /* evaluations that are deleted at once by their ids */

    /* --- a filter expression of a list --- */
    FILTER_BYTES_MAX = 4096,        /* bytes of a filter expression */
    FILTER_DEPTH_MAX = 32,          /* nesting of a filter expression */
    FILTER_PATH_MAX = 12,           /* parts of a selector */
    FILTER_VARS_MAX = 16,           /* names that "any" and "all" give */
    FILTER_STEPS_MAX = 100000,      /* comparisons for one object; beyond, it does not match */
    FILTER_REGEX_MAX = 512,         /* bytes of its regular expressions */
    FILTER_REGEX_STEPS_MAX = 10000, /* steps of one match; beyond, it does not match */
    /* --- a snapshot of the state that is restored --- */
    RESTORE_PIECE = 1 << 20, /* bytes of it in one entry of the log */
};

#endif
