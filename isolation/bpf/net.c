/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's side of net.bpf.c: see net.h. In this order: start, where the programs of an earlier
 * warden are adopted with their maps, or loaded and attached; rules, kept by what they say so that
 * tasks with the same ones share them; and tasks, each with a slot in which the programs count.
 *
 * Maps change under the lock of the cgroup's directory, and in an order in which the programs never
 * see half of a rule: the entry by which the others count goes in last.
 */
#include "isolation/bpf/net.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/siphash.h"
#include "common/str.h"
#include "isolation/bpf/skel.h"
#include "isolation/bpf/sys.h"

#define ROOM "bpf"

static const struct {
    const char *name; /* with BPF_LAYOUT in it */
    unsigned type;
} programs[BPF_NET_PROGS] = {
    [BPF_NET_CONNECT4] = {"pd1_connect4", BPF_CGROUP_INET4_CONNECT},
    [BPF_NET_CONNECT6] = {"pd1_connect6", BPF_CGROUP_INET6_CONNECT},
    [BPF_NET_SENDMSG4] = {"pd1_sendmsg4", BPF_CGROUP_UDP4_SENDMSG},
    [BPF_NET_SENDMSG6] = {"pd1_sendmsg6", BPF_CGROUP_UDP6_SENDMSG},
    [BPF_NET_BIND4] = {"pd1_bind4", BPF_CGROUP_INET4_BIND},
    [BPF_NET_BIND6] = {"pd1_bind6", BPF_CGROUP_INET6_BIND},
    [BPF_NET_EGRESS] = {"pd1_egress", BPF_CGROUP_INET_EGRESS},
    [BPF_NET_INGRESS] = {"pd1_ingress", BPF_CGROUP_INET_INGRESS},
    [BPF_NET_DEVICE] = {"pd1_device", BPF_CGROUP_DEVICE},
};
#define MAP_LEAF "pd1_leaf"
#define MAP_NET "pd1_net"
#define MAP_RULES "pd1_rules"
#define MAP_DEV "pd1_dev"

static void remove_leaf(struct bpf_net *b, uint64_t id);

bool
bpf_net_works(const struct bpf_net *b)
{
    return b->rows != NULL;
}

bool
bpf_net_is_for(const struct bpf_net *b, int cgroup)
{
    struct stat st;
    return b->cgroup == cgroup && fstat(cgroup, &st) == 0 && st.st_ino == b->root_id;
}

void
bpf_net_close(struct bpf_net *b)
{
    if (b->rows != NULL)
        (void)munmap(b->rows, b->n_rows * sizeof(*b->rows));
    fd_close(&b->leaf);
    fd_close(&b->net);
    fd_close(&b->rules);
    fd_close(&b->dev);
    b->rows = NULL;
    b->n_rows = b->shards = 0;
}

/* --- start --- */

static int
take_map(struct bpf_net *b, uint32_t id)
{
    auto_fd int fd = bpf_map_by_id(id);
    char name[BPF_NAME];
    uint32_t entries = 0;
    int r = fd < 0 ? fd : bpf_map_name(fd, name, &entries);
    if (r < 0)
        return r;
    int *to = str_eq(name, MAP_LEAF)    ? &b->leaf
              : str_eq(name, MAP_NET)   ? &b->net
              : str_eq(name, MAP_RULES) ? &b->rules
              : str_eq(name, MAP_DEV)   ? &b->dev
                                        : NULL;
    if (to == NULL)
        return 0;
    fd_close(to);
    *to = TAKE_FD(fd);
    if (to == &b->net)
        b->n_rows = entries;
    return 0;
}

/* Our program among those attached as `i`; its fd, or -ENOENT. */
static int
find_program(int cgroup, int i, struct bpf_prog *info)
{
    uint32_t ids[BPF_ATTACHED_MAX], n = BPF_ATTACHED_MAX;
    int r = bpf_cgroup_query(cgroup, programs[i].type, ids, &n);
    for (uint32_t k = 0; r == 0 && k < n && k < BPF_ATTACHED_MAX; k++) {
        auto_fd int fd = bpf_prog_by_id(ids[k]);
        r = fd < 0 ? fd : bpf_prog_info(fd, info);
        if (r == 0 && str_eq(info->name, programs[i].name))
            return TAKE_FD(fd);
        r = r == -ENOENT ? 0 : r; /* another's, gone meanwhile */
    }
    return r < 0 ? r : -ENOENT;
}

static void
detach_all(int cgroup)
{
    for (int i = 0; i < BPF_NET_PROGS; i++) {
        struct bpf_prog info;
        for (;;) {
            auto_fd int fd = find_program(cgroup, i, &info);
            if (fd < 0 || bpf_cgroup_detach(cgroup, fd, programs[i].type) < 0)
                break;
        }
    }
}

