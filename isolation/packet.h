/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets with file descriptors over non-blocking unix sockets (SOCK_SEQPACKET): what agent,
 * warden, network worker and launch pad speak through. Knows nothing of what is in them.
 */
#ifndef PADDOCK_ISOLATION_PACKET_H
#define PADDOCK_ISOLATION_PACKET_H

#include <stddef.h>

/* One packet with up to PACKET_FDS_MAX fds (borrowed). 0, -EAGAIN, or -errno. */
int packet_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds);
/* One packet into `buf`; fds of the peer are taken only when `fds` is not NULL (then PACKET_FDS_MAX
 * of them, *n_fds says how many), else they are an error. Returns its size; 0: closed; -EAGAIN;
 * -ERR_LIMIT: larger than `size` or with fds that were not asked for. */
long packet_recv(int fd, void *buf, size_t size, int *fds, size_t *n_fds);
/* Socket buffers that hold a whole packet. */
void packet_buffers(int fd);

#endif
