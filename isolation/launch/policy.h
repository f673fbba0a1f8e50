/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled policy: what the operator lets the agent ask of the warden. `paddock policy` makes
 * it from root-owned configuration; the warden and the supervisor read only this file (msgpack
 * struct policy) and parse no configuration language.
 */
#ifndef PADDOCK_ISOLATION_LAUNCH_POLICY_H
#define PADDOCK_ISOLATION_LAUNCH_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"
#include "isolation/confine/users.h"
#include "isolation/limits.h"
#include "isolation/network/network.h"

#define POLICY_FILE "policy"        /* in RunDir */
#define POLICY_RELOAD "reload"      /* in RunDir: the agent writes it to be given its files anew */
#define POLICY_SOCKET "warden.sock" /* in RunDir */
#define POLICY_HAND_SOCKET                                                                         \
    "hand.sock"                /* in RunDir, of paddock-hand, where an engine is turned on */
#define POLICY_CGROUP "cgroup" /* in RunDir: the path of the tasks' cgroup, by paddock-holder */
#define PAUSE_LEAF "holder"   /* in that cgroup: where the pause process itself is */

#define POLICY_KVM "/dev/kvm" /* the one device that a policy can give */

/* Ranges of host ids for user namespaces. The default is what no other tool hands out:
 * 1879048192 (0x70000000) and above, below what systemd reserves at 2147352576. */
#define POLICY_RANGE_IDS 65536u
#define POLICY_RANGE_BASE 0x70000000u
#define POLICY_RANGE_COUNT 4094u
uint32_t policy_range_base(const struct policy *p);
uint32_t policy_range_count(const struct policy *p);

/* Absolute normal paths, known drivers and capabilities, ids: what a policy must be, whoever made
 * it. */
int policy_check(const struct policy *p, struct err *e);
/* Checks and writes it to `path` (0640, atomically). */
int policy_compile(const struct policy *p, const char *path, struct err *e);
/* Makes the directories of the policy with their owners (data_dir and run_dir root's; in data_dir
 * the agent owns server/ and client/), then compiles it to run_dir, readable by the agent. `path`
 * (owned by p) is where; may be NULL. */
int policy_install(struct policy *p, const char **path, struct err *e);
/* Reads and checks. As root the file must be root's and writable by nobody else. */
int policy_load(const void *ctx, const char *path, struct policy **ret, struct err *e);

/* May tasks have this network: host, none or bridge? Pure. */
bool policy_network(const struct policy *p, const char *mode);
/* The bridge that they share, with its defaults. Pure. */
#define POLICY_BRIDGE_NAME "paddock"
#define POLICY_BRIDGE_SUBNET "172.26.64.0/20"
void policy_bridge(const struct policy *p, struct net_conf *ret);
/* May the agent launch this? Driver, raw_exec, capabilities, mounts, seccomp opt-out. Pure. */
int policy_check_launch(const struct policy *p, const struct launch_spec *s, struct err *e);
/* The part of it that a resize has too. NULL: no limits. */
int policy_check_limits(const struct policy *p, const struct task_isolation *i, struct err *e);
bool policy_limits_required(const struct policy *p);
/* Finds the user who runs a task: the spec's, else nobody (raw_exec: policy_raw_user()); not a
 * denied one, and never the agent's own user. `inside`: in a user namespace of its allocation.
 * `files` as users_resolve(). */
int policy_user(const struct policy *p, const struct launch_spec *s, bool inside,
                const struct users_files *files, struct user *ret, struct err *e);
/* root, as in Nomad, where root may run tasks, else nobody. */
const char *policy_raw_user(const struct policy *p, const struct users_files *files);
/* May somebody of the host come by the files that it writes? A path of the host is bound, or
 * raw_exec is on: a task of it opens the allocation's directory to its user. Then the task sets no
 * set-user-id bits: the files are those of the ids that it sees, root's too. Pure. */
bool policy_no_setuid(const struct policy *p, const struct launch_spec *s);
/* The AppArmor profile that an isolated one gets; "": none. Pure. */
const char *policy_apparmor(const struct policy *p, const struct launch_spec *s);
/* The capabilities kept. */
int policy_caps(const struct policy *p, const struct launch_spec *s, uint64_t *ret, struct err *e);

/* NULL: the client has no host volume of that name in its configuration. */
const struct policy_volume *policy_volume(const struct policy *p, const char *name);
/* Returns the path of that volume, or of one made while servers ran, by its id; owned by ctx. NULL:
 * there is none. */
const char *policy_volume_path(const void *ctx, const struct policy *p, const char *name);
/* Checks that there is one, which may be mounted so. -ERR_POLICY. */
int policy_check_volume(const struct policy *p, const char *name, bool read_only, struct err *e);

#endif
