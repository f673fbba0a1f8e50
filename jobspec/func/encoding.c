/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that encode and decode: base64, CSV, URL.
 */
#include <string.h>

#include "codec/base64.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"
#include "jobspec/func/func.h"

static struct value *
ret_buf(struct call *c, struct buf *b)
{
    if (buf_error(b) != 0)
        return arg_error(c, 0, "the result is too large");
    return ret_strn(c, b->len > 0 ? (const char *)b->data : "", b->len);
}

static struct value *
fn_base64encode(struct call *c)
{
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    base64_encode(&b, arg_str(c, 0), arg_len(c, 0));
    return ret_buf(c, &b);
}

static struct value *
fn_base64decode(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0), got = 0;
    if (!call_charge(c, 1 + n / 64, n))
        return NULL;
    uint8_t *out = mem_zalloc_array(c->ev->ctx, 1, BASE64_DECODED(n), "bytes");
    if (base64_decode(s, n, out, &got) != 0)
        return arg_error(c, 0, "this is not base64");
    if (!utf8_valid((char *)out, got) || memchr(out, 0, got) != NULL)
        return arg_error(c, 0, "the decoded bytes are no text");
    return ret_strn(c, (char *)out, got);
}

static struct value *
fn_urlencode(struct call *c)
{
    const char *s = arg_str(c, 0);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    for (; *s != '\0'; s++) {
        unsigned char ch = (unsigned char)*s;
        if ((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
            strchr("-_.~", ch) != NULL)
            buf_putc(&b, *s);
        else if (ch == ' ')
            buf_putc(&b, '+');
        else
            buf_printf(&b, "%%%02X", ch);
    }
    return ret_buf(c, &b);
}

/* --- CSV (RFC 4180) --- */

struct csv {
    const char *s;
    bool end_of_row;
};

/* One field into b. False on a quote that is not closed or not at the ends. */
static bool
csv_field(struct csv *p, struct buf *b)
{
    buf_reset(b);
    if (*p->s == '"') {
        p->s++;
        for (;; p->s++) {
            if (*p->s == '\0')
                return false;
            if (*p->s == '"' && *++p->s != '"')
                break;
            buf_putc(b, *p->s);
        }
    } else {
        while (*p->s != '\0' && strchr(",\n\"", *p->s) == NULL &&
               !(p->s[0] == '\r' && p->s[1] == '\n'))
            buf_putc(b, *p->s++);
    }
    if (*p->s == '\r')
        p->s++;
    p->end_of_row = *p->s != ',';
    if (*p->s == ',' || *p->s == '\n')
        p->s++;
    else if (*p->s != '\0')
        return false;
    return true;
}

static struct value *
csv_row(struct call *c, struct csv *p, struct buf *b)
{
    struct value *row = ret_list(c, 0);
    do {
        struct value *v = NULL;
        if (!csv_field(p, b))
            return arg_error(c, 0, "this is not CSV: a quote is out of place");
        if (row == NULL || (v = ret_strn(c, b->len > 0 ? (char *)b->data : "", b->len)) == NULL)
            return NULL;
        value_list_add(row, v);
    } while (!p->end_of_row);
    return row;
}

static struct value *
fn_csvdecode(struct call *c)
{
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    struct csv p = {arg_str(c, 0), false};
    struct value *out = ret_list(c, 0);
    struct value *head = *p.s != '\0' ? csv_row(c, &p, &b) : NULL;
    if (head == NULL)
        return c->failed || c->ev->exhausted ? NULL : arg_error(c, 0, "the header line is missing");
    for (size_t i = 0; i < head->list.n; i++)
        for (size_t k = 0; k < i; k++)
            if (!call_charge(c, 1, 0))
                return NULL;
            else if (strcmp(head->list.v[i]->str.s, head->list.v[k]->str.s) == 0)
                return arg_error(c, 0, "duplicate column name \"%.100s\"", head->list.v[i]->str.s);
    while (*p.s != '\0') {
        struct value *row = csv_row(c, &p, &b);
        if (row == NULL || out == NULL)
            return NULL;
        if (row->list.n == 1 && row->list.v[0]->str.n == 0)
            continue; /* an empty line */
        if (row->list.n != head->list.n)
            return arg_error(c, 0, "a row has %zu fields, the header %zu", row->list.n,
                             head->list.n);
        struct value_pair *pairs = mem_array(c->ev->ctx, struct value_pair, row->list.n);
        for (size_t i = 0; i < row->list.n; i++)
            pairs[i] = (struct value_pair){head->list.v[i]->str.s, row->list.v[i]};
        struct value *m = ev_map(c->ev, &c->e->r, pairs, row->list.n);
        if (m == NULL)
            return NULL;
        value_list_add(out, m);
    }
    return out;
}

const struct func func_encoding[] = {{"base64decode", 1, 1, fn_base64decode, false},
                                     {"base64encode", 1, 1, fn_base64encode, false},
                                     {"csvdecode", 1, 1, fn_csvdecode, false},
                                     {"urlencode", 1, 1, fn_urlencode, false},
                                     {NULL, 0, 0, NULL, false}};
