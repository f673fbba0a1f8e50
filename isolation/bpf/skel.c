/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/bpf/skel.h"

#include <errno.h>

#ifdef HAVE_BPF
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fd.h"
#include "isolation/bpf/generated.h"

/* The skeleton goes, the fds that are wanted stay. */
static int
skel_take(int *fd)
{
    return TAKE_FD(*fd);
}

int
bpf_skel_net(struct bpf_skel_net *s)
{
    struct bpf_net *k = bpf_net__open();
    if (k == NULL)
        return -ENOMEM;
    k->rodata->root_id = s->root_id;
    k->rodata->n_shards = s->shards;
    k->maps.pd1_leaf.max_entries = s->leaf_max;
    k->maps.pd1_net.max_entries = s->rows_max;
    k->maps.pd1_rules.max_entries = s->rules_max;
    k->maps.pd1_dev.max_entries = s->dev_max;
    int r = bpf_net__load(k);
    if (r == 0) {
        s->leaf = skel_take(&k->maps.pd1_leaf.map_fd);
        s->net = skel_take(&k->maps.pd1_net.map_fd);
        s->rules = skel_take(&k->maps.pd1_rules.map_fd);
        s->dev = skel_take(&k->maps.pd1_dev.map_fd);
        s->progs[BPF_NET_CONNECT4] = skel_take(&k->progs.pd1_connect4.prog_fd);
        s->progs[BPF_NET_CONNECT6] = skel_take(&k->progs.pd1_connect6.prog_fd);
        s->progs[BPF_NET_SENDMSG4] = skel_take(&k->progs.pd1_sendmsg4.prog_fd);
        s->progs[BPF_NET_SENDMSG6] = skel_take(&k->progs.pd1_sendmsg6.prog_fd);
        s->progs[BPF_NET_BIND4] = skel_take(&k->progs.pd1_bind4.prog_fd);
        s->progs[BPF_NET_BIND6] = skel_take(&k->progs.pd1_bind6.prog_fd);
        s->progs[BPF_NET_EGRESS] = skel_take(&k->progs.pd1_egress.prog_fd);
        s->progs[BPF_NET_INGRESS] = skel_take(&k->progs.pd1_ingress.prog_fd);
        s->progs[BPF_NET_DEVICE] = skel_take(&k->progs.pd1_device.prog_fd);
    }
    bpf_net__destroy(k);
    return r < 0 ? r : 0;
}

int
bpf_skel_run(struct bpf_skel_rows *s)
{
    struct bpf_run *k = bpf_run__open();
    if (k == NULL)
        return -ENOMEM;
    k->maps.pd1_slots.max_entries = s->slots_max;
    k->maps.pd1_run.max_entries = s->rows_max;
    int r = bpf_run__load(k);
    if (r == 0)
        r = bpf_run__attach(k);
    if (r == 0) {
        s->slots = skel_take(&k->maps.pd1_slots.map_fd);
        s->map = skel_take(&k->maps.pd1_run.map_fd);
        s->links[0] = skel_take(&k->links.pd1_switch_fd);
        s->links[1] = skel_take(&k->links.pd1_exec_fd);
        s->links[2] = skel_take(&k->links.pd1_exit_fd);
    } else if (r == -1) {
        r = -errno;
    }
    bpf_run__destroy(k);
    return r;
}

int
bpf_skel_block(struct bpf_skel_rows *s)
{
    struct bpf_block *k = bpf_block__open();
    if (k == NULL)
        return -ENOMEM;
    k->maps.pd1_blk_slots.max_entries = s->slots_max;
    k->maps.pd1_blk.max_entries = s->rows_max;
    int r = bpf_block__load(k);
    if (r == 0)
        r = bpf_block__attach(k);
    if (r == 0) {
        s->slots = skel_take(&k->maps.pd1_blk_slots.map_fd);
        s->map = skel_take(&k->maps.pd1_blk.map_fd);
        s->links[0] = skel_take(&k->links.pd1_blk_done_fd);
        s->links[1] = s->links[2] = -1;
    } else if (r == -1) {
        r = -errno;
    }
    bpf_block__destroy(k);
    return r;
}

uint64_t
bpf_skel_net_build(void)
{
    return BPF_NET_BUILD;
}

uint64_t
bpf_skel_run_build(void)
{
    return BPF_RUN_BUILD;
}

uint64_t
bpf_skel_block_build(void)
{
    return BPF_BLOCK_BUILD;
}

#else

int
bpf_skel_net(struct bpf_skel_net *s)
{
    (void)s;
    return -ENOSYS;
}

int
bpf_skel_run(struct bpf_skel_rows *s)
{
    (void)s;
    return -ENOSYS;
}

int
bpf_skel_block(struct bpf_skel_rows *s)
{
    (void)s;
    return -ENOSYS;
}

uint64_t
bpf_skel_net_build(void)
{
    return 0;
}

uint64_t
bpf_skel_run_build(void)
{
    return 0;
}

uint64_t
bpf_skel_block_build(void)
{
    return 0;
}
#endif
