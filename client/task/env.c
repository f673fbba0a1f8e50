/* SPDX-License-Identifier: Apache-2.0
 *
 * NOMAD_* variables and ${...}; see env.h. Pure.
 *
 * First names, in which odd bytes become "_"; then the layers of the environment: identifiers,
 * limits, ports, what hooks add, meta from job to task, the host's variables less the denied ones,
 * and last the task's own block; then interpolation, of one text, of a whole config, and its check.
 */
#include "client/task/env.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "api/plain.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"

struct env {
    struct str_map vars;
    const struct env_input *in;
    bool building;           /* the variables' own values are resolved */
    const char *too_long;    /* the first text that was, before its references were resolved */
    struct str_list missing; /* what a config refers to and nobody has */
};

/* --- names --- */

static bool
name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* PREFIX_label with odd bytes of the label as '_'. */
static const char *
clean_name(const void *ctx, const char *prefix, const char *label)
{
    char *s = mem_printf(ctx, "%s%s", prefix, label);
    for (char *p = s + strlen(prefix); *p; p++)
        if (!name_char(*p))
            *p = '_';
    return s;
}

static void
env_put(struct env *e, const char *name, const char *value)
{
    if (value)
        str_map_set(e, &e->vars, name, value);
}

static void
put_int(struct env *e, const char *name, int64_t v)
{
    env_put(e, name, mem_printf(e, "%lld", (long long)v));
}

static void note_missing(struct env *env, const char *s, const char *root);

/* --- layers --- */

/* "job.group[3]" -> "3" */
static const char *
index_of(const void *ctx, const char *name)
{
    const char *open = name ? strrchr(name, '[') : NULL;
    const char *end = open ? strchr(open, ']') : NULL;
    return end ? mem_strndup(ctx, open + 1, (size_t)(end - open - 1)) : "";
}

static void
put_ids(struct env *e)
{
    const struct env_input *in = e->in;
    const struct allocation *a = in->alloc;
    const struct job *job = a->job;
    env_put(e, "NOMAD_ALLOC_DIR", in->alloc_dir);
    env_put(e, "NOMAD_TASK_DIR", in->task_dir);
    env_put(e, "NOMAD_SECRETS_DIR", in->secrets_dir);
    env_put(e, "NOMAD_ALLOC_ID", a->id);
    env_put(e, "NOMAD_SHORT_ALLOC_ID", mem_strndup(e, a->id, 8));
    env_put(e, "NOMAD_ALLOC_NAME", a->name);
    env_put(e, "NOMAD_ALLOC_INDEX", index_of(e, a->name));
    /* each placement of a name is an entry of the log behind that of the one before */
    env_put(e, "NOMAD_ALLOC_EPOCH", mem_printf(e, "%llu", (unsigned long long)a->create_index));
    if (in->task)
        env_put(e, "NOMAD_TASK_NAME", in->task->name);
    env_put(e, "NOMAD_GROUP_NAME", in->group->name);
    env_put(e, "NOMAD_JOB_ID", job->id);
    env_put(e, "NOMAD_JOB_NAME", str_or(job->name, job->id));
    if (!str_empty(job->parent_id))
        env_put(e, "NOMAD_JOB_PARENT_ID", job->parent_id);
    env_put(e, "NOMAD_DC", str_or(in->node->datacenter, ""));
    env_put(e, "NOMAD_REGION", str_or(in->region, "global"));
    env_put(e, "NOMAD_NAMESPACE", str_or(a->namespace, "default"));
    env_put(e, "NOMAD_PARENT_CGROUP", in->parent_cgroup);
}

/* 0,1,2,7 -> "0-2,7" */
static const char *
core_ranges(const void *ctx, const struct i64_list *cores)
{
    char *s = mem_strdup(ctx, "");
    for (size_t i = 0; i < cores->n;) {
        size_t j = i;
        while (j + 1 < cores->n && cores->v[j + 1] == cores->v[j] + 1)
            j++;
        const char *sep = i ? "," : "";
        if (j > i)
            s = mem_printf(ctx, "%s%s%lld-%lld", s, sep, (long long)cores->v[i],
                           (long long)cores->v[j]);
        else
            s = mem_printf(ctx, "%s%s%lld", s, sep, (long long)cores->v[i]);
        i = j + 1;
    }
    return s;
}

