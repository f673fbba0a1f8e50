/* SPDX-License-Identifier: Apache-2.0 */
#include "common/opt.h"

#include <string.h>

#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

enum { OPT_NAMES_MAX = 256 };

static const struct opt *
opt_find(const struct opt *const *tables, const char *name, size_t len)
{
    for (; *tables; tables++)
        for (const struct opt *o = *tables; o->name; o++)
            if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
                return o;
    return NULL;
}

static int
opt_unknown(const struct opt *const *tables, const char *name, size_t len, struct err *e)
{
    const char *names[OPT_NAMES_MAX];
    size_t n = 0;
    for (; *tables; tables++)
        for (const struct opt *o = *tables; o->name && n < OPT_NAMES_MAX; o++)
            names[n++] = o->name;
    char given[64];
    (void)str_copy(given, len < sizeof(given) ? len + 1 : sizeof(given), name);
    const char *near = str_nearest(given, names, n);
    if (near)
        return err_set(e, -ERR_INVALID, "unknown flag \"-%s\": did you mean \"-%s\"?", given, near);
    return err_set(e, -ERR_INVALID, "unknown flag \"-%s\": see -help", given);
}

static int
opt_assign(const void *ctx, const struct opt *o, const char *val, struct err *e)
{
    int r = 0;
    switch (o->kind) {
    case OPT_BOOL:
        r = val ? num_parse_bool(val, o->dst) : (*(bool *)o->dst = true, 0);
        break;
    case OPT_STRING:
        *(const char **)o->dst = val;
        break;
    case OPT_INT:
        r = num_parse_i64(val, o->dst);
        break;
    case OPT_DURATION:
        r = duration_parse(val, o->dst);
        break;
    case OPT_LIST: {
        struct opt_list *l = o->dst;
        mem_resize(ctx, l->v, const char *, l->n + 1);
        l->v[l->n++] = val;
        break;
    }
    }
    if (r < 0)
        return err_set(e, -ERR_INVALID, "invalid value \"%s\" for flag -%s: want %s", val, o->name,
                       o->kind == OPT_BOOL       ? "true or false"
                       : o->kind == OPT_DURATION ? "a duration such as \"30s\""
                                                 : "an integer");
    if (o->seen)
        *o->seen = true;
    return 0;
}

struct parse {
    const void *ctx;
    const struct opt *const *tables;
    bool leading;
    struct err *e;
};

static int
opt_parse_args(const struct parse *p, int argc, char **argv, struct opt_list *ret)
{
    *ret = (struct opt_list){mem_array(p->ctx, const char *, (size_t)argc + 1), 0};
    bool only_args = false;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (only_args || a[0] != '-' || !a[1]) {
            ret->v[ret->n++] = a;
            if (p->leading && ret->n == 1 && i + 1 < argc && strcmp(argv[i + 1], "--") == 0)
                i++;
            only_args = only_args || p->leading;
            continue;
        }
        if (strcmp(a, "--") == 0) {
            only_args = true;
            continue;
        }
        const char *name = a + (a[1] == '-' ? 2 : 1);
        size_t len = strcspn(name, "=");
        const char *val = name[len] ? name + len + 1 : NULL;
        const struct opt *o = opt_find(p->tables, name, len);
        if (!o && ((len == 1 && *name == 'h') || (len == 4 && memcmp(name, "help", 4) == 0)))
            return 1;
        if (!o)
            return opt_unknown(p->tables, name, len, p->e);
        if (!val && o->kind != OPT_BOOL) {
            if (i + 1 >= argc)
                return err_set(p->e, -ERR_INVALID, "flag needs an argument: -%s", o->name);
            val = argv[++i];
        }
        int r = opt_assign(p->ctx, o, val, p->e);
        if (r < 0)
            return r;
    }
    return 0;
}

int
opt_parse(const void *ctx, const struct opt *const *tables, int argc, char **argv,
          struct opt_list *ret, struct err *e)
{
    return opt_parse_args(&(struct parse){ctx, tables, false, e}, argc, argv, ret);
}

int
opt_parse_leading(const void *ctx, const struct opt *const *tables, int argc, char **argv,
                  struct opt_list *ret, struct err *e)
{
    return opt_parse_args(&(struct parse){ctx, tables, true, e}, argc, argv, ret);
}
