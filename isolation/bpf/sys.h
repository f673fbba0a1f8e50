/* SPDX-License-Identifier: Apache-2.0
 *
 * bpf(2), as far as the warden uses it. All functions return 0 (or an fd) or -errno; fds are born
 * CLOEXEC. Without privilege everything here fails with -EPERM.
 */
#ifndef PADDOCK_ISOLATION_BPF_SYS_H
#define PADDOCK_ISOLATION_BPF_SYS_H

#include <stdbool.h>
#include <stdint.h>

enum { BPF_NAME = 16, BPF_ATTACHED_MAX = 64, BPF_PROG_MAPS_MAX = 16 };

int bpf_map_get(int map, const void *key, void *value);
int bpf_map_put(int map, const void *key, const void *value);
int bpf_map_delete(int map, const void *key);
/* The key after `key` (NULL: the first); -ENOENT at the end. */
int bpf_map_next(int map, const void *key, void *next);
int bpf_map_by_id(uint32_t id);

/* Programs of a cgroup, in one list per attach type. The attachment lives as long as the cgroup,
 * not as long as any process. */
int bpf_cgroup_attach(int cgroup, int prog, unsigned type);
int bpf_cgroup_detach(int cgroup, int prog, unsigned type);
/* Ids of what is attached to the cgroup itself; *n in: room, out: how many. */
int bpf_cgroup_query(int cgroup, unsigned type, uint32_t *ids, uint32_t *n);

/* Locks the cgroup against others who change what hangs on it: an fd whose close unlocks. Waits for
 * two seconds at most, on a file that only root can open where the kernel has one (cgroup.kill,
 * Linux 5.14): who can open a file can lock it for good. */
int bpf_cgroup_lock(int cgroup);

/* Programs that are attached elsewhere: the next id after `id`, or -ENOENT at the end. */
int bpf_link_next(uint32_t id, uint32_t *ret);
/* An fd of it, and its program. */
int bpf_link_by_id(uint32_t id, uint32_t *ret_prog);

/* The cgroup with this id is gone for certain. `cgroup`: any fd of the hierarchy. */
bool bpf_cgroup_gone(int cgroup, uint64_t id);

struct bpf_prog {
    char name[BPF_NAME];
    uint32_t maps[BPF_PROG_MAPS_MAX];
    uint32_t n_maps;
};
int bpf_prog_by_id(uint32_t id);
int bpf_prog_info(int prog, struct bpf_prog *ret);
int bpf_map_name(int map, char ret[BPF_NAME], uint32_t *ret_entries);

#endif
