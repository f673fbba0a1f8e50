/* SPDX-License-Identifier: Apache-2.0
 *
 * server members, operator raft, agent-info, version, system gc: what is told of servers and
 * agents. By far the most is server members, which asks one server of each region who leads there.
 * Then the commands come one by one; those that change a server send one struct change (cli/api.h).
 */
#include <stdlib.h>
#include <string.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"

/* --- server members --- */

/* The leader of each region that has a member which has not left, as "ip:port" of its RPC. */
struct leaders {
    struct str_map of;
    struct str_list wrong; /* regions, and why theirs is not known */
};

static const char *
server_tag(const struct agent_member *m, const char *name)
{
    return str_or(str_map_get(&m->tags, name), "");
}

static const char *
leader_target(struct cmd *c, const char *region)
{
    const char *asked = c->region;
    c->region = region;
    const char *target = api_target(c, "/v1/status/leader", NULL);
    c->region = asked;
    return target;
}

static void
ask_leaders(struct cmd *c, const struct server_members_response *r, struct leaders *ret)
{
    struct str_list regions = {0};
    for (size_t i = 0; i < r->members.n; i++) {
        const struct agent_member *m = r->members.v[i];
        const char *region = server_tag(m, "region");
        struct value *v = NULL;
        struct err e = ERR_INIT;
        if (str_eq(m->status, "left") || str_list_has(&regions, region))
            continue;
        list_add(c, regions, region);
        if (api_get_value(c, leader_target(c, region), &v, &e))
            list_add(c, ret->wrong, mem_printf(c, "Region \"%s\": %s", region, e.text));
        else if (v->kind == VALUE_STRING)
            str_map_set(c, &ret->of, region, v->str.s);
    }
}

static int
member_cmp(const void *a, const void *b)
{
    const struct agent_member *const *x = a, *const *y = b;
    return strcmp(str_or((*x)->name, ""), str_or((*y)->name, ""));
}

static bool
server_leads(struct cmd *c, const struct agent_member *m, const struct leaders *all)
{
    const char *leader = str_map_get(&all->of, server_tag(m, "region"));
    const char *host = str_or(server_tag(m, "rpc_addr"), m->addr), *port = server_tag(m, "port");
    const char *mine = strchr(host, ':') != NULL ? mem_printf(c, "[%s]:%s", host, port)
                                                 : mem_printf(c, "%s:%s", host, port);
    return leader != NULL && str_eq(mine, leader);
}

static const char *
all_tags(struct cmd *c, const struct agent_member *m)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    for (size_t j = 0; j < m->tags.n; j++)
        buf_printf(&b, "%s%s=%s", j ? "," : "", m->tags.v[j].k, m->tags.v[j].v);
    return mem_strdup(c, buf_str(&b));
}

static void
print_members(struct cmd *c, const struct server_members_response *r, const struct leaders *lead,
              bool detailed)
{
    enum { COLUMNS = 11 };
    static const char *const names[COLUMNS] = {
        "Name", "Address", "Port", "Status", "Leader", "Protocol", "Raft Version", "Build",
        "Datacenter", "Region", "Tags"};
    const char *cell[COLUMNS];
    struct table t;
    table_init(&t, c, detailed ? COLUMNS : COLUMNS - 2);
    for (size_t i = 0; i <= r->members.n; i++) {
        const struct agent_member *m = i ? r->members.v[i - 1] : NULL;
        size_t k = 0;
        cell[k++] = m ? m->name : names[0];
        cell[k++] = m ? m->addr : names[1];
        cell[k++] = m ? fmt_u64(c, m->port) : names[2];
        cell[k++] = m ? m->status : names[3];
        cell[k++] = m ? fmt_bool(server_leads(c, m, lead)) : names[4];
        if (detailed)
            cell[k++] = m ? fmt_i64(c, m->protocol_cur) : names[5];
        cell[k++] = m ? server_tag(m, "raft_vsn") : names[6];
        cell[k++] = m ? server_tag(m, "build") : names[7];
        cell[k++] = m ? server_tag(m, "dc") : names[8];
        cell[k++] = m ? server_tag(m, "region") : names[9];
        if (detailed)
            cell[k++] = m ? all_tags(c, m) : names[10];
        table_cells(&t, cell);
    }
    table_print(&t);
}

