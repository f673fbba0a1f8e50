/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/bpf/rows.h"

#include <errno.h>
#include <linux/types.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/bpf/layout.h"
#include "isolation/bpf/sys.h"
#include "isolation/limits.h"

struct bpf_rows_kind {
    const char *programs[BPF_LINKS_MAX]; /* each with its link, in the order of the skeleton */
    size_t n_links;
    const char *slots, *map; /* names */
    size_t row_size;
    uint64_t magic;
    int (*load)(struct bpf_skel_rows *s);
    uint64_t (*build)(void);
};

const struct bpf_rows_kind bpf_rows_run = {.programs = {"pd1_switch", "pd1_exec", "pd1_exit"},
                                           .n_links = 3,
                                           .slots = "pd1_slots",
                                           .map = "pd1_run",
                                           .row_size = sizeof(struct bpf_run_row),
                                           .magic = BPF_RUN_MAGIC,
                                           .load = bpf_skel_run,
                                           .build = bpf_skel_run_build};
const struct bpf_rows_kind bpf_rows_block = {.programs = {"pd1_blk_done"},
                                             .n_links = 1,
                                             .slots = "pd1_blk_slots",
                                             .map = "pd1_blk",
                                             .row_size = sizeof(struct bpf_block_row),
                                             .magic = BPF_BLOCK_MAGIC,
                                             .load = bpf_skel_block,
                                             .build = bpf_skel_block_build};

enum { LINKS_MAX = 100000 }; /* of the machine, that are looked at */

void
bpf_rows_close(struct bpf_rows *b)
{
    if (b->rows != NULL)
        (void)munmap(b->rows, b->n_rows * b->kind->row_size);
    fd_close(&b->slots);
    fd_close(&b->map);
    for (int i = 0; i < BPF_LINKS_MAX; i++)
        fd_close(&b->links[i]);
    b->rows = NULL;
    b->n_rows = 0;
}

static int
map_rows(struct bpf_rows *b)
{
    void *p =
        mmap(NULL, b->n_rows * b->kind->row_size, PROT_READ | PROT_WRITE, MAP_SHARED, b->map, 0);
    if (p == MAP_FAILED)
        return -errno;
    b->rows = p;
    return 0;
}

/* A row begins with the id of its task; 0: nobody's. */
static uint64_t *
rows_row(const struct bpf_rows *b, uint32_t slot)
{
    return (uint64_t *)(void *)(b->rows + slot * b->kind->row_size);
}

static bool
is_ours(const struct bpf_rows *b)
{
    const struct bpf_rows_header *h = (const void *)b->rows;
    return h->magic == b->kind->magic && h->rows == b->n_rows && h->root_id == b->root_id &&
           h->build == b->kind->build();
}

/* The maps of a program of ours, if it counts for our cgroup; else nothing is changed. */
static int
take_maps(struct bpf_rows *b, const struct bpf_prog *p)
{
    struct bpf_rows x = BPF_ROWS_NONE;
    x.kind = b->kind;
    x.root_id = b->root_id;
    for (uint32_t i = 0; i < p->n_maps; i++) {
        char name[BPF_NAME];
        uint32_t entries = 0;
        auto_fd int fd = bpf_map_by_id(p->maps[i]);
        if (fd < 0 || bpf_map_name(fd, name, &entries) < 0)
            continue;
        if (str_eq(name, b->kind->slots) && x.slots < 0) {
            x.slots = TAKE_FD(fd);
        } else if (str_eq(name, b->kind->map) && x.map < 0) {
            x.map = TAKE_FD(fd);
            x.n_rows = entries;
        }
    }
    bool good = x.slots >= 0 && x.map >= 0 && map_rows(&x) == 0 && is_ours(&x);
    if (!good || b->rows != NULL) {
        bpf_rows_close(&x);
        return good ? 0 : -ENOENT;
    }
    b->slots = x.slots;
    b->map = x.map;
    b->rows = x.rows;
    b->n_rows = x.n_rows;
    return 0;
}

static void
look_at(struct bpf_rows *b, uint32_t id)
{
    uint32_t prog_id;
    struct bpf_prog p;
    auto_fd int link = bpf_link_by_id(id, &prog_id);
    auto_fd int prog = link >= 0 ? bpf_prog_by_id(prog_id) : -1;
    if (prog < 0 || bpf_prog_info(prog, &p) < 0)
        return;
    for (size_t i = 0; i < b->kind->n_links; i++)
        if (b->links[i] < 0 && str_eq(p.name, b->kind->programs[i]) && take_maps(b, &p) == 0)
            b->links[i] = TAKE_FD(link);
}

