/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of certificates and keys: see files.h.
 */
#include "cli/tls/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/format.h"
#include "common/fd.h"
#include "net/cert/pem.h"

enum { NAME_BYTES_MAX = 200 };

const char *
tls_read_text(struct cmd *c, const char *what, const char *path, size_t *ret_n)
{
    char *text;
    int rc = file_read(c, AT_FDCWD, path, PEM_TEXT_MAX, &text, ret_n);
    if (rc == 0)
        return text;
    cmd_fail(c, "Error reading %s: \"%s\": %s", what, path,
             rc == -ERR_LIMIT ? "larger than any such file (1 MiB)" : strerror(-rc));
    return NULL;
}

bool
tls_read_certs(struct cmd *c, const char *what, const char *path, struct cert_list *ret)
{
    struct err e = ERR_INIT;
    size_t n;
    const char *text = tls_read_text(c, what, path, &n);
    if (!text)
        return false;
    if (cert_read(c, text, n, ret, &e) < 0)
        cmd_fail(c, "Error reading %s: \"%s\": %s", what, path, e.text);
    return e.code == 0;
}

struct cert_key *
tls_read_key(struct cmd *c, const char *what, const char *path)
{
    struct err e = ERR_INIT;
    struct cert_key *key = NULL;
    size_t n;
    const char *text = tls_read_text(c, what, path, &n);
    if (text && cert_read_key(c, text, n, &key, &e) < 0)
        cmd_fail(c, "Error reading %s: \"%s\": %s", what, path, e.text);
    return key;
}

/* --- writing --- */

static bool
path_free(struct cmd *c, const char *what, const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0 && errno == ENOENT)
        return true;
    cmd_fail(c, "%s file \"%s\" already exists", what, path);
    return false;
}

bool
tls_pair_free(struct cmd *c, const struct tls_pair *p)
{
    return path_free(c, "Certificate", p->cert_path) && path_free(c, "Key", p->key_path);
}

static int
write_new(const char *path, const char *text, mode_t mode)
{
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    int rc = fd_write_full(fd, text, strlen(text));
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    if (rc < 0)
        (void)unlink(path);
    return rc;
}

bool
tls_pair_write(struct cmd *c, const struct tls_pair *p)
{
    int rc = write_new(p->key_path, p->key, 0600);
    if (rc < 0) {
        cmd_fail(c, "Error writing \"%s\": %s", p->key_path, strerror(-rc));
        return false;
    }
    rc = write_new(p->cert_path, p->cert, 0644);
    if (rc < 0) {
        (void)unlink(p->key_path);
        cmd_fail(c, "Error writing \"%s\": %s", p->cert_path, strerror(-rc));
        return false;
    }
    cmd_say(c, "==> %s saved to%s %s", p->kind, p->colon, p->cert_path);
    cmd_say(c, "==> %s saved to%s %s", p->key_kind, p->colon, p->key_path);
    return true;
}

/* --- texts --- */

bool
tls_name_valid(const char *s)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.*";
    size_t n = strlen(s);
    return n > 0 && n <= NAME_BYTES_MAX && strspn(s, good) == n && s[0] != '.' && s[0] != '-';
}

/* --- showing --- */

/* "[a b]" */
static const char *
list_text(struct cmd *c, const struct str_list *l)
{
    return mem_printf(c, "[%s]", fmt_join(c, l, " "));
}

int
tls_info(struct cmd *c, const char *what, bool of_cas)
{
    struct cert_list l;
    struct table t;
    int rc;

    if (!cmd_parse(c, NULL, &(struct cmd_args){.min = 1, .max = 1}, &rc))
        return rc;
    if (!tls_read_certs(c, what, c->args[0], &l))
        return 1;
    for (size_t i = 0; i < l.n; i++) {
        const struct cert *x = l.v[i];
        table_init(&t, c, 2);
        table_row(&t, "Serial Number", x->serial);
        table_row(&t, "Issuer CN", x->issuer_name);
        table_row(&t, "Common Name", x->subject);
        table_row(&t, "Expiry Date", cert_time(c, x->until_s));
        if (of_cas) {
            table_row(&t, "Permitted DNS Domains", list_text(c, &x->permitted));
        } else {
            table_row(&t, "DNS Names", list_text(c, &x->dns));
            table_row(&t, "IP Addresses", list_text(c, &x->ips));
        }
        if (i > 0)
            cmd_say(c, "%s", "");
        table_print_blank(&t);
    }
    return 0;
}
