/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about processes from /proc. A pid is only a hint: callers hold a pidfd and check again.
 */
#ifndef PADDOCK_ISOLATION_PROC_H
#define PADDOCK_ISOLATION_PROC_H

#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    pid_t parent;
    char state;     /* 'R', 'S', 'Z', ... */
    uint64_t start; /* clock ticks since boot: with the boot id, an identity */
};

/* 0, or -errno (-ENOENT: no such process). */
int proc_stat(pid_t pid, struct proc_stat *ret);
int proc_parse_stat(const char *text, struct proc_stat *ret); /* pure; -EINVAL */
pid_t proc_parent(pid_t pid); /* 0: unknown */
/* The pid in the innermost pid namespace of the process; 0: unknown. */
pid_t proc_inner_pid(pid_t pid);
pid_t proc_parse_inner(const char *text); /* of /proc/PID/status; pure */
/* SIGKILL to all descendants of `pid`, again until there are none that live (rootless: no cgroup).
 */
void proc_kill_descendants(pid_t pid);
/* SIGKILL to every process of ours that was started with all of `marks` ("NAME=value", NULL at the
 * end) in its environment: what is left, without root, of a task whose shim was killed. */
void proc_kill_marked(const char *const *marks);
/* The pid behind a pidfd in our pid namespace; 0: unknown or gone. */
pid_t proc_pidfd_pid(int pidfd);
/* fork(2) by clone3, for single-threaded programs: the child's pid, 0 in the child, or -errno.
 * `ret_pidfd` may be NULL. */
pid_t proc_fork(int *ret_pidfd);
/* The same with more `flags` of clone3(2). The child has the standard descriptors, `keep` and
 * `also` (-1: none), and takes no longer for it when the parent has tens of thousands. */
pid_t proc_fork_bare(uint64_t flags, int keep, int also, int *ret_pidfd);
/* The same as proc_fork() with more `flags`, born in the cgroup whose directory is `cgroup`; -1: in
 * the caller's. */
pid_t proc_fork_into(uint64_t flags, int cgroup, int *ret_pidfd);
/* Reads the id of this boot of the machine: 36 characters. */
int proc_boot_id(char out[40]);

#endif
