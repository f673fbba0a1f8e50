/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a job file that drivers of engines have in common, from a checked config to what is
 * asked of the engine hand. Pure.
 */
#include <string.h>

#include "api/isolation.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "drivers/engine/convert.h"

enum { PERIOD_US = 100000 };

void
convert_fingerprint(const void *ctx, const struct driver_host *host, const char *driver,
                    struct driver_info *ret)
{
    const struct hand_info *i = host->engine;
    ret->detected = i && !str_empty(i->version);
    ret->healthy = i && i->healthy;
    ret->health_description =
        i ? mem_strdup(ctx, str_or(i->description, ""))
        : host->engine_on
            ? mem_printf(ctx, "%s is on, and has not said anything yet", driver)
            : mem_printf(ctx, "%s is off: plugin \"%s\" { config { enabled = true } } turns it on",
                         driver, driver);
    for (size_t k = 0; ret->healthy && k < i->attributes.n; k++)
        str_map_set(ctx, &ret->attributes, i->attributes.v[k].k, i->attributes.v[k].v);
}

/* --- ports --- */

static void
put_port(struct hand_task *t, const struct driver_port *p, int64_t to)
{
    struct hand_port *h = mem_new(t, struct hand_port);
    *h = (struct hand_port){
        .host_ip = mem_strdup(h, p->host_ip), .host_port = p->value, .port = to};
    list_add(t, t->ports, h);
}

static int
no_port(const char *option, const char *label, struct err *e)
{
    return err_set(e, -ERR_INVALID, "%s: there is no port \"%.64s\": check the network block",
                   option, label);
}

/* Is each of a port_map a port of the task's own network? */
static int
check_port_map(const struct driver_input *in, const struct value *map, struct err *e)
{
    for (size_t i = 0; map && i < map->map.n; i++) {
        const char *label = map->map.v[i].k;
        const struct driver_port *p = driver_find_port(in, label);
        int64_t to = driver_int(map, label, 0);
        if (to < 1 || to > 65535)
            return err_set(e, -ERR_INVALID, "port_map: \"%.64s\" is not a port from 1 to 65535",
                           label);
        if (!p)
            return no_port("port_map", label, e);
        if (!p->own)
            return err_set(e, -ERR_INVALID,
                           "'port_map' cannot map group network ports, use 'ports' instead");
    }
    return 0;
}

int
convert_ports(struct hand_task *t, const struct driver_input *in, struct err *e)
{
    auto_mem void *tmp = mem_ctx("ports");
    const struct value *map = driver_map(in->config, "port_map");
    struct str_list labels;
    int r = check_port_map(in, map, e);
    driver_strings(tmp, in->config, "ports", &labels);
    for (size_t i = 0; i < labels.n && r == 0; i++) {
        const struct driver_port *p = driver_find_port(in, labels.v[i]);
        if (p)
            put_port(t, p, p->to > 0 ? p->to : p->value);
        else
            r = no_port("ports", labels.v[i], e);
    }
    const char *mode = driver_string(in->config, "network_mode", "");
    bool all = labels.n == 0 && !str_eq(mode, "host") && !str_eq(mode, "none");
    for (size_t i = 0; all && i < in->n_ports && r == 0; i++)
        if (in->ports[i].own) /* without a word */
            put_port(t, &in->ports[i], driver_int(map, in->ports[i].label, in->ports[i].value));
    return r;
}

/* --- limits --- */

int
convert_limits(struct hand_task *t, const struct driver_input *in, struct err *e)
{
    const struct allocated_cpu_resources *cpu = in->resources ? in->resources->cpu : NULL;
    const struct allocated_memory_resources *m = in->resources ? in->resources->memory : NULL;
    int64_t high = driver_int(in->config, "memory_hard_limit", 0);
    if (m) {
        high = m->memory_max_mb > high ? m->memory_max_mb : high;
        if (high > 0 && high < m->memory_mb)
            return err_set(e, -ERR_INVALID,
                           "task memory requirements exceed driver hard limit of %lld MB",
                           (long long)high);
        t->memory_max = m->memory_max_mb < 0 ? 0 : (high > 0 ? high : m->memory_mb) << 20;
        t->memory_low = high > 0 || m->memory_max_mb < 0 ? m->memory_mb << 20 : 0;
    }
    for (size_t i = 0; cpu && i < cpu->reserved_cores.n; i++)
        t->cores = mem_printf(t, "%s%s%lld", str_or(t->cores, ""), i ? "," : "",
                              (long long)cpu->reserved_cores.v[i]);
    t->cpu_shares = cpu ? cpu->cpu_shares : 0;
    if (!cpu || !driver_bool(in->config, "cpu_hard_limit", false) || cpu->reserved_cores.n > 0)
        return 0;
    if (in->core_mhz <= 0)
        return err_set(e, -ERR_UNSUPPORTED,
                       "cpu_hard_limit: the frequency of this node's processors is not known: set "
                       "client.cpu_total_compute");
    t->cpu_max = (int64_t)((double)cpu->cpu_shares / in->core_mhz * PERIOD_US + 0.5);
    return 0;
}