int
cmd_server_members(struct cmd *c)
{
    bool detailed = false, verbose = false, ui = false;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"detailed", OPT_BOOL, &detailed, NULL, "Older spelling of -verbose."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show protocol and tags too."},
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: the command ui prints the address."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    struct server_members_response *r =
        api_read(c, api_target(c, "/v1/agent/members", NULL), &type_server_members_response,
                 "Error querying servers");
    if (!r)
        return 1;
    if (r->members.n)
        qsort(r->members.v, r->members.n, sizeof(*r->members.v), member_cmp);
    struct leaders lead = {0};
    ask_leaders(c, r, &lead);
    for (size_t i = 0; i < r->members.n && (out.json || out.tmpl != NULL); i++)
        str_map_set(c, &r->members.v[i]->tags, "Leader",
                    fmt_bool(server_leads(c, r->members.v[i], &lead)));
    if (output_list(c, &out, &type_agent_member, &r->members, &rc))
        return rc;
    print_members(c, r, &lead, verbose || detailed);
    if (lead.wrong.n > 0)
        return cmd_fail(c, "\nError determining leaders: %s", fmt_join(c, &lead.wrong, "; "));
    return 0;
}

/* --- operator raft list-peers --- */

static int
peer_cmp(const void *a, const void *b)
{
    const struct raft_server *const *x = a, *const *y = b;
    return strcmp(str_or((*x)->node, ""), str_or((*y)->node, ""));
}

int
cmd_operator_raft_list(struct cmd *c)
{
    bool stale = false;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"stale", OPT_BOOL, &stale, NULL, "Without effect: any server answers."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    const struct raft_configuration *r =
        api_read(c, api_target(c, "/v1/operator/raft/configuration", NULL),
                 &type_raft_configuration, "Error listing peers");
    if (!r)
        return 1;
    if (output_object(c, &out, &type_raft_configuration, r, &rc))
        return rc;
    struct table t;
    table_init(&t, c, 6);
    table_row(&t, "Node", "ID", "Address", "State", "Voter", "RaftProtocol");
    if (r->servers.n > 0)
        qsort(r->servers.v, r->servers.n, sizeof(*r->servers.v), peer_cmp);
    for (size_t i = 0; i < r->servers.n; i++) {
        const struct raft_server *s = r->servers.v[i];
        table_row(&t, s->node, s->id, s->address, s->leader ? "leader" : "follower",
                  fmt_bool(s->voter), s->raft_protocol);
    }
    table_print(&t);
    return 0;
}

/* --- server join, force-leave --- */

int
cmd_server_join(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = SIZE_MAX}, &rc))
        return rc;
    const char *target = api_target(c, "/v1/agent/join", NULL);
    for (size_t i = 0; i < c->n_args; i++) {
        auto_buf struct buf b = BUF_INIT(1 << 16);
        buf_printf(&b, "%s%saddress=", target, strchr(target, '?') != NULL ? "&" : "?");
        http_escape(&b, c->args[i], false);
        target = mem_strdup(c, buf_str(&b));
    }
    const struct server_join_response *r =
        api_change(c, &(struct change){.target = target, .answer = &type_server_join_response,
                                       .failed = "Error joining: failed joining"});
    if (!r)
        return 1;
    if (!str_empty(r->error))
        return cmd_fail(c, "Error joining: failed joining: %s", r->error);
    if (!str_empty(r->warning))
        cmd_fail(c, "Joined %lld servers successfully but got warning: %s",
                 (long long)r->num_joined, r->warning);
    else
        cmd_say(c, "Joined %lld servers successfully", (long long)r->num_joined);
    return 0;
}

