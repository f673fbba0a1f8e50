/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/bpf_run.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/bpf_sys.h"
#include "isolation/limits.h"

static const char *const programs[BPF_RUN_LINKS] = {"pd1_switch", "pd1_exec", "pd1_exit"};

enum { LINKS_MAX = 100000 }; /* of the machine, that are looked at */

void
bpf_run_close(struct bpf_run *b)
{
    if (b->rows != NULL)
        (void)munmap(b->rows, b->n_rows * sizeof(*b->rows));
    fd_close(&b->slots);
    fd_close(&b->run);
    for (int i = 0; i < BPF_RUN_LINKS; i++)
        fd_close(&b->links[i]);
    b->rows = NULL;
    b->n_rows = 0;
}

static int
map_rows(struct bpf_run *b)
{
    void *p = mmap(NULL, b->n_rows * sizeof(*b->rows), PROT_READ | PROT_WRITE, MAP_SHARED, b->run, 0);
    if (p == MAP_FAILED)
        return -errno;
    b->rows = p;
    return 0;
}

static bool
is_ours(const struct bpf_run *b)
{
    const struct bpf_run_header *h = (const void *)b->rows;
    return h->magic == BPF_RUN_MAGIC && h->rows == b->n_rows && h->root_id == b->root_id &&
           h->build == bpf_skel_run_build();
}

/* The maps of a program of ours, if it counts for our cgroup; else nothing is changed. */
static int
take_maps(struct bpf_run *b, const struct bpf_prog *p)
{
    struct bpf_run x = BPF_RUN_NONE;
    x.root_id = b->root_id;
    for (uint32_t i = 0; i < p->n_maps; i++) {
        char name[BPF_NAME];
        uint32_t entries = 0;
        auto_fd int fd = bpf_map_by_id(p->maps[i]);
        if (fd < 0 || bpf_map_name(fd, name, &entries) < 0)
            continue;
        if (str_eq(name, "pd1_slots") && x.slots < 0) {
            x.slots = TAKE_FD(fd);
        } else if (str_eq(name, "pd1_run") && x.run < 0) {
            x.run = TAKE_FD(fd);
            x.n_rows = entries;
        }
    }
    bool good = x.slots >= 0 && x.run >= 0 && map_rows(&x) == 0 && is_ours(&x);
    if (!good || b->rows != NULL) {
        bpf_run_close(&x);
        return good ? 0 : -ENOENT;
    }
    b->slots = x.slots;
    b->run = x.run;
    b->rows = x.rows;
    b->n_rows = x.n_rows;
    return 0;
}

static void
look_at(struct bpf_run *b, uint32_t id)
{
    uint32_t prog_id;
    struct bpf_prog p;
    auto_fd int link = bpf_link_by_id(id, &prog_id);
    auto_fd int prog = link >= 0 ? bpf_prog_by_id(prog_id) : -1;
    if (prog < 0 || bpf_prog_info(prog, &p) < 0)
        return;
    for (int i = 0; i < BPF_RUN_LINKS; i++)
        if (b->links[i] < 0 && str_eq(p.name, programs[i]) && take_maps(b, &p) == 0)
            b->links[i] = TAKE_FD(link);
}

/* What somebody still holds of an earlier warden: all of it, or nothing. */
static bool
adopt(struct bpf_run *b)
{
    uint32_t id = 0;
    for (int n = 0; n < LINKS_MAX && bpf_link_next(id, &id) == 0; n++)
        look_at(b, id);
    bool all = b->rows != NULL;
    for (int i = 0; i < BPF_RUN_LINKS; i++)
        all = all && b->links[i] >= 0;
    return all;
}

static int
load(struct bpf_run *b, struct err *e)
{
    struct bpf_skel_run s = {.slots_max = BPF_SLOTS_MAX, .rows_max = BPF_SLOTS_MAX + 1};
    int r = bpf_skel_run(&s);
    if (r < 0)
        return err_errno(e, -r, "load the programs");
    b->slots = s.slots;
    b->run = s.run;
    b->n_rows = s.rows_max;
    memcpy(b->links, s.links, sizeof(b->links));
    r = map_rows(b);
    if (r < 0)
        return err_errno(e, -r, "map the counters");
    *(struct bpf_run_header *)(void *)b->rows = (struct bpf_run_header){.magic = BPF_RUN_MAGIC,
                                                                        .rows = b->n_rows,
                                                                        .root_id = b->root_id,
                                                                        .build = bpf_skel_run_build()};
    return 0;
}

static void
remove_slot(struct bpf_run *b, uint64_t id)
{
    uint32_t slot = 0;
    if (bpf_map_get(b->slots, &id, &slot) < 0)
        return;
    (void)bpf_map_delete(b->slots, &id);
    if (slot > 0 && slot < b->n_rows)
        memset(&b->rows[slot], 0, sizeof(*b->rows));
}

/* Removed by a warden that died before it said so here. */
static void
forget_gone(struct bpf_run *b)
{
    uint64_t ids[64], id;
    size_t n = 0;
    for (const uint64_t *at = NULL; n < ARRAY_LEN(ids) && bpf_map_next(b->slots, at, &id) == 0; at = &id)
        if (bpf_cgroup_gone(b->cgroup, id))
            ids[n++] = id;
    for (size_t i = 0; i < n; i++)
        remove_slot(b, ids[i]);
}

int
bpf_run_open(struct bpf_run *b, int cgroup, struct err *e)
{
    struct stat st;
    *b = BPF_RUN_NONE;
    b->cgroup = cgroup;
    if (fstat(cgroup, &st) < 0 || flock(cgroup, LOCK_EX) < 0)
        return err_errno(e, errno, "lock the cgroup of tasks");
    b->root_id = st.st_ino;
    int r = 0;
    if (adopt(b)) {
        forget_gone(b);
    } else {
        bpf_run_close(b);
        r = load(b, e);
        if (r < 0)
            bpf_run_close(b);
    }
    (void)flock(cgroup, LOCK_UN);
    return r;
}

bool
bpf_run_add(struct bpf_run *b, uint64_t id)
{
    uint32_t slot = 0;
    if (b->rows == NULL || id == 0 || flock(b->cgroup, LOCK_EX) < 0)
        return false;
    bool known = bpf_map_get(b->slots, &id, &slot) == 0;
    for (uint32_t i = 1; !known && slot == 0 && i < b->n_rows; i++)
        if (b->rows[i].id == 0)
            slot = i;
    if (!known && slot != 0) {
        memset(&b->rows[slot], 0, sizeof(*b->rows));
        b->rows[slot].id = id;
        known = bpf_map_put(b->slots, &id, &slot) == 0;
        if (!known)
            b->rows[slot].id = 0;
    }
    (void)flock(b->cgroup, LOCK_UN);
    return known;
}

void
bpf_run_remove(struct bpf_run *b, uint64_t id)
{
    if (b->rows == NULL || id == 0 || flock(b->cgroup, LOCK_EX) < 0)
        return;
    remove_slot(b, id);
    (void)flock(b->cgroup, LOCK_UN);
}
