/* SPDX-License-Identifier: Apache-2.0
 *
 * make-corpus SRCDIR CORPUS: see corpus.h. `make fuzz-corpus` runs it; what it writes is in the
 * tree.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/fuzz/corpus.h"

enum { SEEDS_BYTES_MAX = 96 << 10 }; /* of one fuzzer */

const char *source_dir;
static int corpus = -1;

void
seed(const char *fuzzer, const char *name, const void *p, size_t n)
{
    static char last[64];
    static size_t sum;
    auto_mem void *ctx = mem_ctx("seed");
    if (strcmp(last, fuzzer) != 0) {
        struct err e = ERR_INIT;
        snprintf(last, sizeof(last), "%s", fuzzer);
        sum = 0;
        if (dir_remove(corpus, fuzzer, &e) < 0 || dir_make(corpus, fuzzer, 0755) < 0) {
            fprintf(stderr, "make-corpus: %s\n", e.text);
            _exit(1);
        }
    }
    sum += n;
    if (sum > SEEDS_BYTES_MAX) {
        fprintf(stderr, "make-corpus: more than %d bytes for %s\n", SEEDS_BYTES_MAX, fuzzer);
        _exit(1);
    }
    const char *path = mem_printf(ctx, "%s/%s", fuzzer, name);
    auto_fd int fd = openat(corpus, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fd_write_full(fd, p, n) < 0) {
        fprintf(stderr, "make-corpus: cannot write %s\n", path);
        _exit(1);
    }
}

void
seed_text(const char *fuzzer, const char *name, int first, const char *text)
{
    auto_buf struct buf b = BUF_INIT(SEEDS_BYTES_MAX);
    if (first >= 0)
        buf_put_u8(&b, (uint8_t)first);
    for (; *text; text++)
        buf_put_u8(&b, *text == '\1' ? 0 : (uint8_t)*text);
    seed(fuzzer, name, b.data, b.len);
}

void
seed_texts(const char *fuzzer, int first, const char *const *texts)
{
    char name[24];
    for (int i = 0; texts[i] != NULL; i++) {
        snprintf(name, sizeof(name), "%d-%d", first >= 0 ? first : 0, i);
        seed_text(fuzzer, name, first, texts[i]);
    }
}

int
main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: make-corpus SRCDIR CORPUS\n");
        return 1;
    }
    source_dir = argv[1];
    if (dir_make(AT_FDCWD, argv[2], 0755) < 0)
        return 1;
    corpus = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (corpus < 0)
        return 1;
    corpus_codec();
    corpus_text();
    return 0;
}