void
convert_rows(struct hand_task *t, const struct value *config, const struct convert_row *rows,
             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *to = (char *)t + rows[i].to;
        switch (rows[i].kind) {
        case DRIVER_STRING:
            *(const char **)to = mem_strdup(t, driver_string(config, rows[i].name, ""));
            break;
        case DRIVER_BOOL:
            *(bool *)to = driver_bool(config, rows[i].name, false);
            break;
        case DRIVER_INT:
            *(int64_t *)to = driver_int(config, rows[i].name, 0);
            break;
        case DRIVER_STRINGS:
            driver_strings(t, config, rows[i].name, to);
            break;
        case DRIVER_MAP:
            convert_map(t, to, driver_map(config, rows[i].name));
            break;
        case DRIVER_WORDS:
        case DRIVER_DURATION:
        case DRIVER_BLOCKS:
            ASSERT(false); /* no row has these */
        }
    }
}

void
convert_image(struct hand_task *t, const struct value *config, const char *scheme)
{
    const char *image = driver_string(config, "image", "");
    t->image = mem_strdup(t, image + (str_prefix(image, scheme) ? strlen(scheme) : 0));
}

void
convert_map(struct hand_task *t, struct str_map *to, const struct value *map)
{
    for (size_t i = 0; map && i < map->map.n; i++) {
        const struct value *v = map->map.v[i].v;
        str_map_set(t, to, map->map.v[i].k,
                    v->kind == VALUE_STRING ? v->str.s
                    : v->kind == VALUE_INT  ? mem_printf(t, "%lld", (long long)v->i)
                                            : (v->b ? "true" : "false"));
    }
}

static void
put_auth(struct hand_task *t, const struct value *map)
{
    if (!map)
        return;
    t->auth = mem_new(t, struct hand_auth);
    t->auth->username = mem_strdup(t, driver_string(map, "username", ""));
    t->auth->password = mem_strdup(t, driver_string(map, "password", ""));
    t->auth->server_address = mem_strdup(t, driver_string(map, "server_address", ""));
}

static void
put_program(struct hand_task *t, const struct driver_input *in)
{
    const struct value *c = in->config;
    const char *command = driver_string(c, "command", "");
    struct str_list args;
    if (*command)
        list_add(t, t->command, mem_strdup(t, command));
    driver_strings(t, c, "args", &args);
    for (size_t i = 0; i < args.n; i++)
        list_add(t, t->command, args.v[i]);
    driver_strings(t, c, "entrypoint", &t->entrypoint);
    for (size_t i = 0; i < in->env->n; i++)
        list_add(t, t->env, mem_strdup(t, in->env->v[i]));
}

void
convert_common(struct hand_task *t, const struct driver_input *in)
{
    const struct log_config *log = in->task->log_config;
    t->user = mem_strdup(t, str_or(in->user, ""));
    for (size_t i = 0; in->names && i < in->names->n; i++)
        str_map_set(t, &t->names, in->names->v[i].k, in->names->v[i].v);
    t->logs_off = log && log->disabled;
    t->log_files = log && log->max_files.set ? log->max_files.v : 0;
    t->log_file_bytes = log && log->max_file_size_mb.set ? log->max_file_size_mb.v << 20 : 0;
    t->auth_soft_fail = driver_bool(in->config, "auth_soft_fail", false);
    t->pull_timeout = driver_duration(in->config, "image_pull_timeout", 0);
    put_auth(t, driver_map(in->config, "auth"));
    put_program(t, in);
    for (size_t i = 0; i < in->n_volumes; i++) {
        const struct driver_volume *v = &in->volumes[i];
        struct hand_mount *m = mem_new(t, struct hand_mount);
        *m = (struct hand_mount){.type = "bind",
                                 .source = mem_strdup(m, v->source),
                                 .target = mem_strdup(m, v->target),
                                 .host_volume = mem_strdup(m, v->name),
                                 .read_only = v->read_only};
        list_add(t, t->mounts, m);
    }
    for (size_t i = 0; i < in->devices.n; i++) {
        struct hand_device *d = mem_new(t, struct hand_device);
        const char *path = mem_strdup(d, in->devices.v[i]);
        *d = (struct hand_device){
            .host_path = path, .path = path, .permissions = "rw", .given = true};
        list_add(t, t->devices, d);
    }
}

/* --- volumes --- */

static int
volume_option(struct hand_mount *m, const char *opt, const char *volume, struct err *e)
{
    static const char *const spreads[] = {"private", "rprivate", "slave",
                                          "rslave",  "shared",   "rshared"};
    for (size_t i = 0; i < ARRAY_LEN(spreads); i++)
        if (str_eq(opt, spreads[i])) {
            m->propagation = spreads[i];
            return 0;
        }
    if (str_eq(opt, "ro"))
        m->read_only = true;
    else if (str_eq(opt, "nocopy"))
        m->no_copy = true;
    else if (!str_eq(opt, "rw"))
        return err_set(e, -ERR_UNSUPPORTED,
                       "volumes: \"%.128s\": option \"%.32s\" is not supported", volume, opt);
    return 0;
}

