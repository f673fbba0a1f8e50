/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine sends to the engine hand. The first byte chooses: even, a document of it
 * (inspection, list, labels); odd, the stream of a container's output, of a terminal where the next
 * bit is set. Oracles: a container that is taken for ours has our labels and an id that can stand in
 * a path; the same stream in pieces makes the same files as in one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define ALLOC "12345678-aaaa-bbbb-cccc-0123456789ab"
enum { INPUT_MAX = 16 << 10, TEXT_MAX = 1 << 20 };

static char dir[] = "/dev/shm/paddock-fuzz-XXXXXX";
static const struct policy policy = {.alloc_dir = "/data/alloc"};
static struct hand hand = {.policy = &policy, .allocs = -1};

static void
document(const void *ctx, const uint8_t *p, size_t n)
{
    struct value *doc = NULL;
    struct err e = ERR_INIT;
    struct hand_state s = {0};
    struct log_shape logs;
    if (json_decode_value(ctx, SLICE(p, n), BUDGET(1 << 20), &doc, &e) < 0)
        return;
    document_logs(value_get(value_get(doc, "Config"), "Labels"), &logs);
    (void)engine_said(doc);
    struct hand_network_state net;
    const char *helper = "";
    bool running;
    if (document_network_state(ctx, &hand, ALLOC, doc, &net, &running) &&
        (strlen(net.id) >= HAND_ID_MAX || strpbrk(net.id, " \r\n")))
        abort();
    (void)registry_in_file(ctx, doc, "r:5000", &helper);
    (void)registry_of_helper(ctx, doc, "r:5000");
    if (!document_state(ctx, &hand, ALLOC, "web", doc, &s))
        return;
    const struct value *labels = value_get(value_get(doc, "Config"), "Labels");
    if (strlen(s.id) >= HAND_ID_MAX || strpbrk(s.id, " \r\n") ||
        !str_eq(document_text(labels, HAND_LABEL_TASK), "web"))
        abort();
}

/* All files of both streams, after the bytes were fed in pieces of `piece`. */
static char *
fed(const void *ctx, const char *task, bool tty, const uint8_t *p, size_t n, size_t piece)
{
    struct err e = ERR_INIT;
    char since[48], *all = mem_strdup(ctx, "");
    struct hand_log *l = log_open(ctx, &hand, ALLOC, task, &e);
    if (!l)
        abort();
    log_shape(l, &(struct log_shape){1000, 64, tty});
    if (log_of(l, "abc") < 0)
        abort();
    (void)log_since(l, since);
    for (size_t at = 0; at < n; at += piece)
        if (log_feed(l, p + at, piece < n - at ? piece : n - at) < 0)
            break;
    log_close(l);
    auto_fd int logs = openat(hand.allocs, ALLOC "/alloc/logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 1000; i++) {
            char *text = NULL;
            size_t len = 0;
            if (file_read(ctx, logs, mem_printf(ctx, "%s.%s.%d", task, k ? "stderr" : "stdout", i),
                          TEXT_MAX, &text, &len) < 0)
                break;
            for (size_t c = 0; c < len; c++)
                text[c] = text[c] ? text[c] : '0';
            all = mem_printf(ctx, "%s%d.%d=%s\n", all, k, i, text);
        }
    return all;
}

static void
output(const void *ctx, bool tty, const uint8_t *p, size_t n)
{
    size_t piece = n > 0 ? 1 + p[0] % 50 : 1;
    const char *a = fed(ctx, "one", tty, p, n, n > 0 ? n : 1),
               *b = fed(ctx, "two", tty, p, n, piece);
    if (strcmp(a, b) != 0)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    auto_mem void *ctx = mem_ctx("fuzz");
    struct err e = ERR_INIT;
    if (n < 1 || n > INPUT_MAX)
        return 0;
    static bool made; /* not by the name, which may end in an X again */
    if (!made) {
        log_setup(LOG_OFF, false, 2);
        if (!mkdtemp(dir))
            abort();
        made = true;
    }
    uint8_t *copy = mem_array(ctx, uint8_t, n - 1);
    memcpy(copy, data + 1, n - 1);
    if (data[0] % 2 == 0) {
        document(ctx, copy, n - 1);
        return 0;
    }
    if (dir_make(AT_FDCWD, mem_printf(ctx, "%s/" ALLOC "/alloc/logs", dir), 0755) < 0)
        abort();
    hand.allocs = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    output(ctx, data[0] % 4 == 3, copy, n - 1);
    fd_close(&hand.allocs);
    if (dir_remove(AT_FDCWD, mem_printf(ctx, "%s/" ALLOC, dir), &e) < 0)
        abort();
    return 0;
}
