/* SPDX-License-Identifier: Apache-2.0
 *
 * Sprig's semver and semverCompare: versions, and constraints such as ">= 1.2, < 2 || ~3.1". A part
 * of a constraint that is x, * or missing stands for any.
 */
#include <string.h>

#include "common/mem.h"
#include "template/func/strs.h"
#include "template/funcs.h"
#include "template/strconv.h"

struct version {
    uint64_t part[3];
    struct gv pre, meta, original;
};

enum dirty { CLEAN, DIRTY_MAJOR, DIRTY_MINOR, DIRTY_PATCH };

struct constraint {
    char op[3];
    struct version v;
    enum dirty dirty; /* the first part that stands for any */
};

/* --- versions --- */

static bool
is_name(char c)
{
    return rune_digit((uint8_t)c) || (c > 0 && rune_letter((uint8_t)c)) || c == '-';
}

/* "a.b.c" behind a mark; false: it is malformed. Nothing without the mark. */
static bool
take_names(struct gv s, size_t *i, char mark, struct gv *ret)
{
    *ret = GV_LIT("");
    if (*i >= s.n || s.s[*i] != mark)
        return true;
    size_t from = ++*i;
    for (;;) {
        size_t part = *i;
        while (*i < s.n && is_name(s.s[*i]))
            (*i)++;
        if (*i == part)
            return false;
        if (*i >= s.n || s.s[*i] != '.')
            break;
        (*i)++;
    }
    *ret = GV_TEXT(s.s + from, *i - from);
    return true;
}

static void
check_prerelease(struct run *r, struct gv pre)
{
    struct gv parts = strs_split(r, pre, GV_LIT("."), -1);
    for (size_t i = 0; pre.n && i < gv_len(parts); i++) {
        struct gv p = parts.list->v[i];
        uint64_t v;
        if (p.n > 1 && p.s[0] == '0' && strconv_uint(p.s, p.n, 10, &v) != STRCONV_SYNTAX)
            run_fail(r, "Version segment starts with 0");
    }
}

static struct version
parse_version(struct run *r, struct gv s)
{
    struct version v = {.original = s};
    size_t i = s.n > 0 && s.s[0] == 'v', parts = 0;
    for (; parts < 3; parts++) {
        size_t from = i + (parts > 0);
        if (parts > 0 && (i >= s.n || s.s[i] != '.'))
            break;
        for (i = from; i < s.n && rune_digit((uint8_t)s.s[i]);)
            i++;
        if (i == from)
            run_fail(r, "Invalid Semantic Version");
        if (strconv_uint(s.s + from, i - from, 10, &v.part[parts]) != STRCONV_OK)
            run_fail(r,
                     "Error parsing version segment: strconv.ParseUint: parsing \"%.*s\": value "
                     "out of range",
                     (int)(i - from), s.s + from);
    }
    if (!take_names(s, &i, '-', &v.pre) || !take_names(s, &i, '+', &v.meta) || i < s.n)
        run_fail(r, "Invalid Semantic Version");
    check_prerelease(r, v.pre);
    return v;
}

static int
compare_part(struct gv a, struct gv b)
{
    uint64_t x, y;
    if (gv_key_compare(a, b) == 0)
        return 0;
    if (a.n == 0 || b.n == 0)
        return a.n == 0 ? -1 : 1;
    bool na = strconv_uint(a.s, a.n, 10, &x) == STRCONV_OK,
         nb = strconv_uint(b.s, b.n, 10, &y) == STRCONV_OK;
    if (!na && !nb)
        return gv_key_compare(a, b) > 0 ? 1 : -1;
    if (!na || !nb)
        return nb ? 1 : -1;
    return x > y ? 1 : -1;
}

static int
compare_pre(struct run *r, struct gv a, struct gv b)
{
    struct gv x = strs_split(r, a, GV_LIT("."), -1), y = strs_split(r, b, GV_LIT("."), -1);
    size_t n = gv_len(x) > gv_len(y) ? gv_len(x) : gv_len(y);
    for (size_t i = 0; i < n; i++) {
        int d = compare_part(i < gv_len(x) ? x.list->v[i] : GV_LIT(""),
                             i < gv_len(y) ? y.list->v[i] : GV_LIT(""));
        if (d)
            return d;
    }
    return 0;
}

