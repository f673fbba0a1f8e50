/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/bpf/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"

enum { LOCK_TRIES = 200, LOCK_WAIT_MS = 10 };

static int
sys_call_bpf(int cmd, union bpf_attr *a)
{
    long r = syscall(SYS_bpf, cmd, a, sizeof(*a));
    return r < 0 ? -errno : (int)r;
}

static uint64_t
sys_ptr(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

int
bpf_map_get(int map, const void *key, void *value)
{
    union bpf_attr a = {.map_fd = (uint32_t)map, .key = sys_ptr(key), .value = sys_ptr(value)};
    return sys_call_bpf(BPF_MAP_LOOKUP_ELEM, &a);
}

int
bpf_map_put(int map, const void *key, const void *value)
{
    union bpf_attr a = {.map_fd = (uint32_t)map, .key = sys_ptr(key), .value = sys_ptr(value)};
    return sys_call_bpf(BPF_MAP_UPDATE_ELEM, &a);
}

int
bpf_map_delete(int map, const void *key)
{
    union bpf_attr a = {.map_fd = (uint32_t)map, .key = sys_ptr(key)};
    return sys_call_bpf(BPF_MAP_DELETE_ELEM, &a);
}

int
bpf_map_next(int map, const void *key, void *next)
{
    union bpf_attr a = {.map_fd = (uint32_t)map, .key = sys_ptr(key), .next_key = sys_ptr(next)};
    return sys_call_bpf(BPF_MAP_GET_NEXT_KEY, &a);
}

static int
map_info(int map, struct bpf_map_info *info)
{
    union bpf_attr a = {
        .info = {.bpf_fd = (uint32_t)map, .info_len = sizeof(*info), .info = sys_ptr(info)}};
    return sys_call_bpf(BPF_OBJ_GET_INFO_BY_FD, &a);
}

int
bpf_map_by_id(uint32_t id)
{
    union bpf_attr a = {.map_id = id};
    return sys_call_bpf(BPF_MAP_GET_FD_BY_ID, &a);
}

int
bpf_map_name(int map, char ret[BPF_NAME], uint32_t *ret_entries)
{
    struct bpf_map_info info = {0};
    int r = map_info(map, &info);
    if (r < 0)
        return r;
    (void)str_copy(ret, BPF_NAME, info.name);
    *ret_entries = info.max_entries;
    return 0;
}

int
bpf_cgroup_attach(int cgroup, int prog, unsigned type)
{
    union bpf_attr a = {.target_fd = (uint32_t)cgroup,
                        .attach_bpf_fd = (uint32_t)prog,
                        .attach_type = type,
                        .attach_flags = BPF_F_ALLOW_MULTI};
    return sys_call_bpf(BPF_PROG_ATTACH, &a);
}

int
bpf_cgroup_detach(int cgroup, int prog, unsigned type)
{
    union bpf_attr a = {
        .target_fd = (uint32_t)cgroup, .attach_bpf_fd = (uint32_t)prog, .attach_type = type};
    return sys_call_bpf(BPF_PROG_DETACH, &a);
}

int
bpf_cgroup_query(int cgroup, unsigned type, uint32_t *ids, uint32_t *n)
{
    union bpf_attr a = {.query = {.target_fd = (uint32_t)cgroup,
                                  .attach_type = type,
                                  .prog_ids = sys_ptr(ids),
                                  .prog_cnt = *n}};
    int r = sys_call_bpf(BPF_PROG_QUERY, &a);
    if (r == 0)
        *n = a.query.prog_cnt;
    return r;
}

int
bpf_prog_by_id(uint32_t id)
{
    union bpf_attr a = {.prog_id = id};
    return sys_call_bpf(BPF_PROG_GET_FD_BY_ID, &a);
}

int
bpf_prog_info(int prog, struct bpf_prog *ret)
{
    struct bpf_prog p = {0};
    struct bpf_prog_info info = {.nr_map_ids = ARRAY_LEN(p.maps), .map_ids = sys_ptr(p.maps)};
    union bpf_attr a = {
        .info = {.bpf_fd = (uint32_t)prog, .info_len = sizeof(info), .info = sys_ptr(&info)}};
    int r = sys_call_bpf(BPF_OBJ_GET_INFO_BY_FD, &a);
    if (r < 0)
        return r;
    (void)str_copy(p.name, sizeof(p.name), info.name);
    p.n_maps = info.nr_map_ids < ARRAY_LEN(p.maps) ? info.nr_map_ids : ARRAY_LEN(p.maps);
    *ret = p;
    return 0;
}

int
bpf_link_next(uint32_t id, uint32_t *ret)
{
    union bpf_attr a = {.start_id = id};
    int r = sys_call_bpf(BPF_LINK_GET_NEXT_ID, &a);
    if (r == 0)
        *ret = a.next_id;
    return r;
}

int
bpf_link_by_id(uint32_t id, uint32_t *ret_prog)
{
    union bpf_attr a = {.link_id = id};
    auto_fd int fd = sys_call_bpf(BPF_LINK_GET_FD_BY_ID, &a);
    struct bpf_link_info info = {0};
    if (fd < 0)
        return fd;
    union bpf_attr q = {
        .info = {.bpf_fd = (uint32_t)fd, .info_len = sizeof(info), .info = sys_ptr(&info)}};
    int r = sys_call_bpf(BPF_OBJ_GET_INFO_BY_FD, &q);
    if (r < 0)
        return r;
    *ret_prog = info.prog_id;
    return TAKE_FD(fd);
}

enum { FILEID_KERNFS = 0xfe }; /* of file handles; in no header of user space */

int
bpf_cgroup_lock(int cgroup)
{
    auto_fd int fd = openat(cgroup, "cgroup.kill", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        fd = openat(cgroup, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return -errno;
        (void)poll(NULL, 0, LOCK_WAIT_MS);
    }
    return TAKE_FD(fd);
}

bool
bpf_cgroup_gone(int cgroup, uint64_t id)
{
    union {
        struct file_handle h;
        uint8_t bytes[sizeof(struct file_handle) + sizeof(id)];
    } f = {.h = {.handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS}};
    memcpy(f.bytes + sizeof(f.h), &id, sizeof(id));
    auto_fd int fd = open_by_handle_at(cgroup, &f.h, O_PATH | O_CLOEXEC);
    return fd < 0 && (errno == ESTALE || errno == ENOENT);
}
