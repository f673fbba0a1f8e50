/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the codec: one recorded Allocation (bench/allocation.json) encoded and decoded as JSON
 * and msgpack by us, by jansson and by msgpack-c, in turns in the same run. The others go from and
 * to their own generic trees, which a program would still have to turn into structs: the comparison
 * favours them. Bar: not slower; for msgpack decoding at least half as fast, because msgpack-c then
 * only points into the input where we check, copy and own every string.
 */
#include <fcntl.h>
#include <jansson.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "common/duration.h"
#include "common/fd.h"

enum { ROUNDS = 15, BATCH_MS = 40 };

static char *text; /* compact JSON as we write it */
static size_t text_n;
static void *object;
static json_t *tree;
static struct buf packed = BUF_INIT(64 << 20);
static msgpack_unpacked generic;

static void
must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench/codec: %s failed\n", what);
        exit(1);
    }
}

/* --- what is measured --- */

static void
json_out(void)
{
    auto_buf struct buf b = BUF_INIT(64 << 20);
    json_encode(&b, &type_allocation, object, 0);
    must(b.len == text_n, "json_encode");
}

static void
jansson_out(void)
{
    char *s = json_dumps(tree, JSON_COMPACT);
    must(s != NULL, "json_dumps");
    free(s);
}

static void
json_in(void)
{
    void *ret = NULL;
    must(json_decode(NULL, &type_allocation, SLICE(text, text_n), BUDGET(64 << 20), &ret, NULL) ==
             0,
         "json_decode");
    talloc_free(ret);
}

static void
jansson_in(void)
{
    json_t *j = json_loadb(text, text_n, JSON_REJECT_DUPLICATES, NULL);
    must(j != NULL, "json_loadb");
    json_decref(j);
}

static void
mp_out(void)
{
    auto_buf struct buf b = BUF_INIT(64 << 20);
    mp_encode(&b, &type_allocation, object);
    must(b.len == packed.len, "mp_encode");
}

static void
msgpack_c_out(void)
{
    msgpack_sbuffer sb;
    msgpack_packer pk;
    msgpack_sbuffer_init(&sb);
    msgpack_packer_init(&pk, &sb, msgpack_sbuffer_write);
    must(msgpack_pack_object(&pk, generic.data) == 0, "msgpack_pack_object");
    msgpack_sbuffer_destroy(&sb);
}

static void
mp_in(void)
{
    void *ret = NULL;
    struct budget *budget = BUDGET(64 << 20);
    int r = mp_decode(NULL, &type_allocation, SLICE(packed.data, packed.len), budget, &ret, NULL);
    must(r == 0, "mp_decode");
    talloc_free(ret);
}

static void
msgpack_c_in(void)
{
    msgpack_unpacked u;
    size_t off = 0;
    msgpack_unpacked_init(&u);
    int r = msgpack_unpack_next(&u, (const char *)packed.data, packed.len, &off);
    must(r == MSGPACK_UNPACK_SUCCESS, "msgpack_unpack_next");
    msgpack_unpacked_destroy(&u);
}

/* --- timing --- */

/* Time of this thread on the processor: what else the machine does costs neither side. */
static int64_t
cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static double
batch(void (*fn)(void), unsigned n)
{
    int64_t t = cpu_ns();
    for (unsigned i = 0; i < n; i++)
        fn();
    return (double)(cpu_ns() - t) / n / 1000;
}

/* The best round: the others met a busier machine (cache and memory are shared). */
static double
best(const double *v)
{
    double least = v[0];
    for (int i = 1; i < ROUNDS; i++)
        least = v[i] < least ? v[i] : least;
    return least;
}

static const char *only; /* argv[1]: this comparison alone, for profiling */

static bool
compare(const char *what, const char *other, void (*ours)(void), void (*theirs)(void), double bar)
{
    size_t bytes = *what == 'J' ? text_n : packed.len;
    double a[ROUNDS], b[ROUNDS];
    unsigned n = 1;
    if (only && strcmp(only, what) != 0)
        return true;
    while (batch(ours, n) * n < BATCH_MS * 1000)
        n *= 2;
    for (int i = 0; i < ROUNDS; i++) {
        a[i] = batch(ours, n);
        b[i] = batch(theirs, n);
    }
    double us = best(a), them = best(b);
    printf("%-15s %6zu bytes  ours %7.1f us (%6.0f MB/s)  %-9s %7.1f us  ratio %.2f (bar %.1f)\n",
           what, bytes, us, (double)bytes / us, other, them, them / us, bar);
    if (them >= us * bar)
        return true;
    printf("MISSED: %s against %s\n", what, other);
    return false;
}

/* --- set up --- */

static void
load(const char *srcdir)
{
    char path[4096], *s;
    size_t n;
    struct err e = ERR_INIT;
    snprintf(path, sizeof(path), "%s/bench/allocation.json", srcdir);
    must(file_read(NULL, AT_FDCWD, path, 1 << 20, &s, &n) >= 0, path);
    must(json_decode(NULL, &type_allocation, SLICE(s, n), BUDGET(64 << 20), &object, &e) == 0,
         e.text);
    struct buf b = BUF_INIT(64 << 20);
    json_encode(&b, &type_allocation, object, 0);
    must(buf_error(&b) == 0, "json_encode");
    text = (char *)b.data;
    text_n = b.len;
    tree = json_loadb(text, text_n, 0, NULL);
    must(tree != NULL, "json_loadb");
    mp_encode(&packed, &type_allocation, object);
    msgpack_unpacked_init(&generic);
    size_t off = 0;
    int r = msgpack_unpack_next(&generic, (const char *)packed.data, packed.len, &off);
    must(r == MSGPACK_UNPACK_SUCCESS, "msgpack_unpack_next");
}

int
main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    const char *srcdir = getenv("top_srcdir");
    load(srcdir ? srcdir : ".");
    bool ok = compare("JSON encode", "jansson", json_out, jansson_out, 1);
    ok = compare("JSON decode", "jansson", json_in, jansson_in, 1) && ok;
    ok = compare("msgpack encode", "msgpack-c", mp_out, msgpack_c_out, 1) && ok;
    ok = compare("msgpack decode", "msgpack-c", mp_in, msgpack_c_in, 0.5) && ok;
    return ok ? 0 : 1;
}