static int
map_rows(struct bpf_net *b)
{
    size_t n = b->n_rows * sizeof(*b->rows);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, b->net, 0);
    if (p == MAP_FAILED)
        return -errno;
    b->rows = p;
    return 0;
}

static struct bpf_net_header
header_of(const struct bpf_net *b)
{
    ASSERT(b->shards > 0 && b->n_rows == (BPF_SLOTS_MAX + 1) * b->shards);
    return (struct bpf_net_header){.magic = BPF_NET_MAGIC,
                                   .rows = b->n_rows,
                                   .shards = b->shards,
                                   .build = bpf_skel_net_build()};
}

/* The programs of an earlier warden. An incomplete set was left by a warden that died half-way,
 * before any launch; the set of another build makes way when no task is in its maps. */
static int
net_adopt(struct bpf_net *b)
{
    struct bpf_prog info = {0};
    for (int i = 0; i < BPF_NET_PROGS; i++) {
        auto_fd int fd = find_program(b->cgroup, i, &info);
        if (fd < 0)
            return fd;
        for (uint32_t k = 0; k < info.n_maps; k++) {
            int r = take_map(b, info.maps[k]);
            if (r < 0)
                return r;
        }
    }
    if (b->leaf < 0 || b->net < 0 || b->rules < 0 || b->n_rows < BPF_SHARDS_MAX)
        return -ENOENT;
    int r = map_rows(b);
    if (r < 0)
        return r;
    b->shards = b->n_rows / (BPF_SLOTS_MAX + 1);
    if (b->shards == 0 || b->shards > BPF_SHARDS_MAX ||
        b->n_rows != (BPF_SLOTS_MAX + 1) * b->shards)
        return -ENOENT;
    /* for those who read the counters; the agent could have written there, so it decides nothing
     * while there are tasks */
    struct bpf_net_header *h = (void *)b->rows, now;
    memcpy(&now, h, sizeof(now));
    const struct bpf_net_header ours = header_of(b);
    if (memcmp(&now, &ours, sizeof(now)) == 0)
        return 0;
    uint64_t first;
    r = bpf_map_next(b->leaf, NULL, &first);
    if (r < 0)
        return r;
    b->foreign = now.build != ours.build;
    log_info(ROOM, "programs of another build stay until no task runs at a start", NULL);
    *h = ours;
    h->build = now.build != ours.build ? now.build : 0;
    return 0;
}

static bool
of_a_moment(int r)
{
    return r == -ENOMEM || r == -ENFILE || r == -EMFILE || r == -EAGAIN || r == -EINTR;
}

static size_t
shards_wanted(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    return cpus >= 4 ? 4 : cpus >= 2 ? 2 : 1;
}

static int
net_load(struct bpf_net *b, struct err *e)
{
    b->shards = shards_wanted();
    struct bpf_skel_net s = {.root_id = b->root_id,
                             .shards = (uint32_t)b->shards,
                             .leaf_max = BPF_LEAFS_MAX,
                             .rows_max = (uint32_t)((BPF_SLOTS_MAX + 1) * b->shards),
                             .rules_max = BPF_RULES_MAX,
                             .dev_max = BPF_DEVICES_MAX};
    int r = bpf_skel_net(&s);
    if (r < 0)
        return err_errno(e, -r, "load the programs");
    b->leaf = s.leaf;
    b->net = s.net;
    b->rules = s.rules;
    b->dev = s.dev;
    b->n_rows = s.rows_max;
    r = map_rows(b);
    if (r == 0)
        *(struct bpf_net_header *)(void *)b->rows = header_of(b);
    for (int i = 0; i < BPF_NET_PROGS && r == 0; i++) {
        r = bpf_cgroup_attach(b->cgroup, s.progs[i], programs[i].type);
        if (r < 0)
            err_errno(e, -r, "attach %s", programs[i].name);
    }
    for (int i = 0; i < BPF_NET_PROGS; i++)
        fd_close(&s.progs[i]);
    return r < 0 && e->code == 0 ? err_errno(e, -r, "map the counters") : r;
}

/* A task whose warden died after its removal, and before it told the kernel. */
static void
forget_gone(struct bpf_net *b)
{
    uint64_t ids[64], id;
    size_t n = 0;
    for (const uint64_t *at = NULL; n < ARRAY_LEN(ids) && bpf_map_next(b->leaf, at, &id) == 0;
         at = &id) {
        if (bpf_cgroup_gone(b->cgroup, id))
            ids[n++] = id;
    }
    for (size_t i = 0; i < n; i++)
        remove_leaf(b, ids[i]);
}