int
cmd_server_force_leave(struct cmd *c)
{
    bool prune = false;
    const struct opt opts[] = {
        {"prune", OPT_BOOL, &prune, NULL, "Do not show it among the members any more."}, {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct change leave = {
        .target = api_target(c, "/v1/agent/force-leave", "node", c->args[0], "prune",
                             prune ? "1" : NULL, NULL),
        .failed = mem_printf(c, "Error force-leaving server %s", c->args[0])};
    return api_change(c, &leave) ? 0 : 1;
}

/* --- operator raft remove-peer, transfer-leadership --- */

/* A server that is named, by its id or its address, goes or leads. */
int
cmd_operator_raft_change(struct cmd *c)
{
    static const struct {
        const char *command, *verb, *method, *path, *failed, *done;
    } rows[] = {
        {"remove-peer", "go", "DELETE", "/v1/operator/raft/peer", "Error removing peer",
         "Removed peer"},
        {"transfer-leadership", "lead", "PUT", "/v1/operator/raft/transfer-leadership",
         "Error transferring leadership to peer", "Transferred leadership to peer"}};
    size_t i = str_suffix(c->command->name, rows[0].command) ? 0 : 1;
    const char *id = NULL, *address = NULL;
    const struct opt opts[] = {
        {"peer-id", OPT_STRING, &id, "<id>",
         mem_printf(c, "The server that is to %s, as list-peers shows it.", rows[i].verb)},
        {"peer-address", OPT_STRING, &address, "<ip:port>", "The same, by its address."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (str_empty(id) == str_empty(address))
        return cmd_fail(c, "Set either -peer-id or -peer-address");
    const char *what = str_empty(id) ? "address" : "id", *peer = str_empty(id) ? address : id;
    if (!api_change(c,
                    &(struct change){rows[i].method, api_target(c, rows[i].path, what, peer, NULL),
                                     .failed = rows[i].failed}))
        return 1;
    cmd_say(c, "%s with %s \"%s\"", rows[i].done, what, peer);
    return 0;
}

/* --- agent-info --- */

static int
pair_cmp(const void *a, const void *b)
{
    const struct value_pair *x = a, *y = b;
    return strcmp(x->k, y->k);
}

static const char *
text_of(struct cmd *c, const struct value *v)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    if (v->kind == VALUE_STRING)
        return v->str.s;
    json_encode_value(&b, v, 0);
    return mem_strdup(c, buf_str(&b));
}

static void
print_stats(struct cmd *c, struct value *stats)
{
    qsort(stats->map.v, stats->map.n, sizeof(*stats->map.v), pair_cmp);
    for (size_t i = 0; i < stats->map.n; i++) {
        struct value *part = stats->map.v[i].v;
        cmd_say(c, "%s", stats->map.v[i].k);
        if (part->kind != VALUE_MAP || !part->map.n)
            continue;
        qsort(part->map.v, part->map.n, sizeof(*part->map.v), pair_cmp);
        for (size_t j = 0; j < part->map.n; j++)
            cmd_say(c, "  %s = %s", part->map.v[j].k, text_of(c, part->map.v[j].v));
    }
}

int
cmd_agent_info(struct cmd *c)
{
    struct output out = {false, NULL};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    struct err e = ERR_INIT;
    struct value *v = NULL;
    if (api_get_value(c, api_target(c, "/v1/agent/self", NULL), &v, &e))
        return cmd_fail(c, "Error querying agent info: %s", e.text);
    if (output_value(c, &out, v, &rc))
        return rc;
    struct value *stats = value_get(v, "stats");
    if (!stats || stats->kind != VALUE_MAP || !stats->map.n)
        return cmd_fail(c, "Error querying agent info: the agent told no statistics");
    print_stats(c, stats);
    return 0;
}

/* --- version, gc --- */

#ifdef __aarch64__
#define ARCHITECTURE "arm64"
#else
#define ARCHITECTURE "amd64"
#endif

int
cmd_version(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 0}, &rc))
        return rc;
    cmd_say(c, "Paddock v%s (%s)", PACKAGE_VERSION, ARCHITECTURE);
    cmd_say(c, "Nomad v%s (the interface it speaks)", NOMAD_VERSION);
    return 0;
}

int
cmd_system_gc(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    const struct change gc = {.target = api_target(c, "/v1/system/gc", NULL),
                              .failed = "Error running system garbage-collection"};
    return api_change(c, &gc) ? 0 : 1;
}