static int
compare_versions(struct run *r, const struct version *a, const struct version *b)
{
    for (size_t i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    if (a->pre.n == 0 || b->pre.n == 0)
        return (a->pre.n == 0) - (b->pre.n == 0);
    return compare_pre(r, a->pre, b->pre);
}

/* --- constraints --- */

static _Noreturn void
refuse_constraint(struct run *r, struct gv s)
{
    run_fail(r, "improper constraint: %s", run_dup(r, s.s, s.n));
}

static void
skip_space(struct gv s, size_t *i)
{
    while (*i < s.n && rune_space((uint8_t)s.s[*i]))
        (*i)++;
}

static void
take_op(struct gv s, size_t *i, char op[3])
{
    static const char *const ops[] = {"!=", ">=", "=>", "<=", "=<", "~>", "=", ">", "<", "~", "^"};
    op[0] = 0;
    for (size_t k = 0; k < ARRAY_LEN(ops); k++) {
        size_t n = strlen(ops[k]);
        if (s.n - *i >= n && memcmp(s.s + *i, ops[k], n) == 0) {
            memcpy(op, ops[k], n + 1);
            *i += n;
            return;
        }
    }
}

static bool
is_wild(struct gv s)
{
    return s.n == 1 && strchr("xX*", *s.s);
}

/* One part of digits, x and *; empty: it is not there. */
static struct gv
take_part(struct gv s, size_t *i, bool first)
{
    size_t from = *i;
    if (!first && (from >= s.n || s.s[from] != '.'))
        return GV_LIT("");
    from += !first;
    size_t to = from;
    while (to < s.n && s.s[to] && strchr("0123456789xX*", s.s[to]))
        to++;
    if (to == from)
        return GV_LIT("");
    *i = to;
    return GV_TEXT(s.s + from, to - from);
}

static void
take_version(struct run *r, struct gv s, size_t *i, struct constraint *c)
{
    struct gv part[3], pre, meta, whole = s;
    *i += *i < s.n && s.s[*i] == 'v';
    for (size_t k = 0; k < 3; k++)
        part[k] = k == 0 || part[k - 1].n ? take_part(s, i, k == 0) : GV_LIT("");
    if (part[0].n == 0 || !take_names(s, i, '-', &pre) || !take_names(s, i, '+', &meta))
        refuse_constraint(r, whole);
    c->dirty = CLEAN;
    for (size_t k = 0; k < 3 && c->dirty == CLEAN; k++) {
        if (part[k].n == 0 || is_wild(part[k]))
            c->dirty = (enum dirty)(DIRTY_MAJOR + k);
        else if (strconv_uint(part[k].s, part[k].n, 10, &c->v.part[k]) != STRCONV_OK)
            run_fail(r, "constraint Parser Error");
    }
    c->v.pre = pre;
}

static bool
same_tilde(struct run *r, const struct version *v, const struct constraint *c)
{
    bool zero = c->v.part[0] == 0 && c->v.part[1] == 0 && c->v.part[2] == 0;
    if (compare_versions(r, v, &c->v) < 0)
        return false;
    if (zero && c->dirty != DIRTY_MINOR && c->dirty != DIRTY_PATCH)
        return true;
    return v->part[0] == c->v.part[0] && (v->part[1] == c->v.part[1] || c->dirty == DIRTY_MINOR);
}

static bool
same_caret(struct run *r, const struct version *v, const struct constraint *c)
{
    if (compare_versions(r, v, &c->v) < 0)
        return false;
    if (c->v.part[0] > 0 || c->dirty == DIRTY_MINOR)
        return v->part[0] == c->v.part[0];
    if (v->part[0] > 0)
        return false;
    if (c->v.part[1] > 0 || c->dirty == DIRTY_PATCH)
        return v->part[1] == c->v.part[1];
    return v->part[1] == 0 && v->part[2] == c->v.part[2];
}

static bool
version_differs(struct run *r, const struct version *v, const struct constraint *c)
{
    if (c->dirty == CLEAN)
        return compare_versions(r, v, &c->v) != 0;
    if (v->part[0] != c->v.part[0])
        return true;
    if (c->dirty == DIRTY_MINOR)
        return false;
    if (v->part[1] != c->v.part[1])
        return true;
    if (c->dirty == DIRTY_PATCH)
        return (v->pre.n || c->v.pre.n) && compare_pre(r, v->pre, c->v.pre) != 0;
    return v->part[2] != c->v.part[2] || compare_versions(r, v, &c->v) != 0;
}

static bool
is_greater(struct run *r, const struct version *v, const struct constraint *c)
{
    if (c->dirty == CLEAN || c->dirty == DIRTY_MAJOR)
        return v->part[0] != c->v.part[0] && c->dirty ? v->part[0] > c->v.part[0]
                                                      : compare_versions(r, v, &c->v) > 0;
    if (v->part[0] != c->v.part[0])
        return v->part[0] > c->v.part[0];
    return c->dirty == DIRTY_PATCH && v->part[1] > c->v.part[1];
}

static bool
is_at_most(struct run *r, const struct version *v, const struct constraint *c)
{
    if (c->dirty == CLEAN)
        return compare_versions(r, v, &c->v) <= 0;
    if (v->part[0] != c->v.part[0])
        return v->part[0] < c->v.part[0];
    return v->part[1] <= c->v.part[1] || c->dirty == DIRTY_MINOR;
}

static bool
constraint_holds(struct run *r, const struct version *v, const struct constraint *c)
{
    const char *op = c->op;
    bool dirty_ne = strcmp(op, "!=") == 0 && c->dirty == CLEAN;
    if (v->pre.n && c->v.pre.n == 0 && !dirty_ne)
        return false;
    if (strcmp(op, "!=") == 0)
        return version_differs(r, v, c);
    if (strcmp(op, ">") == 0)
        return is_greater(r, v, c);
    if (strcmp(op, "<") == 0)
        return compare_versions(r, v, &c->v) < 0;
    if (strcmp(op, ">=") == 0 || strcmp(op, "=>") == 0)
        return compare_versions(r, v, &c->v) >= 0;
    if (strcmp(op, "<=") == 0 || strcmp(op, "=<") == 0)
        return is_at_most(r, v, c);
    if (*op == '^')
        return same_caret(r, v, c);
    if (*op == '~' || c->dirty)
        return same_tilde(r, v, c);
    return compare_versions(r, v, &c->v) == 0;
}

/* "1.2 - 2.0" is ">= 1.2, <= 2.0". */
static bool
range_holds(struct run *r, struct gv s, size_t *i, const struct version *v, bool *holds)
{
    struct constraint low = {">=", {.pre = GV_LIT("")}, CLEAN},
                      high = {"<=", {.pre = GV_LIT("")}, CLEAN};
    size_t k = *i;
    while (k < s.n && s.s[k] && !rune_space((uint8_t)s.s[k]) && !strchr(",<>=!~^", s.s[k]))
        k++;
    skip_space(s, &k);
    if (k == *i || k + 1 >= s.n || s.s[k] != '-' || !rune_space((uint8_t)s.s[k + 1]))
        return false;
    take_version(r, s, i, &low);
    *i = k + 1;
    skip_space(s, i);
    take_version(r, s, i, &high);
    *holds = *holds && constraint_holds(r, v, &low) && constraint_holds(r, v, &high);
    return true;
}

static bool
all_hold(struct run *r, struct gv s, const struct version *v)
{
    size_t i = 0;
    bool holds = true;
    skip_space(s, &i);
    do {
        struct constraint c = {"", {.pre = GV_LIT("")}, CLEAN};
        run_step(r, 1);
        if (!range_holds(r, s, &i, v, &holds)) {
            take_op(s, &i, c.op);
            skip_space(s, &i);
            if (i >= s.n)
                refuse_constraint(r, s);
            take_version(r, s, &i, &c);
            holds = holds && constraint_holds(r, v, &c);
        }
        size_t end = i;
        skip_space(s, &i);
        if (i < s.n && s.s[i] == ',') {
            i++;
            skip_space(s, &i);
            if (i >= s.n)
                refuse_constraint(r, s);
        } else if (i < s.n && i == end)
            refuse_constraint(r, s);
        skip_space(s, &i);
    } while (i < s.n);
    return holds;
}

static struct gv
fn_semver_compare(struct run *r, struct gv *a, size_t n)
{
    static const struct version none;
    struct gv parts = strs_split(r, a[0], GV_LIT("||"), -1);
    bool any = false;
    (void)n;
    for (size_t i = 0; i < gv_len(parts); i++)
        all_hold(r, parts.list->v[i], &none);
    struct version v = parse_version(r, a[1]);
    for (size_t i = 0; i < gv_len(parts) && !any; i++)
        any = all_hold(r, parts.list->v[i], &v);
    return GV_TRUE(any);
}

/* --- the object --- */

static const struct version *
version_of(struct gv v)
{
    return v.obj->data;
}

static struct gv
version_string(struct run *r, struct gv *a, size_t n)
{
    const struct version *v = version_of(a[0]);
    struct text t = {NULL, 0, 0};
    (void)n;
    text_printf(r, &t, "%llu.%llu.%llu", (unsigned long long)v->part[0],
                (unsigned long long)v->part[1], (unsigned long long)v->part[2]);
    text_puts(r, &t, v->pre.n ? "-" : "");
    text_put(r, &t, v->pre.s, v->pre.n);
    text_puts(r, &t, v->meta.n ? "+" : "");
    text_put(r, &t, v->meta.s, v->meta.n);
    return text_gv(&t);
}

#define PART_METHOD(name, nth)                                                                     \
    static struct gv version_##name(struct run *r, struct gv *a, size_t n)                         \
    {                                                                                              \
        (void)r, (void)n;                                                                          \
        return (struct gv){.t = &gv_uint64, .u = version_of(a[0])->part[nth]};                     \
    }
PART_METHOD(major, 0)
PART_METHOD(minor, 1)
PART_METHOD(patch, 2)

static struct gv
version_prerelease(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return version_of(a[0])->pre;
}

static struct gv
version_metadata(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return version_of(a[0])->meta;
}

static struct gv
version_original(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return version_of(a[0])->original;
}

static const struct gv_method version_methods[] = {
    {"String", version_string, "", &gv_string},
    {"Major", version_major, "", &gv_uint64},
    {"Minor", version_minor, "", &gv_uint64},
    {"Patch", version_patch, "", &gv_uint64},
    {"Prerelease", version_prerelease, "", &gv_string},
    {"Metadata", version_metadata, "", &gv_string},
    {"Original", version_original, "", &gv_string},
};
static const char *const version_fields[] = {"major",    "minor",    "patch", "pre",
                                             "metadata", "original", NULL};
static const struct gv_class version_class = {version_fields, version_methods,
                                              ARRAY_LEN(version_methods), true};
static const struct gv_type version_type = {GV_STRUCT,      0,   "*semver.Version", NULL, NULL,
                                            &version_class, true};

static struct gv
fn_semver(struct run *r, struct gv *a, size_t n)
{
    struct version *v = run_alloc(r, sizeof(*v));
    struct gv ret = {.t = &version_type,
                     .obj = run_alloc(r, sizeof(struct gv_struct) + 6 * sizeof(struct gv))};
    (void)n;
    *v = parse_version(r, a[0]);
    for (size_t i = 0; i < 3; i++)
        ret.obj->f[i] = (struct gv){.t = &gv_uint64, .u = v->part[i]};
    ret.obj->f[3] = v->pre;
    ret.obj->f[4] = v->meta;
    ret.obj->f[5] = v->original;
    ret.obj->data = v;
    return ret;
}

const struct function functions_semver[] = {
    {"sprig_semver", fn_semver, "s", FUNCTION_PLAIN},
    {"sprig_semverCompare", fn_semver_compare, "ss", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