int
bpf_net_open(struct bpf_net *b, int cgroup, struct err *e)
{
    struct stat st;
    *b = (struct bpf_net){.cgroup = cgroup, .leaf = -1, .net = -1, .rules = -1, .dev = -1};
    if (fstat(cgroup, &st) < 0)
        return err_errno(e, errno, "look at the cgroup of tasks");
    b->root_id = st.st_ino;
    if (getrandom(b->key, sizeof(b->key), 0) != (ssize_t)sizeof(b->key))
        return err_errno(e, errno, "get random bytes");
    auto_fd int lock = bpf_cgroup_lock(cgroup);
    if (lock < 0)
        return err_errno(e, -lock, "lock the cgroup of tasks");
    int r = net_adopt(b);
    if (r == 0)
        forget_gone(b);
    if (of_a_moment(r)) { /* what is attached stays, and holds */
        bpf_net_close(b);
        return err_errno(e, -r, "look for the programs that are attached");
    }
    if (r < 0) {
        bpf_net_close(b);
        detach_all(cgroup);
        r = net_load(b, e);
        if (r < 0) {
            detach_all(cgroup);
            bpf_net_close(b);
        }
    }
    return r;
}

/* --- rules --- */

/* Rules are known by what they say: the same ones are there once, for as long as this warden lives.
 * A job writes some of them, so their name is a keyed hash: else it could have some made that meet
 * older, wider ones. */
static uint64_t
rules_id(const struct bpf_net *b, const struct netrules *egress, const struct netrules *bind)
{
    const struct netrules *const all[] = {egress, bind};
    struct siphash h;
    siphash_init(&h, b->key);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        siphash_add(&h, all[i] != NULL ? all[i]->n + 1 : 0);
        for (size_t k = 0; all[i] != NULL && k < all[i]->n * sizeof(*all[i]->v); k += 8) {
            uint64_t word = 0;
            size_t left = all[i]->n * sizeof(*all[i]->v) - k;
            memcpy(&word, (const uint8_t *)all[i]->v + k, left < 8 ? left : 8);
            siphash_add(&h, word);
        }
    }
    return siphash_end(&h);
}

