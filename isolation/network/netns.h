/* SPDX-License-Identifier: Apache-2.0
 *
 * One network namespace of an allocation, prepared: lo is up, every port may be bound without a
 * capability, redirects are not believed, and interfaces made later have no IPv6. It belongs to the
 * user namespace of the host, so nothing that a task can be (root of its own user namespace
 * included) may change interfaces, routes or rules there.
 */
#ifndef PADDOCK_ISOLATION_NETWORK_NETNS_H
#define PADDOCK_ISOLATION_NETWORK_NETNS_H

/* Makes a network namespace: its fd, or -errno with the step in *what. The calling process goes
 * there and comes back to `home`, an fd of its own network namespace: single-threaded programs
 * only. */
int netns_make(int home, const char **what);
/* Goes into `ns`, or back. 0 or -errno. */
int netns_enter(int ns);
/* Writes a file below /proc/sys/net of the namespace that the process is in. */
int netns_sysctl(const char *name, const char *value);

#endif
