/* SPDX-License-Identifier: Apache-2.0
 *
 * The tls block: its files, which root reads for the agent, and what must be said together. What is
 * in the files is judged where a struct tls is made of them.
 */
#include <string.h>

#include "agent/config/config_int.h"
#include "common/str.h"

enum { TLS_FILES = 4 };

struct tls_file {
    const char *key, *path;
};

static void
tls_list_files(const struct agent_config *c, struct tls_file ret[TLS_FILES])
{
    const struct agent_tls *t = c->tls_config;
    ret[0] = (struct tls_file){"ca_file", t ? t->ca_file : NULL};
    ret[1] = (struct tls_file){"cert_file", t ? t->cert_file : NULL};
    ret[2] = (struct tls_file){"key_file", t ? t->key_file : NULL};
    ret[3] = (struct tls_file){"crl_file", t ? t->crl_file : NULL};
}

struct str_list
config_tls_files(const void *ctx, const struct agent_config *c)
{
    struct tls_file f[TLS_FILES];
    struct str_list l = {NULL, 0};

    tls_list_files(c, f);
    for (size_t i = 0; i < TLS_FILES; i++)
        if (!str_empty(f[i].path) && !str_list_has(&l, f[i].path))
            list_add(ctx, l, mem_strdup(ctx, f[i].path));
    return l;
}

static struct config_file *
tls_find(const struct config_file_list *l, const char *path)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i]->path, path))
            return l->v[i];
    return NULL;
}

const char *
config_tls_text(const struct agent_config *c, const char *path)
{
    const struct config_file *f =
        str_empty(path) || !c->tls_config ? NULL : tls_find(&c->tls_config->files, path);
    return f ? f->text : NULL;
}

void
config_tls_fill(const void *ctx, struct agent_config *c, const struct config_files *given)
{
    struct tls_file f[TLS_FILES];

    tls_list_files(c, f);
    for (size_t i = 0; i < TLS_FILES; i++) {
        if (str_empty(f[i].path) || tls_find(&c->tls_config->files, f[i].path))
            continue;
        struct config_file *got = tls_find(&given->named, f[i].path);
        if (!got) {
            got = mem_new(ctx, struct config_file);
            got->path = f[i].path;
            got->error = "nobody has read it for the agent yet: reload";
        }
        list_add(ctx, c->tls_config->files, got);
    }
}

/* --- checks --- */

static int
check_files(struct agent_config *c, struct err *e)
{
    struct tls_file f[TLS_FILES];

    tls_list_files(c, f);
    for (size_t i = 0; i < TLS_FILES; i++) {
        if (str_empty(f[i].path))
            continue;
        if (f[i].path[0] != '/')
            return err_set(e, -ERR_INVALID, "tls.%s \"%s\" is not an absolute path", f[i].key,
                           f[i].path);
        const struct config_file *got = tls_find(&c->tls_config->files, f[i].path);
        if (got && !str_empty(got->error))
            return err_set(e, -ERR_INVALID, "tls.%s \"%s\": %s", f[i].key, f[i].path, got->error);
    }
    return 0;
}

static int
check_needs(const struct agent_tls *t, struct err *e)
{
    const struct {
        const char *key, *path;
        bool needed;
    } needs[] = {{"ca_file", t->ca_file, t->enable_rpc || t->verify_https_client},
                 {"cert_file", t->cert_file, t->enable_rpc || t->enable_http},
                 {"key_file", t->key_file, t->enable_rpc || t->enable_http}};

    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (needs[i].needed && str_empty(needs[i].path))
            return err_set(e, -ERR_INVALID, "tls { %s = true } needs %s",
                           t->enable_rpc    ? "rpc"
                           : t->enable_http ? "http"
                                            : "verify_https_client",
                           needs[i].key);
    return 0;
}

int
config_tls_check(struct agent_config *c, struct str_list *warnings, struct err *e)
{
    const struct agent_tls *t = c->tls_config;

    if (!t)
        return 0;
    if (t->rpc_upgrade_mode && !t->enable_rpc)
        list_add(c, *warnings, "tls.rpc_upgrade_mode has no effect without tls { rpc = true }");
    if (!str_empty(t->tls_min_version) && !str_eq(t->tls_min_version, "tls12") &&
        !str_eq(t->tls_min_version, "tls13"))
        return err_set(e, -ERR_UNSUPPORTED,
                       "tls.tls_min_version \"%s\": \"tls12\" and \"tls13\" are supported, older "
                       "ones are not safe",
                       t->tls_min_version);
    if (t->bind_node_name && !(t->enable_rpc && t->verify_server_hostname))
        return err_set(e, -ERR_INVALID,
                       "tls { bind_node_name = true } needs rpc and verify_server_hostname");
    if (check_files(c, e) < 0)
        return e->code;
    return check_needs(t, e);
}
