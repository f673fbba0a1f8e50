/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/artifact/artifact.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fetch/place.h"

enum { BLOCK = 256 * 1024 };

struct unpacking {
    struct archive *a;
    const struct archive_limits *limits;
    const char *kind; /* "tar" */
    int dir;
    const char *single; /* the name of the only file; NULL: entries have names */
    int64_t files, bytes;
    uint8_t *block;
};

static int
archive_unreadable(struct unpacking *u, struct err *e)
{
    const char *why = archive_error_string(u->a);
    return err_set(e, -ERR_CORRUPT, "the %s archive cannot be read: %.200s", u->kind,
                   str_or(why, "it is damaged"));
}

static int
write_file(struct unpacking *u, struct archive_entry *entry, int fd, struct err *e)
{
    for (;;) {
        la_ssize_t n = archive_read_data(u->a, u->block, BLOCK);
        if (n < 0)
            return archive_unreadable(u, e);
        if (n == 0)
            break;
        u->bytes += n;
        if (u->bytes > u->limits->bytes)
            return err_set(e, -ERR_LIMIT,
                           "%s archive larger than limit: %lld "
                           "(decompression_size_limit)",
                           u->kind, (long long)u->limits->bytes);
        int r = fd_write_full(fd, u->block, (size_t)n);
        if (r < 0)
            return err_errno(e, -r, "write what is unpacked");
    }
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT}, {archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)}};
    if (archive_entry_mtime_is_set(entry))
        (void)futimens(fd, times);
    return 0;
}

/* A link whose target is below the archive's top, as text; what it is put together with there does
 * not matter: nobody follows links on the way to a file. */
static bool
link_stays(const char *path, const char *target)
{
    int depth = 0;
    if (target[0] == '/' || target[0] == '\0')
        return false;
    for (const char *p = path; (p = strchr(p, '/')) != NULL; p++)
        depth++;
    for (const char *p = target; *p != '\0';) {
        size_t n = strcspn(p, "/");
        if (n == 2 && memcmp(p, "..", 2) == 0)
            depth--;
        else if (n > 0 && !(n == 1 && *p == '.'))
            depth++;
        if (depth < 0)
            return false;
        p += n;
        p += *p == '/';
    }
    return true;
}

static int
make_symlink(const char *path, const char *target, int at, const char *name, struct err *e)
{
    if (!link_stays(path, target))
        return err_set(e, -ERR_INVALID, "the link \"%.200s\" leads out of the archive: \"%.200s\"",
                       path, target);
    (void)unlinkat(at, name, 0);
    return symlinkat(target, at, name) < 0 ? err_errno(e, errno, "make the link \"%.200s\"", path)
                                           : 0;
}

static int
make_hardlink(struct unpacking *u, const char *path, const char *target, int at, const char *name,
              struct err *e)
{
    auto_mem void *ctx = mem_ctx("link");
    const char *to = NULL, *base = NULL;
    struct stat st;
    int r = place_name(ctx, target, &to, e);
    if (r < 0)
        return r;
    auto_fd int dir = place_parents(u->dir, to, false, &base, e);
    if (dir < 0)
        return dir;
    if (fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, -ERR_INVALID, "the link \"%.200s\" is to no file of the archive", path);
    (void)unlinkat(at, name, 0);
    return linkat(dir, base, at, name, 0) < 0
               ? err_errno(e, errno, "make the link \"%.200s\"", path)
               : 0;
}

static int
make_file(struct unpacking *u, struct archive_entry *entry, const char *path, int at,
          const char *name, struct err *e)
{
    (void)unlinkat(at, name, 0);
    auto_fd int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "make \"%.200s\"", path);
    int r = write_file(u, entry, fd, e);
    mode_t mode = u->single != NULL ? 0644 : archive_entry_perm(entry) & 0777;
    if (r == 0 && fchmod(fd, mode) < 0)
        r = err_errno(e, errno, "make \"%.200s\"", path);
    return r;
}