/* The first entry, everybody's IPv4 prefix, goes in last: where it is, all are. */
static int
put_rules(struct bpf_net *b, uint64_t id, const struct netrules *r, uint32_t kind)
{
    for (size_t i = r != NULL ? r->n : 0; i-- > 0;) {
        const struct netrules_entry *x = &r->v[i];
        struct bpf_rule_key k = {.prefixlen = BPF_RULE_FIXED_BITS + x->bits,
                                 .kind = kind | (x->v6 ? BPF_RULE_V6 : 0),
                                 .id = id};
        memcpy(k.addr, x->addr, sizeof(k.addr));
        int rc = bpf_map_put(b->rules, &k, &x->rule);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool
rules_known(const struct bpf_net *b, uint64_t id, uint32_t kind)
{
    struct bpf_rule_key k = {.prefixlen = BPF_RULE_FIXED_BITS, .kind = kind, .id = id};
    struct bpf_rule x;
    return bpf_map_get(b->rules, &k, &x) == 0;
}

/* Says whether a living task has the rules of `id`. */
static bool
rules_used(const struct bpf_net *b, uint64_t id)
{
    uint64_t leaf, *at = NULL;
    struct bpf_leaf x;
    while (bpf_map_next(b->leaf, at, &leaf) == 0) {
        at = &leaf;
        if (bpf_map_get(b->leaf, &leaf, &x) == 0 && x.rules == id)
            return true;
    }
    return false;
}

/* Rules stay when their last task goes, for the next that has the same ones: most have the default.
 * When there is no room for others, the unused go. A set's entries are neighbours in the map. */
static void
drop_unused(struct bpf_net *b)
{
    struct bpf_rule_key k, next;
    bool used = false;
    const void *at = NULL;
    while (bpf_map_next(b->rules, at, &next) == 0) {
        if (at != NULL && !used)
            (void)bpf_map_delete(b->rules, &k);
        if (at == NULL || next.id != k.id)
            used = rules_used(b, next.id);
        k = next;
        at = &k;
    }
    if (at != NULL && !used)
        (void)bpf_map_delete(b->rules, &k);
}

static int
know_rules(struct bpf_net *b, uint64_t id, const struct netrules *egress,
           const struct netrules *bind)
{
    uint32_t last = bind != NULL ? BPF_RULE_BIND : 0;
    int r = 0;
    if (!rules_known(b, id, last))
        r = put_rules(b, id, egress, 0);
    if (r == 0 && !rules_known(b, id, last))
        r = put_rules(b, id, bind, BPF_RULE_BIND);
    return r;
}

/* --- devices --- */

/* Forgets those of `id`. A key's successor is asked for before the key goes. */
static void
drop_devices(struct bpf_net *b, uint64_t id)
{
    struct bpf_device_key k, next;
    int r = bpf_map_next(b->dev, NULL, &next);
    while (r == 0) {
        k = next;
        r = bpf_map_next(b->dev, &k, &next);
        if (k.id == id)
            (void)bpf_map_delete(b->dev, &k);
    }
}

static int
put_devices(struct bpf_net *b, uint64_t id, const struct bpf_devices *d, struct err *e)
{
    const uint32_t yes = 1;
    int r = 0;
    if (b->dev < 0)
        return err_set(e, -ERR_UNSUPPORTED,
                       "programs of an earlier release filter devices here, and let none through: "
                       "restart the warden when no task runs");
    for (size_t i = 0; r == 0 && i < d->n; i++) {
        const struct bpf_device_key k = {.id = id,
                                         .type = d->v[i].block ? BPF_DEVCG_DEV_BLOCK
                                                               : BPF_DEVCG_DEV_CHAR,
                                         .major = d->v[i].major,
                                         .minor = d->v[i].minor};
        r = bpf_map_put(b->dev, &k, &yes);
    }
    if (r == 0)
        return 0;
    drop_devices(b, id);
    return err_errno(e, -r, "give the kernel the task's devices");
}

/* --- tasks --- */

static uint32_t
take_slot(struct bpf_net *b, uint64_t id)
{
    for (size_t slot = 1; (slot + 1) * b->shards <= b->n_rows; slot++) {
        struct bpf_net_row *row = &b->rows[slot * b->shards];
        if (row->id != 0)
            continue;
        memset(row, 0, b->shards * sizeof(*row));
        for (size_t i = 0; i < b->shards; i++)
            row[i].id = id;
        return (uint32_t)slot;
    }
    return 0;
}

static void
free_slot(struct bpf_net *b, uint32_t slot)
{
    if (slot != 0 && (slot + 1) * b->shards <= b->n_rows)
        memset(&b->rows[slot * b->shards], 0, b->shards * sizeof(*b->rows));
}

int
bpf_net_add(struct bpf_net *b, uint64_t id, const struct netrules *egress,
            const struct netrules *bind, const struct bpf_devices *devices, struct err *e)
{
    struct bpf_leaf leaf = {.flags = devices != NULL ? BPF_LEAF_DEV : 0};
    auto_fd int lock = bpf_cgroup_lock(b->cgroup);
    if (lock < 0)
        return err_errno(e, -lock, "lock the cgroup of tasks");
    int r = 0;
    if (devices != NULL && devices->n > 0) {
        r = put_devices(b, id, devices, e);
        if (r < 0)
            return r;
        leaf.flags |= BPF_LEAF_GIVEN;
    }
    if (egress != NULL || bind != NULL) {
        leaf.rules = rules_id(b, egress, bind);
        leaf.flags |= (egress != NULL ? BPF_LEAF_EGRESS : 0) | (bind != NULL ? BPF_LEAF_BIND : 0);
        r = know_rules(b, leaf.rules, egress, bind);
        if (r == -ENOSPC) {
            drop_unused(b);
            r = know_rules(b, leaf.rules, egress, bind);
        }
    }
    if (r == 0)
        leaf.slot = take_slot(b, id);
    if (r == 0)
        r = bpf_map_put(b->leaf, &id, &leaf);
    if (r < 0) {
        free_slot(b, leaf.slot);
        if (leaf.flags & BPF_LEAF_GIVEN)
            drop_devices(b, id);
    }
    return r < 0 ? err_errno(e, -r, "give the kernel the task's network policy") : 0;
}

bool
bpf_net_has(const struct bpf_net *b, uint64_t id)
{
    struct bpf_leaf x;
    return b->rows != NULL && bpf_map_get(b->leaf, &id, &x) == 0;
}

static void
remove_leaf(struct bpf_net *b, uint64_t id)
{
    struct bpf_leaf x;
    if (bpf_map_get(b->leaf, &id, &x) < 0)
        return;
    (void)bpf_map_delete(b->leaf, &id);
    if ((x.flags & BPF_LEAF_GIVEN) && b->dev >= 0)
        drop_devices(b, id);
    free_slot(b, x.slot);
}

void
bpf_net_remove(struct bpf_net *b, uint64_t id)
{
    auto_fd int lock = b->rows != NULL && id != 0 ? bpf_cgroup_lock(b->cgroup) : -1;
    if (lock >= 0)
        remove_leaf(b, id);
}
