/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/isolation/network/netrig.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

const char netrig_other[] = "0000002b-89ab-cdef-0123-456789abcdef";
const char *netrig_ports_ip = "127.0.0.1";
pid_t netrig_pid;
uint64_t netrig_leaf;

void
netrig_start_here(struct rig *r)
{
    rig_start(r, 0);
    rig_alloc(r, rig_id, "web", "exec");
    rig_alloc(r, rig_id, "aside", "exec");
    rig_alloc(r, netrig_other, "web", "exec");
}

void
netrig_start(struct rig *r)
{
    rig_own_network();
    netrig_start_here(r);
}

/* NULL, or the error. `ports`: pairs host port, port inside, 0 at the end; may be NULL. */
const char *
netrig_ports(struct rig *r, const char *id, const char *mode, const int *ports,
             const char **ret_address)
{
    struct net_request q = {.mode = mode};
    struct got g = {0};
    for (; ports != NULL && ports[0] != 0; ports += 2) {
        struct net_request_port *p = mem_new(r->ctx, struct net_request_port);
        *p = (struct net_request_port){
            .host_ip = netrig_ports_ip, .host_port = ports[0], .to = ports[1]};
        list_add(r->ctx, q.ports, p);
    }
    warden_net_make(r->client, id, &q, rig_got, &g);
    rig_wait(r, &g);
    const char *why = g.err.code != 0 ? mem_strdup(r->ctx, g.err.text) : NULL;
    if (ret_address != NULL && why == NULL)
        *ret_address = mem_strdup(r->ctx, g.network->address);
    got_free(&g);
    return why;
}

const char *
netrig_make(struct rig *r, const char *id, const char *mode)
{
    return netrig_ports(r, id, mode, NULL, NULL);
}

const char *
netrig_remove(struct rig *r, const char *id)
{
    struct got g = {0};
    warden_net_remove(r->client, id, rig_got, &g);
    rig_wait(r, &g);
    const char *why = g.err.code != 0 ? mem_strdup(r->ctx, g.err.text) : NULL;
    got_free(&g);
    return why;
}

void
netrig_destroy(struct rig *r, const char *id, const char *task)
{
    struct got d = {0};
    warden_kill(r->client, id, task, rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
    d = (struct got){0};
    warden_destroy(r->client, id, task, rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
}

/* Launches a task, and returns what it says before it goes on for ever. `egress` may be NULL. */
const char *
netrig_launch_policed(struct rig *r, const char *id, const char *task, const char *script,
                      struct net_policy *egress)
{
    struct got g;
    struct launch_spec *s =
        rig_spec(r, id, task, true, mem_printf(r->ctx, "%s; echo end; exec sleep 1000", script));
    s->share_net = false;
    s->egress = egress;
    const char *out = mem_printf(r->ctx, "alloc/logs/%s.stdout.0", task);
    struct stat st = {0}; /* the log goes on where the last run of the task ended */
    (void)stat(mem_printf(r->ctx, "%s/%s/%s", r->policy.alloc_dir, id, out), &st);
    rig_launch(r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    struct stat leaf = {0};
    (void)fstat(g.cgroup, &leaf);
    netrig_leaf = leaf.st_ino;
    netrig_pid = (pid_t)g.rec->pid;
    got_free(&g);
    /* a limit against what hangs: under emulation, beside other lanes, a script takes a minute */
    for (int i = 0; i < 24000; i++) {
        char *text = rig_file(r, id, out) + st.st_size;
        if (str_suffix(text, "end\n"))
            return text;
        rig_pause(5);
    }
    ck_abort_msg("task %s says nothing: %s", task,
                 rig_file(r, id, mem_printf(r->ctx, "alloc/logs/%s.stderr.0", task)));
    return NULL;
}

const char *
netrig_launch(struct rig *r, const char *id, const char *task, const char *script)
{
    return netrig_launch_policed(r, id, task, script, NULL);
}

bool
netrig_has_record(struct rig *r, const char *id)
{
    return access(mem_printf(r->ctx, "%s/networks/%s", r->policy.data_dir, id), F_OK) == 0;
}

void
netrig_reconnect(struct rig *r)
{
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
}

void
netrig_respawn(struct rig *r)
{
    rig_kill(r, SIGKILL);
    rig_spawn(r);
    netrig_reconnect(r);
}

bool
netrig_need(struct rig *r, const char *fact)
{
    bool works = rig_has(r, fact);
    if (!works)
        rig_stop(r);
    return works;
}
