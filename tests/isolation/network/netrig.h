/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of networks of allocations share: a warden in a network namespace of the test's
 * own, two allocations, requests that tell only why they failed.
 */
#ifndef PADDOCK_TESTS_ISOLATION_NETWORK_NETRIG_H
#define PADDOCK_TESTS_ISOLATION_NETWORK_NETRIG_H

#include "tests/isolation/rig.h"

extern const char netrig_other[];   /* the allocation beside rig_id */
extern const char *netrig_ports_ip; /* the host address of ports */
extern pid_t netrig_pid;            /* of the task that was launched last */
extern uint64_t netrig_leaf;        /* the id of its cgroup */

/* A warden with rig_id (tasks web, aside) and netrig_other (web), in a new network namespace or
 * here. */
void netrig_start(struct rig *r);
void netrig_start_here(struct rig *r);
void netrig_reconnect(struct rig *r); /* to another warden */
void netrig_respawn(struct rig *r);   /* kill -9, another one */
/* False: the fact says why not; the rig is stopped. */
bool netrig_need(struct rig *r, const char *fact);
/* NULL, or the error. `ports`: pairs host port, port inside, 0 at the end; may be NULL. */
const char *netrig_ports(struct rig *r, const char *id, const char *mode, const int *ports,
                         const char **ret_address);
const char *netrig_make(struct rig *r, const char *id, const char *mode);
const char *netrig_remove(struct rig *r, const char *id);
bool netrig_has_record(struct rig *r, const char *id);
/* In the allocation's network: what the script says before the task goes on for ever. */
const char *netrig_launch(struct rig *r, const char *id, const char *task, const char *script);
const char *netrig_launch_policed(struct rig *r, const char *id, const char *task,
                                  const char *script, struct net_policy *egress);
void netrig_destroy(struct rig *r, const char *id, const char *task);

#endif