static int
make_entry(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
    auto_mem void *ctx = mem_ctx("entry");
    const char *path = NULL, *name = NULL;
    const char *given = u->single != NULL ? u->single : archive_entry_pathname(entry);
    if (given == NULL)
        return err_set(e, -ERR_INVALID, "an entry of the %s archive has no name", u->kind);
    int r = place_name(ctx, given, &path, e);
    if (r < 0 || path[0] == '\0')
        return r;
    const char *link = archive_entry_hardlink(entry);
    unsigned type = archive_entry_filetype(entry);
    if (link == NULL && u->single == NULL && type == AE_IFDIR) {
        auto_fd int dir = place_directory(u->dir, path, e);
        return dir < 0 ? dir : 0;
    }
    if (link == NULL && u->single == NULL && type != AE_IFREG && type != AE_IFLNK)
        return err_set(e, -ERR_INVALID, "entry \"%.200s\" is no file, directory or link", path);
    auto_fd int at = place_parents(u->dir, path, true, &name, e);
    if (at < 0)
        return at;
    if (link != NULL)
        return make_hardlink(u, path, link, at, name, e);
    if (u->single == NULL && type == AE_IFLNK)
        return make_symlink(path, str_or(archive_entry_symlink(entry), ""), at, name, e);
    return make_file(u, entry, path, at, name, e);
}

static int
unpack_all(struct unpacking *u, struct err *e)
{
    for (;;) {
        struct archive_entry *entry = NULL;
        int r = archive_read_next_header(u->a, &entry);
        if (r == ARCHIVE_EOF)
            break;
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
            return archive_unreadable(u, e);
        if (++u->files > u->limits->files)
            return err_set(e, -ERR_LIMIT,
                           "%s archive contains too many files: %lld > %lld "
                           "(decompression_file_count_limit)",
                           u->kind, (long long)u->files, (long long)u->limits->files);
        r = make_entry(u, entry, e);
        if (r < 0)
            return r;
    }
    return u->files == 0 ? err_set(e, -ERR_INVALID, "empty archive") : 0;
}

/* These kinds alone: each further format is one more parser of a stranger's bytes. */
static int
archive_choose(struct archive *a, const char *suffix)
{
    const char *last = strrchr(suffix, '.');
    last = last != NULL ? last + 1 : suffix;
    int r = ARCHIVE_OK;
    if (str_eq(suffix, "zip"))
        return archive_read_support_format_zip_seekable(a);
    if (str_suffix(last, "gz"))
        r = archive_read_support_filter_gzip(a);
    else if (str_suffix(last, "bz2"))
        r = archive_read_support_filter_bzip2(a);
    else if (str_suffix(last, "xz"))
        r = archive_read_support_filter_xz(a);
    else if (str_suffix(last, "zst"))
        r = archive_read_support_filter_zstd(a);
    if (r != ARCHIVE_OK) /* an outer program would do it, which there is not here */
        return r;
    return artifact_single(suffix) ? archive_read_support_format_raw(a)
                                   : archive_read_support_format_tar(a);
}

int
archive_unpack(int fd, const char *suffix, int dir, const char *name,
               const struct archive_limits *l, struct err *e)
{
    auto_mem void *ctx = mem_ctx("unpack");
    struct unpacking u = {.limits = l, .dir = dir, .kind = suffix};
    if (str_prefix(suffix, "t"))
        u.kind = "tar";
    u.single = artifact_single(suffix) ? name : NULL;
    u.block = mem_array(ctx, uint8_t, BLOCK);
    u.a = archive_read_new();
    if (u.a == NULL || lseek(fd, 0, SEEK_SET) < 0)
        return err_set(e, -ERR_INTERNAL, "libarchive does not start");
    int r = archive_choose(u.a, suffix) != ARCHIVE_OK ||
                    archive_read_open_fd(u.a, fd, BLOCK) != ARCHIVE_OK
                ? archive_unreadable(&u, e)
                : unpack_all(&u, e);
    (void)archive_read_free(u.a);
    return r;
}