static void
put_limits(struct env *e)
{
    const struct allocated_task_resources *r = e->in->resources;
    if (!r)
        return;
    if (r->cpu) {
        put_int(e, "NOMAD_CPU_LIMIT", r->cpu->cpu_shares);
        if (r->cpu->reserved_cores.n > 0)
            env_put(e, "NOMAD_CPU_CORES", core_ranges(e, &r->cpu->reserved_cores));
    }
    if (r->memory && r->memory->memory_mb > 0)
        put_int(e, "NOMAD_MEMORY_LIMIT", r->memory->memory_mb);
    if (r->memory && r->memory->memory_max_mb > 0)
        put_int(e, "NOMAD_MEMORY_MAX_LIMIT", r->memory->memory_max_mb);
}

static void
put_port(struct env *e, const char *label, const char *ip, int64_t value, int64_t to)
{
    int64_t bind = to > 0 ? to : value;
    ip = str_or(ip, "");
    const char *addr = strchr(ip, ':') ? mem_printf(e, "[%s]:%lld", ip, (long long)value)
                                       : mem_printf(e, "%s:%lld", ip, (long long)value);
    env_put(e, clean_name(e, "NOMAD_IP_", label), ip);
    env_put(e, mem_printf(e, "NOMAD_HOST_IP_%s", label), ip);
    put_int(e, clean_name(e, "NOMAD_PORT_", label), bind);
    put_int(e, mem_printf(e, "NOMAD_ALLOC_PORT_%s", label), bind);
    put_int(e, clean_name(e, "NOMAD_HOST_PORT_", label), value);
    env_put(e, clean_name(e, "NOMAD_ADDR_", label), addr);
    env_put(e, mem_printf(e, "NOMAD_HOST_ADDR_%s", label), addr);
}

static void
put_network_ports(struct env *e, const struct network_resource *n)
{
    const struct port_list *lists[] = {&n->reserved_ports, &n->dynamic_ports};
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->n; i++) {
            const struct port *p = lists[l]->v[i];
            put_port(e, p->label, n->ip, p->value, p->to);
        }
}

static void
put_ports(struct env *e)
{
    const struct allocated_resources *ar = e->in->alloc->allocated_resources;
    const struct allocated_task_resources *r = e->in->resources;
    for (size_t i = 0; r && i < r->networks.n; i++)
        put_network_ports(e, r->networks.v[i]);
    if (!ar || !ar->shared)
        return;
    for (size_t i = 0; i < ar->shared->networks.n; i++)
        put_network_ports(e, ar->shared->networks.v[i]);
    for (size_t i = 0; i < ar->shared->ports.n; i++) {
        const struct allocated_port_mapping *p = ar->shared->ports.v[i];
        put_port(e, p->label, p->host_ip, p->value, p->to);
    }
}