/* Takes over all that somebody still holds of an earlier warden, or nothing of it. */
static bool
rows_adopt(struct bpf_rows *b)
{
    uint32_t id = 0;
    for (int n = 0; n < LINKS_MAX && bpf_link_next(id, &id) == 0; n++)
        look_at(b, id);
    bool all = b->rows != NULL;
    for (size_t i = 0; i < b->kind->n_links; i++)
        all = all && b->links[i] >= 0;
    return all;
}

static int
rows_load(struct bpf_rows *b, struct err *e)
{
    struct bpf_skel_rows s = {.slots_max = BPF_SLOTS_MAX, .rows_max = BPF_SLOTS_MAX + 1};
    int r = b->kind->load(&s);
    if (r == -ENOENT)
        return err_set(e, -ERR_UNSUPPORTED,
                       "load the programs: this kernel tells no types of its own "
                       "(CONFIG_DEBUG_INFO_BTF), or lacks what they hang on");
    if (r < 0)
        return err_errno(e, -r, "load the programs");
    b->slots = s.slots;
    b->map = s.map;
    b->n_rows = s.rows_max;
    memcpy(b->links, s.links, sizeof(b->links));
    r = map_rows(b);
    if (r < 0)
        return err_errno(e, -r, "map the counters");
    *(struct bpf_rows_header *)(void *)b->rows =
        (struct bpf_rows_header){.magic = b->kind->magic,
                                 .rows = b->n_rows,
                                 .root_id = b->root_id,
                                 .build = b->kind->build()};
    return 0;
}

static void
remove_slot(struct bpf_rows *b, uint64_t id)
{
    uint32_t slot = 0;
    if (bpf_map_get(b->slots, &id, &slot) < 0)
        return;
    (void)bpf_map_delete(b->slots, &id);
    if (slot > 0 && slot < b->n_rows)
        memset(rows_row(b, slot), 0, b->kind->row_size);
}

/* Removed by a warden that died before it said so here. */
static void
forget_gone(struct bpf_rows *b)
{
    uint64_t ids[64], id;
    size_t n = 0;
    for (const uint64_t *at = NULL; n < ARRAY_LEN(ids) && bpf_map_next(b->slots, at, &id) == 0;
         at = &id)
        if (bpf_cgroup_gone(b->cgroup, id))
            ids[n++] = id;
    for (size_t i = 0; i < n; i++)
        remove_slot(b, ids[i]);
}

int
bpf_rows_open(struct bpf_rows *b, const struct bpf_rows_kind *kind, int cgroup, struct err *e)
{
    struct stat st;
    *b = BPF_ROWS_NONE;
    b->kind = kind;
    b->cgroup = cgroup;
    if (fstat(cgroup, &st) < 0)
        return err_errno(e, errno, "look at the cgroup of tasks");
    auto_fd int lock = bpf_cgroup_lock(cgroup);
    if (lock < 0)
        return err_errno(e, -lock, "lock the cgroup of tasks");
    b->root_id = st.st_ino;
    int r = 0;
    if (rows_adopt(b)) {
        forget_gone(b);
    } else {
        bpf_rows_close(b);
        r = rows_load(b, e);
        if (r < 0)
            bpf_rows_close(b);
    }
    return r;
}

bool
bpf_rows_add(struct bpf_rows *b, uint64_t id)
{
    uint32_t slot = 0;
    auto_fd int lock = b->rows != NULL && id != 0 ? bpf_cgroup_lock(b->cgroup) : -1;
    if (lock < 0)
        return false;
    bool known = bpf_map_get(b->slots, &id, &slot) == 0;
    for (uint32_t i = 1; !known && slot == 0 && i < b->n_rows; i++)
        if (*rows_row(b, i) == 0)
            slot = i;
    if (!known && slot != 0) {
        memset(rows_row(b, slot), 0, b->kind->row_size);
        *rows_row(b, slot) = id;
        known = bpf_map_put(b->slots, &id, &slot) == 0;
        if (!known)
            *rows_row(b, slot) = 0;
    }
    return known;
}

void
bpf_rows_remove(struct bpf_rows *b, uint64_t id)
{
    auto_fd int lock = b->rows != NULL && id != 0 ? bpf_cgroup_lock(b->cgroup) : -1;
    if (lock >= 0)
        remove_slot(b, id);
}
