/* SPDX-License-Identifier: Apache-2.0 */
#include "template/func/strs.h"

#include <string.h>

size_t
strs_index(struct gv s, struct gv sub)
{
    if (sub.n == 0)
        return 0;
    const char *p = s.n >= sub.n ? memmem(s.s, s.n, sub.s, sub.n) : NULL;
    return p ? (size_t)(p - s.s) : SIZE_MAX;
}

size_t
strs_last_index(struct gv s, struct gv sub)
{
    for (size_t i = s.n + 1; i > sub.n; i--)
        if (memcmp(s.s + i - 1 - sub.n, sub.s, sub.n) == 0)
            return i - 1 - sub.n;
    return SIZE_MAX;
}

static bool
set_has(struct gv set, uint32_t c)
{
    uint32_t k;
    for (size_t i = 0; i < set.n;) {
        i += rune_take(set.s + i, set.n - i, &k);
        if (k == c)
            return true;
    }
    return false;
}

struct gv
strs_trim(struct run *r, struct gv s, struct gv set, int sides)
{
    uint32_t c;
    while ((sides & STRS_LEFT) && s.n > 0) {
        size_t len = rune_take(s.s, s.n, &c);
        run_step(r, set.n / 16);
        if (!set_has(set, c))
            break;
        s.s += len;
        s.n -= len;
    }
    while ((sides & STRS_RIGHT) && s.n > 0) {
        size_t len = rune_take_last(s.s, s.n, &c);
        run_step(r, set.n / 16);
        if (!set_has(set, c))
            break;
        s.n -= len;
    }
    return s;
}

struct gv
strs_trim_space(struct gv s)
{
    uint32_t c;
    while (s.n > 0) {
        size_t len = rune_take(s.s, s.n, &c);
        if (!rune_space(c))
            break;
        s.s += len;
        s.n -= len;
    }
    while (s.n > 0) {
        size_t len = rune_take_last(s.s, s.n, &c);
        if (!rune_space(c))
            break;
        s.n -= len;
    }
    return s;
}

bool
strs_has_prefix(struct gv s, struct gv prefix)
{
    return s.n >= prefix.n && memcmp(s.s, prefix.s, prefix.n) == 0;
}

bool
strs_has_suffix(struct gv s, struct gv suffix)
{
    return s.n >= suffix.n && memcmp(s.s + s.n - suffix.n, suffix.s, suffix.n) == 0;
}

struct gv
strs_split(struct run *r, struct gv s, struct gv sep, int64_t limit)
{
    struct gv list = gv_list_new(r, &gv_strings, 0);
    uint32_t c;
    if (limit == 0)
        return (struct gv){.t = &gv_strings};
    run_step(r, s.n / 64);
    while (sep.n > 0 || s.n > 0) {
        bool last = limit > 0 && (int64_t)list.list->n + 1 >= limit;
        size_t at = last ? SIZE_MAX : sep.n ? strs_index(s, sep) : rune_take(s.s, s.n, &c);
        if (at == SIZE_MAX || (sep.n == 0 && at == s.n)) {
            gv_list_add(r, list.list, s);
            break;
        }
        run_step(r, 1);
        gv_list_add(r, list.list, GV_TEXT(s.s, at));
        s.s += at + sep.n;
        s.n -= at + sep.n;
    }
    return list;
}

struct gv
strs_join(struct run *r, struct gv list, struct gv sep)
{
    struct text t = {NULL, 0, 0};
    for (size_t i = 0; i < gv_len(list); i++) {
        struct gv v = list.list->v[i];
        if (i)
            text_put(r, &t, sep.s, sep.n);
        text_put(r, &t, v.s, v.n);
    }
    return text_gv(&t);
}

struct gv
strs_replace(struct run *r, struct gv s, struct gv from, struct gv to, int64_t limit)
{
    struct text t = {NULL, 0, 0};
    uint32_t c;
    run_step(r, s.n / 64);
    for (int64_t i = 0; limit < 0 || i < limit; i++) {
        size_t at = from.n   ? strs_index(s, from)
                    : i == 0 ? 0
                    : s.n    ? rune_take(s.s, s.n, &c)
                             : SIZE_MAX;
        if (at == SIZE_MAX)
            break;
        text_put(r, &t, s.s, at);
        text_put(r, &t, to.s, to.n);
        s.s += at + from.n;
        s.n -= at + from.n;
    }
    text_put(r, &t, s.s, s.n);
    return text_gv(&t);
}

struct gv
strs_case(struct run *r, struct gv s, enum rune_form form)
{
    struct text t = {NULL, 0, 0};
    uint32_t c;
    run_step(r, s.n / 16);
    for (size_t i = 0; i < s.n;) {
        i += rune_take(s.s + i, s.n - i, &c);
        text_rune(r, &t, rune_to(form, c));
    }
    return text_gv(&t);
}

struct gv
strs_repeat(struct run *r, struct gv s, int64_t count)
{
    struct text t = {NULL, 0, 0};
    if (s.n == 1) {
        text_fill(r, &t, s.s[0], count > 0 ? (size_t)count : 0);
        return text_gv(&t);
    }
    for (int64_t i = 0; s.n > 0 && i < count; i++) {
        run_step(r, 1);
        text_put(r, &t, s.s, s.n);
    }
    return text_gv(&t);
}