static void
put_meta_layer(struct env *e, const struct str_map *meta)
{
    for (size_t i = 0; i < meta->n; i++) {
        const char *name = clean_name(e, "NOMAD_META_", meta->v[i].k);
        const char *value = env_interpolate(e, e, str_or(meta->v[i].v, ""));
        env_put(e, name, value);
        char *upper = mem_strdup(e, name);
        for (char *p = upper; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        env_put(e, upper, value);
    }
}

/* Sets to empty the metadata that a dispatch might have set and did not. */
static void
put_optional_meta(struct env *e, const struct parameterized_job_config *p)
{
    struct str_map m = {0};
    for (size_t i = 0; p && i < p->meta_optional.n; i++)
        str_map_set(e, &m, p->meta_optional.v[i], "");
    put_meta_layer(e, &m);
}

static bool
env_denied(const struct env_input *in, const char *name)
{
    for (const char *const *d = in->host_deny; d && *d; d++)
        if (str_glob(*d, name))
            return true;
    return false;
}

static void
put_host(struct env *e)
{
    for (const char *const *h = e->in->host_env; h && *h; h++) {
        const char *eq = strchr(*h, '=');
        if (!eq || !plain_env_name(*h, (size_t)(eq - *h)))
            continue;
        const char *name = mem_strndup(e, *h, (size_t)(eq - *h));
        if (!env_denied(e->in, name) && !str_map_get(&e->vars, name))
            env_put(e, name, eq + 1);
    }
    if (e->in->user) {
        env_put(e, "USER", e->in->user);
        env_put(e, "LOGNAME", e->in->user);
    }
    if (e->in->home)
        env_put(e, "HOME", e->in->home);
}

/* All of the block is resolved against what is there before it: order does not matter. */
static void
put_own(struct env *e, const struct str_map *own)
{
    const char **vals = mem_array(e, const char *, own->n);
    for (size_t i = 0; i < own->n; i++) {
        vals[i] = env_interpolate(e, e, str_or(own->v[i].v, ""));
        note_missing(e, str_or(own->v[i].v, ""), "secret.");
    }
    for (size_t i = 0; i < own->n; i++)
        env_put(e, own->v[i].k, vals[i]);
}

struct env *
env_build(const void *ctx, const struct env_input *in)
{
    struct env *e = mem_new(ctx, struct env);
    e->in = in;
    e->building = true;
    put_ids(e);
    put_limits(e);
    put_ports(e);
    for (size_t i = 0; in->hooks && i < in->hooks->n; i++)
        env_put(e, in->hooks->v[i].k, in->hooks->v[i].v);
    put_optional_meta(e, in->alloc->job->parameterized_job);
    put_meta_layer(e, &in->alloc->job->meta);
    put_meta_layer(e, &in->group->meta);
    if (in->task)
        put_meta_layer(e, &in->task->meta);
    put_host(e);
    if (in->task)
        put_own(e, &in->task->env);
    for (size_t i = 0; in->last && i < in->last->n; i++)
        env_put(e, in->last->v[i].k, in->last->v[i].v);
    e->building = false;
    return e;
}

void
env_map_ports(struct env *env, const struct value *map)
{
    for (size_t i = 0; map && i < map->map.n; i++) {
        const struct value *v = map->map.v[i].v;
        const char *name = clean_name(env, "NOMAD_PORT_", map->map.v[i].k);
        if (v && v->kind == VALUE_INT)
            put_int(env, name, v->i);
        else if (v && v->kind == VALUE_STRING)
            env_put(env, name, v->str.s);
    }
}

void
env_list(const void *ctx, const struct env *env, struct str_list *ret)
{
    ret->v = mem_array(ctx, const char *, env->vars.n);
    ret->n = 0;
    for (size_t i = 0; i < env->vars.n; i++)
        ret->v[ret->n++] = mem_printf(ret->v, "%s=%s", env->vars.v[i].k, env->vars.v[i].v);
}

const char *
env_get(const struct env *env, const char *name)
{
    return str_map_get(&env->vars, name);
}

const struct str_map *
env_all(const struct env *env)
{
    return &env->vars;
}

/* --- interpolation --- */

static const char *
node_value(const struct env_input *in, const char *key)
{
    const struct node *n = in->node;
    const struct {
        const char *key;
        const char *value;
    } rows[] = {
        {"unique.id", n->id},     {"unique.name", n->name}, {"datacenter", n->datacenter},
        {"class", n->node_class}, {"pool", n->node_pool},   {"region", in->region},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(key, rows[i].key) == 0)
            return str_or(rows[i].value, "");
    return NULL;
}

static const char *
look_up(const struct env *e, const char *name)
{
    if (str_prefix(name, "env."))
        return env_get(e, name + 4);
    if (str_prefix(name, "node."))
        return node_value(e->in, name + 5);
    if (str_prefix(name, "attr."))
        return str_map_get(&e->in->node->attributes, name + 5);
    if (str_prefix(name, "meta."))
        return str_map_get(&e->in->node->meta, name + 5);
    if (str_prefix(name, "secret."))
        return e->in->secrets ? str_map_get(e->in->secrets, name + 7) : NULL;
    if (env_get(e, name) || !e->building)
        return env_get(e, name);
    /* the values of variables may name a port or meta as the job does, a config not: as in Nomad */
    static const char *const cleaned[] = {"NOMAD_IP_", "NOMAD_PORT_", "NOMAD_HOST_PORT_",
                                          "NOMAD_ADDR_", "NOMAD_META_"};
    for (size_t i = 0; i < ARRAY_LEN(cleaned); i++)
        if (str_prefix(name, cleaned[i]))
            return env_get(e, clean_name(e, cleaned[i], name + strlen(cleaned[i])));
    return NULL;
}

/* Length of a reference "${name}" at s, its name in *ret_name; 0: there is none. */
static size_t
reference_at(const void *ctx, const char *s, const char **ret_name)
{
    if (s[0] != '$' || s[1] != '{')
        return 0;
    size_t n = 2;
    while (name_char(s[n]) || s[n] == '-')
        n++;
    if (s[n] != '}' || n == 2)
        return 0;
    *ret_name = mem_strndup(ctx, s + 2, n - 2);
    return n + 1;
}

const char *
env_interpolate(const void *ctx, struct env *env, const char *s)
{
    if (!s || !strstr(s, "${"))
        return s;
    const char *whole = s;
    auto_mem void *tmp = mem_ctx("interpolate");
    auto_buf struct buf out = BUF_INIT(ENV_VALUE_MAX);
    while (*s) {
        const char *name = NULL;
        size_t n = reference_at(tmp, s, &name);
        const char *value = n ? look_up(env, name) : NULL;
        if (value) {
            buf_puts(&out, value);
            s += n;
        } else {
            buf_putc(&out, *s++);
        }
    }
    if (buf_error(&out) < 0 && !env->too_long)
        env->too_long = mem_strndup(env, whole, 64);
    return mem_strdup(ctx, buf_str(&out));
}

int
env_check(const struct env *env, struct err *e)
{
    if (env->missing.n > 0) {
        auto_buf struct buf names = BUF_INIT(ENV_VALUE_MAX);
        for (size_t i = 0; i < env->missing.n; i++)
            buf_printf(&names, "%s${%.100s}", i > 0 ? ", " : "", env->missing.v[i]);
        return err_set(e, -ERR_INVALID, "the task refers to what has no value: %s",
                       buf_str(&names));
    }
    return env->too_long ? err_set(e, -ERR_INVALID,
                                   "with its references resolved \"%s...\" is longer than %d bytes",
                                   env->too_long, ENV_VALUE_MAX)
                         : 0;
}

/* Tells whether a name is ours; ${FOO} is for a shell. */
static bool
is_ours(const char *name)
{
    static const char *const roots[] = {"NOMAD_", "attr.", "meta.", "node.", "env.", "secret."};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        if (str_prefix(name, roots[i]))
            return true;
    return false;
}

static bool
is_noted(const struct env *env, const char *name)
{
    for (size_t i = 0; i < env->missing.n; i++)
        if (str_eq(env->missing.v[i], name))
            return true;
    return false;
}

/* Lists the references of the text that have no value, each once. root: of which alone; "": of all
 * that are ours. */
static void
note_missing(struct env *env, const char *s, const char *root)
{
    auto_mem void *tmp = mem_ctx("references");
    for (; (s = strstr(s, "${")) != NULL; s += 2) {
        const char *name = NULL;
        if (reference_at(tmp, s, &name) == 0 || !is_ours(name) || !str_prefix(name, root) ||
            look_up(env, name) != NULL || env->missing.n >= ENV_MISSING_MAX || is_noted(env, name))
            continue;
        list_add(env, env->missing, mem_strdup(env, name));
    }
}

static struct value *
interpolate_at(const void *ctx, struct env *env, const struct value *v, int depth)
{
    if (!v)
        return NULL;
    if (depth > ENV_DEPTH_MAX)
        return value_clone(ctx, v);
    if (v->kind == VALUE_STRING) {
        note_missing(env, v->str.s, "");
        return value_str(ctx, env_interpolate(ctx, env, v->str.s));
    }
    if (v->kind == VALUE_LIST) {
        struct value *l = value_list(ctx);
        for (size_t i = 0; i < v->list.n; i++)
            value_list_add(l, interpolate_at(ctx, env, v->list.v[i], depth + 1));
        return l;
    }
    if (v->kind == VALUE_MAP) {
        struct value *m = value_map(ctx);
        for (size_t i = 0; i < v->map.n; i++) {
            const char *k = v->map.v[i].k;
            note_missing(env, k, "");
            value_map_set(m, env_interpolate(ctx, env, k),
                          interpolate_at(ctx, env, v->map.v[i].v, depth + 1));
        }
        return m;
    }
    return value_clone(ctx, v);
}

struct value *
env_interpolate_value(const void *ctx, struct env *env, const struct value *v)
{
    return interpolate_at(ctx, env, v, 0);
}
