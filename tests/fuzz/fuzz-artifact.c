/* SPDX-License-Identifier: Apache-2.0
 *
 * Artifacts: sources, destinations, sizes and files of checksums. The first byte chooses. Oracle:
 * what is taken for good has no part that leads anywhere else, and a source's URL is taken again.
 */
#include <stdint.h>
#include <string.h>

#include "api/artifact/artifact.h"
#include "common/mem.h"
#include "common/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
source(const void *ctx, const char *s)
{
    struct artifact_source a, again;
    if (artifact_parse(ctx, s, NULL, &a, NULL) < 0 || a.kind > ARTIFACT_GCS)
        return;
    ASSERT(a.ref[0] != '-' && strpbrk(a.ref, ":*?[\\ \n") == NULL && a.depth >= 0);
    ASSERT(str_prefix(a.url, "ssh://") == !str_empty(a.sshkey));
    ASSERT(strchr(a.filename, '/') == NULL && !str_eq(a.filename, ".."));
    ASSERT(str_prefix(strstr(a.url, "://"), "://") && strpbrk(a.url, " \n\r\t#") == NULL);
    ASSERT(!str_eq(a.subdir, "..") && !str_prefix(a.subdir, "../"));
    (void)artifact_parse(ctx, a.url, NULL, &again, NULL);
}

static void
place(const void *ctx, const char *s)
{
    static const struct artifact_dirs dirs = {"/alloc", "/local", "/secrets"};
    bool shared = false;
    const char *path = NULL;
    if (artifact_place(ctx, s, &dirs, &shared, &path, NULL) < 0)
        return;
    for (const char *p = path; *p != '\0';) {
        size_t k = strcspn(p, "/");
        ASSERT(k > 0 && !(k == 2 && memcmp(p, "..", 2) == 0) && !(k == 1 && *p == '.'));
        p += k;
        p += *p == '/' && p[1] != '\0';
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    auto_mem void *ctx = mem_ctx("fuzz");
    struct artifact_checksum sum;
    int64_t size;
    if (n == 0)
        return 0;
    const char *s = mem_strndup(ctx, (const char *)data + 1, n - 1);
    switch (data[0] % 4) {
    case 0:
        source(ctx, s);
        break;
    case 1:
        place(ctx, s);
        break;
    case 2:
        if (artifact_find_sum(s, "f", &sum, NULL) == 0)
            ASSERT(strspn(sum.hex, "0123456789abcdef") == strlen(sum.hex));
        break;
    default:
        if (artifact_size(s, &size, NULL) == 0)
            ASSERT(size > 0);
        (void)artifact_checksum(ctx, s, &sum, NULL);
    }
    return 0;
}
