/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on files and paths. Files are reached through the caller's struct jobspec_fs only;
 * where there is none (/v1/jobs/parse) they are refused. Paths are text.
 */
#include <string.h>

#include "codec/base64.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"
#include "jobspec/func/func.h"

static const struct jobspec_fs *
need_fs(struct call *c)
{
    if (c->ev->fs == NULL)
        arg_error(c, 0, "files cannot be read here: the job is parsed on the server");
    return c->ev->fs;
}

static char *
read_file(struct call *c, size_t *ret_n)
{
    struct err e = ERR_INIT;
    char *s = NULL;
    const struct jobspec_fs *fs = need_fs(c);
    const char *path = arg_str(c, 0);
    if (fs == NULL || c->failed)
        return NULL;
    if (fs->read(fs->arg, c->ev->ctx, path, &s, ret_n, &e) < 0)
        return arg_error(c, 0, "%s", e.text);
    return call_charge(c, 1 + *ret_n / 64, *ret_n) ? s : NULL;
}

static struct value *
fn_file(struct call *c)
{
    size_t n = 0;
    char *s = read_file(c, &n);
    if (s == NULL)
        return NULL;
    if (!utf8_valid(s, n) || memchr(s, 0, n) != NULL)
        return arg_error(c, 0, "the file is not UTF-8 text; use filebase64()");
    return ret_strn(c, s, n);
}

static struct value *
fn_filebase64(struct call *c)
{
    size_t n = 0;
    char *s = read_file(c, &n);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    if (s == NULL)
        return NULL;
    base64_encode(&b, s, n);
    return buf_error(&b) == 0 ? ret_str(c, buf_str(&b)) : arg_error(c, 0, "the file is too large");
}

static struct value *
fn_fileexists(struct call *c)
{
    const struct jobspec_fs *fs = need_fs(c);
    const char *path = arg_str(c, 0);
    return fs != NULL && !c->failed ? ret_bool(c, fs->exists(fs->arg, path)) : NULL;
}

static struct value *
fn_fileset(struct call *c)
{
    const struct jobspec_fs *fs = need_fs(c);
    struct str_list l = {NULL, 0};
    struct err e = ERR_INIT;
    const char *dir = arg_str(c, 0), *pattern = arg_str(c, 1);
    if (fs == NULL || c->failed)
        return NULL;
    if (fs->glob(fs->arg, c->ev->ctx, dir, pattern, &l, &e) < 0)
        return arg_error(c, 0, "%s", e.text);
    struct value *out = ret_list(c, l.n);
    for (size_t i = 0; out != NULL && i < l.n; i++)
        if ((out->list.v[i] = ret_str(c, l.v[i])) == NULL)
            return NULL;
    return out;
}

/* --- paths --- */

static struct value *
fn_basename(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = strlen(s);
    while (n > 1 && s[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && s[from - 1] != '/')
        from--;
    if (n == 0)
        return ret_str(c, ".");
    return n == 1 && s[0] == '/' ? ret_str(c, "/") : ret_strn(c, s + from, n - from);
}

/* "." and "..", doubled and trailing slashes go. */
static struct value *
ret_clean(struct call *c, const char *s)
{
    size_t n = strlen(s), len = 0;
    bool root = *s == '/';
    if (!call_charge(c, 1 + n / 16, n))
        return NULL;
    char *out = mem_zalloc_array(c->ev->ctx, 1, n + 3, "path");
    if (root)
        out[len++] = '/';
    while (*s != '\0') {
        size_t k = strcspn(s, "/");
        bool dots = k == 2 && s[0] == '.' && s[1] == '.';
        size_t cut = len;
        while (cut > 0 && out[cut - 1] != '/')
            cut--;
        bool last_dots = len - cut == 2 && out[cut] == '.' && out[cut + 1] == '.';
        if (dots && len > (root ? 1u : 0u) && !last_dots) {
            len = cut > (root ? 1u : 0u) ? cut - 1 : cut;
        } else if (k > 0 && !(k == 1 && s[0] == '.') && !(dots && root)) {
            if (len > 0 && out[len - 1] != '/')
                out[len++] = '/';
            memcpy(out + len, s, k);
            len += k;
        }
        s += k + (s[k] == '/');
    }
    return len > 0 ? ret_strn(c, out, len) : ret_str(c, ".");
}

static struct value *
fn_dirname(struct call *c)
{
    const char *s = arg_str(c, 0), *slash = strrchr(s, '/');
    if (slash == NULL)
        return ret_str(c, ".");
    return ret_clean(c, slash == s ? "/" : mem_strndup(c->ev->ctx, s, (size_t)(slash - s)));
}

static struct value *
fn_abspath(struct call *c)
{
    const char *s = arg_str(c, 0);
    const struct jobspec_fs *fs = need_fs(c);
    if (fs == NULL)
        return NULL;
    return ret_clean(c, *s == '/' ? s : mem_printf(c->ev->ctx, "%s/%s", str_or(fs->cwd, "/"), s));
}

static struct value *
fn_pathexpand(struct call *c)
{
    const char *s = arg_str(c, 0);
    const struct jobspec_fs *fs = need_fs(c);
    if (fs == NULL)
        return NULL;
    if (s[0] == '~' && (s[1] == '/' || s[1] == '\0') && !str_empty(fs->home))
        return ret_str(c, mem_printf(c->ev->ctx, "%s%s", fs->home, s + 1));
    return ret_str(c, s);
}

const struct func func_file[] = {{"abspath", 1, 1, fn_abspath, false},
                                 {"basename", 1, 1, fn_basename, false},
                                 {"dirname", 1, 1, fn_dirname, false},
                                 {"file", 1, 1, fn_file, false},
                                 {"filebase64", 1, 1, fn_filebase64, false},
                                 {"fileexists", 1, 1, fn_fileexists, false},
                                 {"fileset", 2, 2, fn_fileset, false},
                                 {"pathexpand", 1, 1, fn_pathexpand, false},
                                 {NULL, 0, 0, NULL, false}};
