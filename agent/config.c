/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/config_int.h"
#include "agent/limits.h"
#include "common/fd.h"
#include "common/str.h"
#include "jobspec/hcl.h"

static bool
wanted(const char *name)
{
    size_t n = strlen(name);
    if (str_prefix(name, ".#") || str_suffix(name, "~") ||
        (n > 1 && name[0] == '#' && name[n - 1] == '#'))
        return false; /* left behind by editors */
    return str_suffix(name, ".hcl") || str_suffix(name, ".json");
}

static int
list_dir(const void *ctx, const char *path, struct str_list *ret, struct err *e)
{
    DIR *d = opendir(path);
    if (!d)
        return err_errno(e, errno, "read configuration directory \"%s\"", path);
    struct str_list names = {NULL, 0};
    for (struct dirent *x; (x = readdir(d)) && names.n < CONFIG_FILES_MAX;)
        if (wanted(x->d_name))
            list_add(ctx, names, mem_strdup(ctx, x->d_name));
    closedir(d);
    if (names.n == CONFIG_FILES_MAX)
        return err_set(e, -ERR_LIMIT, "configuration directory \"%s\" holds more than %d files",
                       path, CONFIG_FILES_MAX);
    if (names.n > 0)
        qsort(names.v, names.n, sizeof(*names.v), str_cmp_qsort);
    for (size_t i = 0; i < names.n; i++)
        list_add(ctx, *ret, mem_printf(ctx, "%s/%s", path, names.v[i]));
    return 0;
}

static int
list_files(const void *ctx, const struct opt_list *paths, struct str_list *ret, struct err *e)
{
    for (size_t i = 0; i < paths->n; i++) {
        struct stat st;
        if (stat(paths->v[i], &st) < 0)
            return err_errno(e, errno, "configuration \"%s\"", paths->v[i]);
        if (!S_ISDIR(st.st_mode)) {
            list_add(ctx, *ret, mem_strdup(ctx, paths->v[i]));
            continue;
        }
        int r = list_dir(ctx, paths->v[i], ret, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int
load_file(const void *ctx, const char *path, struct agent_config **ret, struct str_list *warnings,
          const char **detail, struct err *e)
{
    char *text;
    size_t n;
    int r = file_read(ctx, AT_FDCWD, path, HCL_SOURCE_MAX, &text, &n);
    if (r < 0)
        return err_set(e, r, "read configuration \"%s\": %s", path, err_name(r));
    unsigned flags = HCL_LITERAL | (str_suffix(path, ".json") ? HCL_JSON : HCL_LOOSE);
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body;
    void *obj = NULL;
    r = hcl_parse(ctx, path, text, n, flags, &body, &d);
    if (r == 0)
        r = hcl_decode(ctx, body, &type_agent_config, flags, &obj, &d);
    if (r < 0) {
        *detail = hcl_diags_text(ctx, &d, false);
        size_t line = strcspn(*detail, "\n");
        return err_set(e, r, "configuration: %.*s", (int)line, *detail);
    }
    for (size_t i = 0; i < d.n && warnings; i++)
        list_add(ctx, *warnings, d.v[i].text);
    *ret = obj;
    return 0;
}

#define NEED_BLOCK(parent, member, T)                        \
    do {                                                     \
        if (!(parent)->member)                               \
            (parent)->member = mem_new(ctx, struct T);       \
    } while (0)

void
config_blocks(const void *ctx, struct agent_config *c)
{
    NEED_BLOCK(c, ports, agent_ports);
    NEED_BLOCK(c, addresses, agent_addresses);
    NEED_BLOCK(c, advertise_addrs, agent_addresses);
    NEED_BLOCK(c, limits, agent_limits);
    NEED_BLOCK(c, telemetry, agent_telemetry);
    NEED_BLOCK(c, isolation, agent_isolation);
    NEED_BLOCK(c, client, agent_client);
    NEED_BLOCK(c->client, reserved, agent_reserved);
    NEED_BLOCK(c->client, server_join, agent_server_join);
    NEED_BLOCK(c, server, agent_server);
    NEED_BLOCK(c->server, server_join, agent_server_join);
    NEED_BLOCK(c->server, default_scheduler_config, agent_scheduler_config);
}

void
config_dev(const void *ctx, struct agent_config *c)
{
    config_blocks(ctx, c);
    c->dev_mode = true;
    c->bind_addr = "127.0.0.1";
    c->log_level = "DEBUG";
    c->enable_debug = true;
    c->server->enabled = true;
    c->server->bootstrap_expect = 1;
    c->client->enabled = true;
    c->client->network_interface = "lo";
    c->client->gc_interval = INT64_C(600000000000);
    c->client->gc_disk_usage_threshold = 99;
    c->client->gc_inode_usage_threshold = 99;
    c->telemetry->prometheus_metrics = true;
    c->telemetry->publish_allocation_metrics = true;
    c->telemetry->publish_node_metrics = true;
    struct agent_plugin *p = mem_new(ctx, struct agent_plugin);
    p->name = "raw_exec";
    p->config = value_map(ctx);
    value_map_set(p->config, "enabled", value_bool(ctx, true));
    list_add(ctx, c->plugins, p);
}

int
config_load(const void *ctx, const struct config_flags *f, struct agent_config **ret,
            struct str_list *warnings, struct str_list *files, const char **ret_detail,
            struct err *e)
{
    struct agent_config *c = mem_new(ctx, struct agent_config);
    struct str_list paths = {NULL, 0}, ignored = {NULL, 0};
    const char *detail = NULL;
    config_blocks(ctx, c);
    if (f->dev)
        config_dev(ctx, c);
    int r = list_files(ctx, &f->config, &paths, e);
    for (size_t i = 0; i < paths.n && r == 0; i++) {
        struct agent_config *one = NULL;
        r = load_file(ctx, paths.v[i], &one, warnings, &detail, e);
        if (r == 0)
            config_merge(ctx, c, one);
    }
    if (r == 0)
        r = config_apply_flags(ctx, c, f, e);
    if (r == 0) {
        codec_defaults(ctx, &type_agent_config, c);
        c->files = paths;
        r = config_check(ctx, c, warnings ? warnings : &ignored, e);
    }
    if (r < 0) {
        if (ret_detail)
            *ret_detail = detail ? detail : mem_strdup(ctx, e->text);
        return r;
    }
    if (files)
        *files = paths;
    *ret = c;
    return 0;
}

struct value *
config_value(const void *ctx, const struct agent_config *c)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    struct value *v = NULL;
    json_encode(&b, &type_agent_config, c, JSON_HIDE_SECRETS);
    if (buf_error(&b) < 0 ||
        json_decode_value(ctx, (const char *)b.data, b.len, BUDGET(16 << 20), &v, NULL) < 0)
        return value_map(ctx);
    return v;
}
