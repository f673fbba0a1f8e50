/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/config/config.h"

#include <string.h>

#include "agent/config/config_int.h"
#include "api/drivers.h"
#include "common/str.h"
#include "jobspec/hcl.h"

/* JSON has its suffix, or begins as no HCL does. */
static bool
is_json(const struct config_file *f)
{
    const char *text = f->text;
    return str_suffix(f->path, ".json") || text[strspn(text, " \t\r\n")] == '{';
}

static int
config_parse(const void *ctx, const struct config_file *f, struct agent_config **ret,
             struct str_list *warnings, const char **detail, struct err *e)
{
    unsigned flags = HCL_LITERAL | (is_json(f) ? HCL_JSON : HCL_LOOSE);
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body;
    void *obj = NULL;
    int r = hcl_parse(ctx, f->path, SLICE(f->text, strlen(f->text)), flags, &body, &d);
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

/* Sets the defaults of -dev, before any file. */
static void
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

/* Nomad has some drivers as programs of their own, after which their plugin blocks are called. */
static void
name_plugins(struct agent_config *c)
{
    static const char prefix[] = "nomad-driver-";
    for (size_t i = 0; i < c->plugins.n; i++) {
        const char *name = str_or(c->plugins.v[i]->name, "");
        if (strncmp(name, prefix, strlen(prefix)) == 0 && driver_can(name + strlen(prefix)))
            c->plugins.v[i]->name = name + strlen(prefix);
    }
}

int
config_load(const void *ctx, const struct config_flags *f, struct agent_config **ret,
            struct str_list *warnings, const char **ret_detail, struct err *e)
{
    struct agent_config *c = mem_new(ctx, struct agent_config);
    struct str_list paths = {NULL, 0}, ignored = {NULL, 0};
    struct config_files *given;
    const char *detail = NULL;
    config_blocks(ctx, c);
    if (f->dev)
        config_dev(ctx, c);
    int r = config_files_read(ctx, f, &given, e);
    for (size_t i = 0; r == 0 && i < given->files.n; i++) {
        struct agent_config *one = NULL;
        list_add(ctx, paths, given->files.v[i]->path);
        r = config_parse(ctx, given->files.v[i], &one, warnings, &detail, e);
        if (r == 0)
            config_merge(ctx, c, one);
    }
    if (r == 0)
        r = config_apply_flags(ctx, c, f, e);
    if (r == 0) {
        codec_defaults(ctx, &type_agent_config, c);
        c->files = paths;
        name_plugins(c);
        if (!str_empty(f->run_dir))
            config_tls_fill(ctx, c, given);
        r = config_check(ctx, c, warnings ? warnings : &ignored, e);
    }
    if (r < 0) {
        if (ret_detail)
            *ret_detail = detail ? detail : mem_strdup(ctx, e->text);
        return r;
    }
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
        json_decode_value(ctx, SLICE(b.data, b.len), BUDGET(16 << 20), &v, NULL) < 0)
        return value_map(ctx);
    return v;
}
