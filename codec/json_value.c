/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON without a schema: into a value, or skipped. Recursion is bounded by CODEC_DEPTH_MAX.
 */
#include "codec/json_scan.h"

static int
read_string(struct json_reader *r, struct value **ret)
{
    const char *s;
    size_t n;
    int rc = json_string(r, &s, &n);
    if (rc)
        return rc;
    struct value *v = arena_value(&r->d.a, VALUE_STRING);
    char *copy = v ? arena_strndup(&r->d.a, s, n) : NULL;
    if (!copy)
        return json_no_memory(r);
    v->str.s = copy;
    v->str.n = n;
    *ret = v;
    return 0;
}

static int
read_number(struct json_reader *r, struct value **ret)
{
    struct json_number n;
    int rc = json_scan_number(r, &n);
    if (rc)
        return rc;
    struct value *v;
    if (n.integral && !(n.neg && n.mag == 0)) {
        uint64_t limit = (uint64_t)INT64_MAX + (n.neg ? 1 : 0);
        if (n.big || n.mag > limit)
            return json_fail(r, n.s, "number %.*s does not fit 64 bits", (int)(n.n < 40 ? n.n : 40),
                             n.s);
        v = arena_value(&r->d.a, VALUE_INT);
        if (v)
            v->i = n.neg ? (int64_t)(~n.mag + 1) : (int64_t)n.mag;
    } else {
        v = arena_value(&r->d.a, VALUE_FLOAT);
        rc = v ? json_number_float(r, &n, &v->f) : 0;
        if (rc)
            return rc;
    }
    if (!v)
        return json_no_memory(r);
    *ret = v;
    return 0;
}

static int
read_list(struct json_reader *r, struct value **ret)
{
    struct value *v = arena_value(&r->d.a, VALUE_LIST);
    if (!v)
        return json_no_memory(r);
    void *arr = NULL;
    size_t cap = 0, n = 0;
    int rc = json_open(r);
    if (rc)
        return rc;
    if (!json_empty(r, ']')) {
        do {
            json_space(r);
            decoder_at(&r->d, STEP_INDEX, NULL, n);
            if (n >= CODEC_COUNT_MAX)
                return json_fail(r, r->p, "more than %d elements", CODEC_COUNT_MAX);
            if (!arena_grow(&r->d.a, &arr, &cap, n, sizeof(struct value *)))
                return json_no_memory(r);
            rc = json_value(r, &((struct value **)arr)[n]);
            if (rc)
                return rc;
            n++;
            rc = json_next(r, ']');
        } while (rc > 0);
        if (rc)
            return rc;
    }
    v->list.v = arr;
    v->list.n = n;
    *ret = v;
    return 0;
}

static int
read_pair(struct json_reader *r, struct value_pair *pair)
{
    const char *k;
    size_t len;
    int rc = json_key(r, &k, &len);
    if (rc)
        return rc;
    decoder_at(&r->d, STEP_KEY, k, len);
    pair->k = arena_strndup(&r->d.a, k, len);
    if (!pair->k)
        return json_no_memory(r);
    return json_value(r, &pair->v);
}

static int
read_map(struct json_reader *r, struct value **ret)
{
    struct value *v = arena_value(&r->d.a, VALUE_MAP);
    if (!v)
        return json_no_memory(r);
    const char *start = r->p;
    void *arr = NULL;
    size_t cap = 0, n = 0;
    int rc = json_open(r);
    if (rc)
        return rc;
    if (!json_empty(r, '}')) {
        do {
            if (n >= CODEC_COUNT_MAX)
                return json_fail(r, r->p, "more than %d entries", CODEC_COUNT_MAX);
            if (!arena_grow(&r->d.a, &arr, &cap, n, sizeof(struct value_pair)))
                return json_no_memory(r);
            rc = read_pair(r, &((struct value_pair *)arr)[n]);
            if (rc)
                return rc;
            n++;
            rc = json_next(r, '}');
        } while (rc > 0);
        if (rc)
            return rc;
    }
    v->map.v = arr;
    v->map.n = n;
    const char *dup = value_map_duplicate(v);
    if (dup)
        return json_fail(r, start, "key \"%.64s\" is there twice", dup);
    *ret = v;
    return 0;
}

static int
read_word(struct json_reader *r, struct value **ret)
{
    struct value *v;
    if (json_take_null(r)) {
        v = arena_value(&r->d.a, VALUE_NULL);
    } else if (json_take_word(r, "true", 4)) {
        v = arena_value(&r->d.a, VALUE_BOOL);
        if (v)
            v->b = true;
    } else if (json_take_word(r, "false", 5)) {
        v = arena_value(&r->d.a, VALUE_BOOL);
    } else {
        return json_expected(r, "a value");
    }
    if (!v)
        return json_no_memory(r);
    *ret = v;
    return 0;
}

int
json_value(struct json_reader *r, struct value **ret)
{
    switch (r->p < r->end ? *r->p : 0) {
    case '"':
        return read_string(r, ret);
    case '{':
        return read_map(r, ret);
    case '[':
        return read_list(r, ret);
    case '-':
    case '0' ... '9':
        return read_number(r, ret);
    default:
        return read_word(r, ret);
    }
}

static int
skip_container(struct json_reader *r, char close)
{
    int rc = json_open(r);
    if (rc || json_empty(r, close))
        return rc;
    do {
        if (close == '}') {
            const char *k;
            size_t len;
            rc = json_key(r, &k, &len);
            if (rc)
                return rc;
        }
        json_space(r);
        rc = json_skip(r);
        if (rc)
            return rc;
        rc = json_next(r, close);
    } while (rc > 0);
    return rc;
}

int
json_skip(struct json_reader *r)
{
    const char *s;
    size_t n;
    struct json_number num;
    switch (r->p < r->end ? *r->p : 0) {
    case '"':
        return json_string(r, &s, &n);
    case '{':
        return skip_container(r, '}');
    case '[':
        return skip_container(r, ']');
    case '-':
    case '0' ... '9':
        return json_scan_number(r, &num);
    default:
        if (json_take_null(r) || json_take_word(r, "true", 4) || json_take_word(r, "false", 5))
            return 0;
        return json_expected(r, "a value");
    }
}
