/* SPDX-License-Identifier: Apache-2.0
 *
 * PEM: see pem.h.
 */
#include "net/cert/pem.h"

#include <string.h>

#include "codec/base64.h"
#include "common/mem.h"

#define BEGIN "-----BEGIN "
#define END "-----END "
#define DASHES "-----"

/* Base64 of PEM_BLOCK_MAX bytes. */
enum { DIGITS_MAX = (PEM_BLOCK_MAX + 2) / 3 * 4 };

struct pem_line {
    const char *p;
    size_t n; /* without the end of the line, and blanks before it */
};

int
pem_init(struct pem_reader *r, const char *text, size_t n, struct err *e)
{
    *r = (struct pem_reader){.p = text, .end = text + n};
    if (n > PEM_TEXT_MAX)
        return err_set(e, -ERR_LIMIT, "more than %d KiB of PEM", PEM_TEXT_MAX >> 10);
    if (memchr(text, '\0', n) != NULL)
        return err_set(e, -ERR_INVALID, "no PEM: it holds a zero byte");
    return 0;
}

static bool
pem_take_line(struct pem_reader *r, struct pem_line *ret)
{
    if (r->p == r->end)
        return false;
    const char *nl = memchr(r->p, '\n', (size_t)(r->end - r->p));
    const char *end = nl ? nl : r->end;
    *ret = (struct pem_line){r->p, (size_t)(end - r->p)};
    while (ret->n > 0 && strchr("\r \t", ret->p[ret->n - 1]))
        ret->n--;
    r->p = nl ? nl + 1 : r->end;
    r->line++;
    return true;
}

/* Reads "-----BEGIN X-----" and the like; false: another line. */
static bool
pem_boundary(const struct pem_line *l, const char *begin, char label[PEM_LABEL_MAX + 1])
{
    size_t before = strlen(begin), after = strlen(DASHES);
    if (l->n < before + after || memcmp(l->p, begin, before) != 0 ||
        memcmp(l->p + l->n - after, DASHES, after) != 0)
        return false;
    size_t n = l->n - before - after;
    if (n > PEM_LABEL_MAX)
        return false;
    memcpy(label, l->p + before, n);
    label[n] = '\0';
    return true;
}

/* Takes the lines up to the end of the block; `digits` has DIGITS_MAX bytes. */
static int
pem_collect(struct pem_reader *r, struct pem_block *b, char *digits, size_t *ret_n, struct err *e)
{
    char label[PEM_LABEL_MAX + 1];
    struct pem_line l;
    size_t n = 0;

    while (pem_take_line(r, &l)) {
        if (pem_boundary(&l, END, label)) {
            if (strcmp(label, b->label) != 0)
                return err_set(e, -ERR_INVALID, "line %zu: \"%s\" ends as \"%s\"", r->line,
                               b->label, label);
            *ret_n = n;
            return 0;
        }
        if (l.n > 0 && l.p[0] == '-')
            break; /* the next block begins: this one has no end */
        if (memchr(l.p, ':', l.n) != NULL)
            b->headers = true;
        if (b->headers)
            continue;
        if (l.n > DIGITS_MAX - n)
            return err_set(e, -ERR_LIMIT, "line %zu: \"%s\" has more than %d KiB", b->line,
                           b->label, PEM_BLOCK_MAX >> 10);
        memcpy(digits + n, l.p, l.n);
        n += l.n;
    }
    return err_set(e, -ERR_INVALID, "line %zu: \"%s\" has no end", b->line, b->label);
}

int
pem_next(const void *ctx, struct pem_reader *r, struct pem_block *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("pem");
    struct pem_block b = {.data = NULL};
    struct pem_line l = {NULL, 0};
    size_t n = 0;

    do {
        if (!pem_take_line(r, &l))
            return 0;
    } while (!pem_boundary(&l, BEGIN, b.label));
    if (++r->blocks > PEM_BLOCKS_MAX)
        return err_set(e, -ERR_LIMIT, "more than %d blocks of PEM", PEM_BLOCKS_MAX);
    b.line = r->line;
    char *digits = mem_array(tmp, char, DIGITS_MAX);
    int rc = pem_collect(r, &b, digits, &n, e);
    if (rc < 0)
        return rc;
    b.data = mem_array(ctx, uint8_t, BASE64_DECODED(n));
    if (!b.headers && base64_decode(digits, n, b.data, &b.n) < 0) {
        talloc_free(b.data);
        return err_set(e, -ERR_INVALID, "line %zu: \"%s\" is not base64", b.line, b.label);
    }
    *ret = b;
    return 1;
}
