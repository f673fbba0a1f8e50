/* SPDX-License-Identifier: Apache-2.0
 *
 * tls cert check: files of certificates and keys together, judged as an agent and its peers will
 * judge them. CAs at the beginning of a file are those that are trusted; behind a certificate they
 * are the chain that leads from it to them, as in the files of an agent.
 */
#include <inttypes.h>

#include "cli/format.h"
#include "cli/tls/files.h"
#include "common/duration.h"
#include "net/cert/pem.h"

enum { FILES_MAX = 64, DAY_S = 24 * 60 * 60 };

struct check_file {
    const char *path;
    struct cert_list certs;
    struct cert_key *key;
    bool used; /* the key fits a certificate */
};

struct check {
    struct cmd *c;
    struct check_file *files;
    size_t n;
    struct cert_list cas;
    bool refused;
};

static bool
read_file(struct check *k, const char *path)
{
    struct check_file *f = &k->files[k->n++];
    struct err no_cert = ERR_INIT, no_key = ERR_INIT;
    size_t n;
    const char *text = tls_read_text(k->c, "file", path, &n);

    if (!text)
        return false;
    f->path = path;
    int cert = cert_read(k->c, text, n, &f->certs, &no_cert);
    int key = cert_read_key(k->c, text, n, &f->key, &no_key);
    if (cert < 0 && cert != -ERR_NOT_FOUND)
        return !cmd_fail(k->c, "\"%s\": %s", path, no_cert.text);
    if (key < 0 && key != -ERR_NOT_FOUND)
        return !cmd_fail(k->c, "\"%s\": %s", path, no_key.text);
    if (cert < 0 && key < 0)
        return !cmd_fail(k->c, "\"%s\": neither a certificate nor a key in PEM is in it", path);
    for (size_t i = 0; i < f->certs.n && f->certs.v[0]->ca; i++)
        list_add(k->c, k->cas, f->certs.v[i]);
    return true;
}

static void
say_all(struct check *k, const char *what, const struct str_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        cmd_say(k->c, "  %s: %s", what, l->v[i]);
}

/* Returns the region of a name "server.<region>.nomad"; NULL: the name is another one. */
static const char *
find_region(struct check *k, const struct cert *x, const char *role)
{
    const char *before = mem_printf(k->c, "%s.", role), *after = ".nomad";
    for (size_t i = 0; i < x->dns.n; i++) {
        const char *s = x->dns.v[i];
        if (str_prefix(s, before) && str_suffix(s, after) && cert_has_name(x, s) &&
            strlen(s) > strlen(before) + strlen(after))
            return mem_strndup(k->c, s + strlen(before),
                               strlen(s) - strlen(before) - strlen(after));
    }
    return NULL;
}

static const char *
role_text(struct check *k, const struct cert *x)
{
    static const char *const roles[] = {"server", "client", "cli"};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        const char *region = find_region(k, x, roles[i]);
        if (region)
            return mem_printf(k->c, "%s of region \"%s\"", roles[i], region);
    }
    return "none: no name is server.REGION.nomad or client.REGION.nomad";
}

static struct check_file *
find_key(struct check *k, const struct cert *x)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->files[i].key && cert_fits_key(x, k->files[i].key))
            return &k->files[i];
    return NULL;
}

static void
check_cert(struct check *k, const struct check_file *f)
{
    const struct cert *x = f->certs.v[0];
    struct check_file *key = find_key(k, x);
    struct cert_set s = {.chain = f->certs, .cas = k->cas};
    struct str_list errors = {NULL, 0}, warnings = {NULL, 0};
    int64_t now_s = cmd_now(k->c) / NS_PER_S;
    struct table t;

    if (key)
        key->used = true;
    cert_judge(k->c, &s, now_s, &errors, &warnings);
    if (k->cas.n == 0)
        list_add(k->c, warnings, "no CA is among the files: who signed it was not checked");
    if (!key)
        list_add(k->c, warnings, "its key is not among the files");
    table_init(&t, k->c, 2);
    table_row(&t, "  Subject", x->subject);
    table_row(&t, "  Signed by", x->issuer);
    table_row(&t, "  Valid",
              mem_printf(k->c, "%s to %s (%" PRId64 " days left)", cert_time(k->c, x->from_s),
                         cert_time(k->c, x->until_s),
                         x->until_s > now_s ? (x->until_s - now_s) / DAY_S : 0));
    table_row(&t, "  Key", key ? key->path : "");
    table_row(&t, "  Role", role_text(k, x));
    table_row(&t, "  DNS names", fmt_join(k->c, &x->dns, ", "));
    table_row(&t, "  IP addresses", fmt_join(k->c, &x->ips, ", "));
    cmd_say(k->c, "%s: %s", f->path, errors.n > 0 ? "REFUSED" : "good");
    table_print_kv(&t);
    say_all(k, "refused", &errors);
    say_all(k, "warning", &warnings);
    k->refused |= errors.n > 0;
}

/* A CA by itself: its dates are those of all that it signed. */
static void
check_ca(struct check *k, const struct check_file *f)
{
    for (size_t i = 0; i < f->certs.n; i++) {
        struct cert_set s = {.chain = {&f->certs.v[i], 1}};
        struct str_list errors = {NULL, 0}, warnings = {NULL, 0};
        struct check_file *key = find_key(k, f->certs.v[i]);

        if (key)
            key->used = true;
        if (!f->certs.v[i]->ca)
            list_add(k->c, errors, "it is no CA, but follows one: put it into a file of its own");
        cert_judge(k->c, &s, cmd_now(k->c) / NS_PER_S, &errors, &warnings);
        cmd_say(k->c, "%s: %s, a CA: %s", f->path, errors.n > 0 ? "REFUSED" : "good",
                f->certs.v[i]->subject);
        say_all(k, "refused", &errors);
        say_all(k, "warning", &warnings);
        k->refused |= errors.n > 0;
    }
}

int
cmd_tls_cert_check(struct cmd *c)
{
    struct check k = {.c = c};
    int rc;
    if (!cmd_parse(c, NULL, &(struct cmd_args){.min = 1, .max = FILES_MAX}, &rc))
        return rc;
    k.files = mem_array(c, struct check_file, c->n_args);
    for (size_t i = 0; i < c->n_args; i++)
        if (!read_file(&k, c->args[i]))
            return 1;
    for (size_t i = 0; i < k.n; i++)
        if (k.files[i].certs.n > 0)
            (k.files[i].certs.v[0]->ca ? check_ca : check_cert)(&k, &k.files[i]);
    for (size_t i = 0; i < k.n; i++) {
        if (!k.files[i].key || k.files[i].used)
            continue;
        cmd_say(c, "%s: REFUSED\n  refused: the key fits none of the certificates",
                k.files[i].path);
        k.refused = true;
    }
    return k.refused;
}
