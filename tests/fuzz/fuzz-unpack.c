/* SPDX-License-Identifier: Apache-2.0
 *
 * Archives of artifacts (fetch/archive.h). The first byte chooses the kind, the second whether the
 * rest is one as it is, or tells entries that libarchive writes one of, in which then a few bytes
 * are changed. Oracle: limits hold, nothing is made beside the tree, and in it only files,
 * directories and links that stay.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/artifact/artifact.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fetch/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { FILES_MAX = 32, BYTES_MAX = 1 << 20, ENTRIES_MAX = 40, BUILT_MAX = 1 << 20, NAME = 24 };

static int top = -1; /* "tree" is made in it */

struct input {
    const uint8_t *p;
    size_t n;
};

static unsigned
take(struct input *in)
{
    unsigned v = in->n > 0 ? *in->p : 0;
    in->p += in->n > 0;
    in->n -= in->n > 0;
    return v;
}

static char *
take_text(const void *ctx, struct input *in)
{
    size_t n = take(in) % NAME;
    n = n < in->n ? n : in->n;
    char *s = mem_strndup(ctx, (const char *)in->p, n);
    in->p += n;
    in->n -= n;
    return s;
}

static void
write_entry(struct archive *a, struct input *in)
{
    static const mode_t types[] = {AE_IFREG, AE_IFREG, AE_IFDIR, AE_IFLNK,
                                   AE_IFCHR, AE_IFIFO, AE_IFREG, AE_IFSOCK};
    auto_mem void *ctx = mem_ctx("entry");
    struct archive_entry *e = archive_entry_new();
    unsigned how = take(in);
    archive_entry_set_pathname(e, take_text(ctx, in));
    archive_entry_set_filetype(e, types[how % ARRAY_LEN(types)]);
    archive_entry_set_perm(e, (mode_t)take(in) << 4);
    size_t size = take(in);
    if (how % ARRAY_LEN(types) == 3)
        archive_entry_set_symlink(e, take_text(ctx, in));
    if (how % ARRAY_LEN(types) == 6)
        archive_entry_set_hardlink(e, take_text(ctx, in));
    if (how & 0x80)
        archive_entry_sparse_add_entry(e, (int64_t)take(in) << 8, take(in));
    archive_entry_set_size(e, (int64_t)size << (how & 0x40 ? 9 : 0));
    static const uint8_t zeroes[255 << 9];
    if (archive_write_header(a, e) >= ARCHIVE_WARN && how % ARRAY_LEN(types) < 2)
        (void)archive_write_data(a, zeroes, size << (how & 0x40 ? 9 : 0));
    archive_entry_free(e);
}

/* Returns the length of what is in `out`. */
static size_t
build(const char *suffix, struct input *in, uint8_t *out)
{
    size_t n = 0;
    struct archive *a = archive_write_new();
    unsigned format = take(in);
    if (str_eq(suffix, "zip"))
        (void)archive_write_set_format_zip(a);
    else if (format % 3 == 0)
        (void)archive_write_set_format_gnutar(a);
    else
        (void)(format % 3 == 1 ? archive_write_set_format_pax(a)
                               : archive_write_set_format_ustar(a));
    if (str_suffix(suffix, "gz"))
        (void)archive_write_add_filter_gzip(a);
    if (str_suffix(suffix, "zst"))
        (void)archive_write_add_filter_zstd(a);
    if (archive_write_open_memory(a, out, BUILT_MAX, &n) == ARCHIVE_OK)
        for (unsigned i = 0; i < ENTRIES_MAX && in->n > 8; i++)
            write_entry(a, in);
    (void)archive_write_close(a);
    (void)archive_write_free(a);
    for (; in->n >= 3 && n > 0; in->p += 3, in->n -= 3)
        out[(size_t)(in->p[0] << 8 | in->p[1]) % n] ^= in->p[2];
    return n;
}

static bool
stays(const char *target, int depth)
{
    if (target[0] == '/' || target[0] == '\0')
        return false;
    for (const char *p = target; *p != '\0';) {
        size_t k = strcspn(p, "/");
        bool up = k == 2 && memcmp(p, "..", 2) == 0;
        depth += up ? -1 : k > 0 && !(k == 1 && *p == '.') ? 1 : 0;
        if (depth < 0)
            return false;
        p += k;
        p += *p == '/';
    }
    return true;
}

static void
look(int dir, int depth, int *files, int64_t *bytes)
{
    DIR *d = fdopendir(dir);
    ASSERT(d != NULL && depth <= ARTIFACT_DEPTH_MAX + 1);
    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        struct stat st;
        char target[4096];
        if (str_eq(de->d_name, ".") || str_eq(de->d_name, ".."))
            continue;
        ASSERT(fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
        ASSERT(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
        ASSERT((st.st_mode & (S_ISUID | S_ISGID)) == 0);
        *files += S_ISDIR(st.st_mode) ? 0 : 1;
        *bytes += S_ISREG(st.st_mode) ? st.st_size : 0;
        if (S_ISLNK(st.st_mode)) {
            ssize_t n = readlinkat(dirfd(d), de->d_name, target, sizeof(target) - 1);
            ASSERT(n >= 0);
            target[n] = '\0';
            ASSERT(stays(target, depth));
        }
        if (S_ISDIR(st.st_mode))
            look(openat(dirfd(d), de->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                 depth + 1, files, bytes);
    }
    (void)closedir(d);
}

static void
make_top(void)
{
    char path[] = "/tmp/fuzz-unpack-XXXXXX";
    ASSERT(mkdtemp(path) != NULL);
    top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(top >= 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const kinds[] = {"tar", "zip",     "tar.gz", "tar.zst",
                                        "gz",  "tar.bz2", "tar.xz", "zst"};
    static const struct archive_limits limits = {.files = FILES_MAX, .bytes = BYTES_MAX};
    auto_mem void *ctx = mem_ctx("fuzz");
    struct err e = ERR_INIT;
    if (n < 2)
        return 0;
    if (top < 0)
        make_top();
    const char *kind = kinds[data[0] % ARRAY_LEN(kinds)];
    struct input in = {data + 2, n - 2};
    uint8_t *built = mem_array(ctx, uint8_t, BUILT_MAX);
    bool as_it_is = (data[1] & 1) != 0 || artifact_single(kind);
    size_t k = as_it_is ? 0 : build(kind, &in, built);
    auto_fd int fd = memfd_create("archive", MFD_CLOEXEC);
    ASSERT(fd >= 0 && fd_write_full(fd, as_it_is ? in.p : built, as_it_is ? in.n : k) == 0);
    ASSERT(mkdirat(top, "tree", 0700) == 0);
    auto_fd int tree = openat(top, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = archive_unpack(fd, kind, tree, "file", &limits, &e);
    ASSERT((r == 0) == (e.code == 0));
    int files = 0, beside = 0;
    int64_t bytes = 0;
    look(openat(top, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, &files, &bytes);
    ASSERT(files <= FILES_MAX);
    ASSERT(r < 0 || bytes <= BYTES_MAX);
    ASSERT(dir_remove(top, "tree", NULL) == 0);
    look(openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, &beside, &bytes);
    ASSERT(beside == 0);
    return 0;
}