int
convert_volumes(struct hand_task *t, const struct value *config, const char *driver, struct err *e)
{
    auto_mem void *tmp = mem_ctx("volumes");
    struct str_list all;
    driver_strings(tmp, config, "volumes", &all);
    for (size_t i = 0; i < all.n; i++) {
        char *save = NULL, *text = mem_strdup(tmp, all.v[i]), *colon = strchr(text, ':');
        if (!colon || colon == text || !colon[1])
            return err_set(e, -ERR_INVALID, "volumes: \"%.128s\" is not SOURCE:TARGET[:OPTIONS]",
                           all.v[i]);
        *colon++ = 0;
        char *options = strchr(colon, ':');
        if (options)
            *options++ = 0;
        struct hand_mount *m = mem_new(t, struct hand_mount);
        m->type = str_empty(driver) ? "bind" : "volume";
        m->driver = str_empty(driver) ? "" : mem_strdup(m, driver);
        m->source = mem_strdup(m, text);
        m->target = mem_strdup(m, colon);
        m->make = true;
        for (char *o = options ? strtok_r(options, ",", &save) : NULL; o;
             o = strtok_r(NULL, ",", &save)) {
            int r = volume_option(m, o, all.v[i], e);
            if (r < 0)
                return r;
        }
        list_add(t, t->mounts, m);
    }
    return 0;
}

/* --- devices, ulimits --- */

int
convert_device(struct hand_task *t, const char *host, const char *path, const char *rights,
               struct err *e)
{
    struct hand_device *d = mem_new(t, struct hand_device);
    if (*host != '/')
        return err_set(e, -ERR_INVALID, "devices: \"%.128s\" is not the path of a device", host);
    d->host_path = mem_strdup(d, host);
    d->path = mem_strdup(d, path);
    d->permissions = mem_strdup(d, rights);
    list_add(t, t->devices, d);
    return 0;
}

/* "N" or "SOFT:HARD". */
int
convert_ulimits(struct hand_task *t, const struct value *map, struct err *e)
{
    auto_mem void *tmp = mem_ctx("ulimit");
    for (size_t i = 0; map && i < map->map.n; i++) {
        const struct value *v = map->map.v[i].v;
        struct hand_ulimit *u = mem_new(t, struct hand_ulimit);
        char *text = v->kind == VALUE_STRING ? mem_strdup(tmp, v->str.s)
                                             : mem_printf(tmp, "%lld", (long long)v->i);
        char *colon = strchr(text, ':');
        if (colon)
            *colon++ = 0;
        if (v->kind == VALUE_BOOL || num_parse_i64(text, &u->soft) < 0 ||
            num_parse_i64(colon ? colon : text, &u->hard) < 0)
            return err_set(e, -ERR_INVALID, "ulimit: \"%.64s\" is not a number, or SOFT:HARD",
                           map->map.v[i].k);
        u->name = mem_strdup(u, map->map.v[i].k);
        list_add(t, t->ulimits, u);
    }
    return 0;
}

void
convert_isolation(struct hand_task *t, const struct driver_input *in)
{
    const struct task_isolation *i = isolation_of(in->task->isolation);
    if (i->pids_max > 0)
        t->pids_max = i->pids_max;
    if (i->memory_low > 0)
        t->memory_low = i->memory_low << 20;
    t->swap = i->swap << 20;
    t->io_weight = i->io_weight;
    bool own = i->nofile == 0;
    for (size_t k = 0; k < t->ulimits.n; k++)
        own |= str_eq(t->ulimits.v[k]->name, "nofile"); /* its config says it too */
    if (own)
        return;
    struct hand_ulimit *u = mem_new(t, struct hand_ulimit);
    *u = (struct hand_ulimit){.name = "nofile", .soft = i->nofile, .hard = i->nofile};
    list_add(t, t->ulimits, u);
}

int
convert_network(struct hand_task *t, const struct driver_input *in, const char *driver,
                struct err *e)
{
    const struct {
        const char *option;
        bool given;
    } rows[] = {{"hostname", !str_empty(t->hostname)},
                {"dns_servers", t->dns_servers.n > 0},
                {"dns_search_domains", t->dns_search.n > 0},
                {"dns_options", t->dns_options.n > 0},
                {"extra_hosts", t->extra_hosts.n > 0},
                {"mac_address", !str_empty(t->mac_address)},
                {"port_map", driver_map(in->config, "port_map") != NULL}};
    if (in->egress || in->bind)
        return err_set(
            e, -ERR_UNSUPPORTED,
            "egress and bind rules do not hold in a container of driver \"%s\": take them out",
            driver);
    if (!in->own_network || !str_empty(t->network_mode))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].given)
            return err_set(e, -ERR_UNSUPPORTED,
                           "%s: the container is in the network of its group: say it in the "
                           "network block of the group",
                           rows[i].option);
    t->group_network = true;
    t->ports.n = 0; /* the group's are that network's */
    return 0;
}
