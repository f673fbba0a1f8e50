/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS of commands: see connect.h.
 */
#include "cli/connect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "cli/limits.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/num.h"
#include "net/filter.h"
#include "net/tls/tls.h"

struct cmd_dialer {
    struct tls *tls; /* owned */
    struct dialer dialer;
};

const char *
cmd_env(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static int
read_pem(struct cmd *c, const char *option, const char *path, const char **ret, struct err *e)
{
    char *text;
    size_t n;

    if (str_empty(path))
        return 0;
    int r = file_read(c, AT_FDCWD, path, CLI_PEM_MAX, &text, &n);
    if (r < 0)
        return err_set(e, r, "-%s \"%s\": %s", option, path,
                       r == -ERR_LIMIT ? "larger than 1 MiB" : err_name(r));
    *ret = text;
    return n > 0 ? 0 : err_set(e, -ERR_NOT_FOUND, "-%s \"%s\" is empty", option, path);
}

static int
connect_seen(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* Reads the files of a directory as one. */
static int
read_pem_dir(struct cmd *c, const char *path, const char **ret, struct err *e)
{
    auto_buf struct buf all = BUF_INIT(CLI_PEM_MAX);
    struct dirent **v = NULL;
    int n = scandir(path, &v, connect_seen, alphasort);

    if (n < 0)
        return err_errno(e, errno, "-ca-path \"%s\"", path);
    for (int i = 0; i < n; i++) {
        const char *text = NULL;
        if (e->code == 0)
            (void)read_pem(c, "ca-path", mem_printf(c, "%s/%s", path, v[i]->d_name), &text, e);
        buf_puts(&all, str_or(text, ""));
        buf_puts(&all, "\n");
        free(v[i]);
    }
    free(v);
    if (e->code == 0 && buf_error(&all) < 0)
        err_set(e, -ERR_LIMIT, "-ca-path \"%s\": larger than 1 MiB together", path);
    if (e->code == 0 && n == 0)
        err_set(e, -ERR_NOT_FOUND, "-ca-path \"%s\" is empty", path);
    *ret = mem_strdup(c, buf_str(&all));
    return e->code;
}

/* Options that were not given, from the environment. */
static int
connect_defaults(struct cmd *c, struct err *e)
{
    struct cmd_tls *t = &c->tls;
    const char *skip = cmd_env("NOMAD_SKIP_VERIFY");

    t->ca_cert = str_or(t->ca_cert, cmd_env("NOMAD_CACERT"));
    t->ca_path = str_or(t->ca_path, cmd_env("NOMAD_CAPATH"));
    t->cert = str_or(t->cert, cmd_env("NOMAD_CLIENT_CERT"));
    t->key = str_or(t->key, cmd_env("NOMAD_CLIENT_KEY"));
    t->name = str_or(t->name, cmd_env("NOMAD_TLS_SERVER_NAME"));
    if (!t->skip_verify && skip && num_parse_bool(skip, &t->skip_verify) < 0)
        return err_set(e, -ERR_INVALID, "NOMAD_SKIP_VERIFY \"%s\" is neither true nor false", skip);
    if (str_empty(t->cert) != str_empty(t->key))
        return err_set(e, -ERR_INVALID, "-client-cert and -client-key go together");
    return 0;
}

static int
tls_free(struct cmd_dialer *d)
{
    tls_unref(d->tls);
    return 0;
}

int
connect_prepare(struct cmd *c, struct err *e)
{
    struct tls_config tc = {.quiet = true};
    const struct cmd_tls *t = &c->tls;

    c->dialer = NULL;
    if (!str_prefix(c->address, "https://"))
        return 0;
    if (connect_defaults(c, e) < 0 || read_pem(c, "ca-cert", t->ca_cert, &tc.ca, e) < 0 ||
        read_pem(c, "client-cert", t->cert, &tc.cert, e) < 0 ||
        read_pem(c, "client-key", t->key, &tc.key, e) < 0)
        return e->code;
    if (str_empty(t->ca_cert) && !str_empty(t->ca_path) &&
        read_pem_dir(c, t->ca_path, &tc.ca, e) < 0)
        return e->code;
    tc.skip_verify = t->skip_verify;
    struct cmd_dialer *d = mem_new(c, struct cmd_dialer);
    d->tls = tls_new(&tc, e);
    if (!d->tls)
        return e->code;
    talloc_set_destructor(d, tls_free);
    d->dialer = (struct dialer){.filter = tls_http(d->tls), .name = t->name};
    c->dialer = &d->dialer;
    return 0;
}
