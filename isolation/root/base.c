/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's own mount namespace: base.h has what is in it. In this order: pruning it to what
 * launches need; the templates /dev, /sys and the empty directory; /etc, whose files are refreshed
 * in place while tasks have them mounted; the policy's bind roots; and base_make(), once per
 * warden.
 */
#include "isolation/root/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/host/mounts.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/raw.h"
#include "isolation/limits.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

enum {
    DETACH = 2, /* MNT_DETACH, whose header conflicts with linux/mount.h */
    REFRESH_NS = 1000 * 1000 * 1000,
};

static const char *const default_roots[] = {"/bin",    "/sbin", "/lib", "/lib32",
                                            "/lib64", "/libx32", "/usr", "/etc"};

/* Small files of /etc that programs read at start, by content: so a symbolic link into /run
 * (resolv.conf) or a rename on the host does no harm. Nothing here is readable by root only. */
static const char *const etc_files[] = {
    "ld.so.cache",
    "ld.so.conf",
    "passwd",
    "group",
    "nsswitch.conf",
    "resolv.conf",
    "hosts",
    "host.conf",
    "protocols",
    "services",
    "localtime",
    "timezone",
    "gai.conf",
    "networks",
    "rpc",
    "ethertypes",
    "mime.types",
    "magic",
    "os-release",
    "debian_version",
    "shells",
    "inputrc",
    "bash.bashrc",
    "profile",
    "locale.alias",
    "bindresvport.blacklist",
    "ssl/openssl.cnf",
};
/* Directories, bound. */
static const char *const etc_dirs[] = {"alternatives", "ssl/certs", "pki/tls/certs",
                                       "pki/ca-trust"};
/* Directories by pattern: language runtimes keep their configuration here. */
static const char *const etc_patterns[] = {"java-*-openjdk", "python3.*"};

struct base_file {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
    struct timespec ctime;
    bool present;
};

/* --- the namespace --- */
/* Is one of the two paths the other or above it? */
static bool
base_related(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), k = n < m ? n : m;
    if (k == 1)
        return true; /* "/" */
    return strncmp(a, b, k) == 0 && (n == m || (n < m ? b[k] : a[k]) == '/');
}

static bool
base_needed(const struct base_conf *c, const char *const *roots, size_t n_roots, const char *mount)
{
    static const char *const always[] = {"/proc", "/dev/shm"};
    if (strcmp(mount, "/") == 0 || base_related(mount, c->dir))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        if (strcmp(mount, always[i]) == 0 ||
            (base_related(mount, always[i]) && strlen(mount) < strlen(always[i])))
            return true;
    for (size_t i = 0; i < n_roots; i++)
        if (base_related(mount, roots[i]))
            return true;
    for (size_t i = 0; i < c->n_keep; i++)
        if (base_related(mount, c->keep[i]))
            return true;
    return false;
}

/* Detaches every mount that no launch needs, last first. Our namespace only: it is private. */
static int
base_prune(const void *ctx, const struct base_conf *c, const char *const *roots, size_t n_roots,
           struct err *e)
{
    char *text;
    int r = file_read(ctx, AT_FDCWD, MOUNTS_FILE, MOUNT_TABLE_MAX, &text, NULL);
    if (r < 0)
        return err_set(e, r, "cannot read %s: %s", MOUNTS_FILE, err_name(r));
    const char **points = NULL;
    size_t n = 0;
    for (struct mount_line m; mounts_next(&text, &m);) {
        if (n % 64 == 0)
            mem_resize(ctx, points, const char *, n + 64);
        points[n++] = m.point;
    }
    while (n > 0) {
        const char *p = points[--n];
        if (!base_needed(c, roots, n_roots, p))
            (void)RAW(SYS_umount2, p, DETACH); /* EINVAL: went with its parent */
    }
    return 0;
}

void
base_detach_below(const char *path)
{
    auto_mem void *ctx = mem_ctx("base_detach_below");
    char *text;
    if (file_read(ctx, AT_FDCWD, MOUNTS_FILE, MOUNT_TABLE_MAX, &text, NULL) < 0)
        return;
    const char *below = mem_printf(ctx, "%s/", path);
    for (struct mount_line m; mounts_next(&text, &m);)
        if (str_prefix(m.point, below))
            (void)RAW(SYS_umount2, m.point, DETACH | 8 /* UMOUNT_NOFOLLOW */);
}

/* --- templates --- */
/* A copy of the mount at `from` put on `to`, with attributes added in all of it. */
static int
clone_mount(const char *from, const char *to, bool deep, uint64_t set, struct err *e)
{
    unsigned rec = deep ? AT_RECURSIVE : 0;
    long tree = RAW(SYS_open_tree, AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | rec);
    if (tree < 0)
        return err_errno(e, (int)-tree, "cannot bind \"%s\" (open_tree)", from);
    auto_fd int fd = (int)tree;
    struct mount_attr attr = {.attr_set = set};
    long r = RAW(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | rec, &attr, sizeof(attr));
    if (r < 0)
        return err_errno(e, (int)-r, "cannot restrict the bind of \"%s\" (mount_setattr)", from);
    r = RAW(SYS_move_mount, fd, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH);
    if (r < 0)
        return err_errno(e, (int)-r, "cannot mount \"%s\" on \"%s\"", from, to);
    return 0;
}

static int
make_dir(const char *path, mode_t mode, struct err *e)
{
    int r = dir_make(AT_FDCWD, path, mode);
    if (r < 0)
        return err_set(e, r, "cannot make directory \"%s\": %s", path, err_name(r));
    return 0;
}

static const char *
base_sub(const void *ctx, const struct base *b, const char *name)
{
    return mem_printf(ctx, "%s/%s", b->dir, name);
}

static int
make_node(const char *path, unsigned major, unsigned minor, struct err *e)
{
    if (mknod(path, S_IFCHR | 0666, makedev(major, minor)) < 0 || chmod(path, 0666) < 0)
        return err_errno(e, errno, "cannot make device \"%s\"", path);
    return 0;
}

static int
make_dev(const void *ctx, const struct base *b, struct err *e)
{
    static const struct {
        const char *name;
        unsigned major, minor;
    } nodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                 {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
    static const char *const links[][2] = {{"fd", "/proc/self/fd"},
                                           {"stdin", "/proc/self/fd/0"},
                                           {"stdout", "/proc/self/fd/1"},
                                           {"stderr", "/proc/self/fd/2"},
                                           {"ptmx", "pts/ptmx"}};
    const char *src = base_sub(ctx, b, "src/dev");
    int r = make_dir(mem_printf(ctx, "%s/pts", src), 0755, e);
    if (r == 0)
        r = make_dir(mem_printf(ctx, "%s/shm", src), 0755, e);
    for (size_t i = 0; i < ARRAY_LEN(nodes) && r == 0; i++)
        r = make_node(mem_printf(ctx, "%s/%s", src, nodes[i].name), nodes[i].major, nodes[i].minor,
                      e);
    for (size_t i = 0; i < ARRAY_LEN(links) && r == 0; i++)
        if (symlink(links[i][1], mem_printf(ctx, "%s/%s", src, links[i][0])) < 0)
            r = err_errno(e, errno, "cannot make \"%s/%s\"", src, links[i][0]);
    const char *dev = base_sub(ctx, b, "dev");
    if (r == 0)
        r = make_dir(dev, 0755, e);
    if (r == 0)
        r = clone_mount(src, dev, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
                        e);
    return r;
}

/* A node of our own, for all users: who gets it is told by the policy, not by the host's groups. It
 * goes on a file of the template that nobody may open. */
static int
make_kvm(const void *ctx, struct base *b)
{
    struct stat st;
    auto_fd int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC); /* which may load the module */
    const char *node = base_sub(ctx, b, "kvm");
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISCHR(st.st_mode))
        return -ENODEV;
    b->kvm_number = st.st_rdev;
    if (mknod(node, S_IFCHR | 0666, st.st_rdev) < 0 || chmod(node, 0666) < 0)
        return -errno;
    return file_write_atomic(AT_FDCWD, base_sub(ctx, b, "src/dev/kvm"), "", 0, 0);
}

/* Makes a node of a device that the operator names, where there is such a device, and a file for it
 * in the template. */
static int
make_device(const void *ctx, const struct base *b, size_t i, const char *path,
            struct base_device *ret)
{
    struct stat st;
    const char *node = mem_printf(ctx, "%s/dev-%zu", b->dir, i);
    const char *cover = base_sub(ctx, b, mem_printf(ctx, "src%s", path));
    char *dir = mem_strdup(ctx, cover);

    if (stat(path, &st) < 0 || (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)))
        return -ENODEV;
    *strrchr(dir, '/') = '\0';
    if (make_dir(dir, 0755, NULL) < 0 ||
        mknod(node, (st.st_mode & S_IFMT) | 0666, st.st_rdev) < 0 || chmod(node, 0666) < 0 ||
        file_write_atomic(AT_FDCWD, cover, "", 0, 0) < 0)
        return -EIO;
    *ret =
        (struct base_device){.path = path, .number = st.st_rdev, .block = S_ISBLK(st.st_mode) != 0};
    return 0;
}

static int
make_empty(const void *ctx, const struct base *b, struct err *e)
{
    const char *src = base_sub(ctx, b, "src/empty"), *to = base_sub(ctx, b, "empty");
    int r = make_dir(src, 0555, e);
    if (r == 0)
        r = make_dir(to, 0755, e);
    if (r == 0)
        r = clone_mount(
            src, to, false,
            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
    return r;
}

/* Covers a directory, if there is one. */
static int
mask_dir(const char *path, const char *empty, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    return clone_mount(empty, path, false,
                       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                       e);
}

/* A new sysfs has nothing mounted in it: debugfs, tracefs, securityfs, bpf and cgroup are absent by
 * construction; what remains to hide are the firmware tables, power meters
 * and the throttling of each processor. */
static int
make_sys(const void *ctx, const struct base *b, struct err *e)
{
    static const char *const masks[] = {"firmware", "devices/virtual/powercap"};
    const char *sys = base_sub(ctx, b, "sys"), *empty = base_sub(ctx, b, "empty");
    int r = make_dir(sys, 0755, e);
    if (r < 0)
        return r;
    long m =
        RAW(SYS_mount, "sysfs", sys, "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    if (m < 0)
        return err_errno(e, (int)-m, "cannot mount sysfs on \"%s\"", sys);
    for (size_t i = 0; i < ARRAY_LEN(masks) && r == 0; i++)
        r = mask_dir(mem_printf(ctx, "%s/%s", sys, masks[i]), empty, e);
    for (unsigned i = 0; i < CGROUP_CPUS_MAX && r == 0; i++)
        r = mask_dir(mem_printf(ctx, "%s/devices/system/cpu/cpu%u/thermal_throttle", sys, i), empty,
                     e);
    return r;
}

/* --- /etc --- */

static bool
same_file(const struct base_file *f, const struct stat *st)
{
    return f->present && f->dev == st->st_dev && f->ino == st->st_ino && f->size == st->st_size &&
           memcmp(&f->mtime, &st->st_mtim, sizeof(f->mtime)) == 0 &&
           memcmp(&f->ctime, &st->st_ctim, sizeof(f->ctime)) == 0;
}

/* In place: a task's own file may be mounted over this file, and would go with a file that is
 * replaced. So the file is always there. A reader finds the old text or the new one, or for a
 * moment the new one with the end of the old. */
static int
base_overwrite(const char *path, const char *text, size_t len)
{
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    int r = fd < 0 ? -errno : fd_pwrite_full(fd, text, len, 0);
    return r == 0 && ftruncate(fd, (off_t)len) < 0 ? -errno : r;
}

static int
refresh_file(const void *ctx, const struct base *b, size_t i, struct err *e)
{
    bool covered = str_eq(etc_files[i], "resolv.conf");
    struct base_file *f = &b->files[i];
    const char *from = mem_printf(ctx, "/etc/%s", etc_files[i]);
    const char *to = mem_printf(ctx, "%s/src/etc/%s", b->dir, etc_files[i]);
    struct stat st;
    bool usable = stat(from, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= BASE_FILE_MAX &&
                  (st.st_mode & S_IROTH);
    if (!usable) {
        if (covered)
            (void)base_overwrite(to, "", 0);
        else if (f->present)
            (void)unlink(to);
        f->present = false;
        return 0;
    }
    if (same_file(f, &st))
        return 0;
    char *text;
    size_t len;
    int r = file_read(ctx, AT_FDCWD, from, BASE_FILE_MAX, &text, &len);
    if (r < 0)
        return 0; /* went away or grew between the two calls: the next launch looks again */
    r = covered ? base_overwrite(to, text, len) : file_write_atomic(AT_FDCWD, to, text, len, 0644);
    if (r < 0)
        return err_set(e, r, "cannot write \"%s\": %s", to, err_name(r));
    *f = (struct base_file){.dev = st.st_dev,
                            .ino = st.st_ino,
                            .size = st.st_size,
                            .mtime = st.st_mtim,
                            .ctime = st.st_ctim,
                            .present = true};
    return 0;
}

int
base_refresh(struct base *b, int64_t now_ns, struct err *e)
{
    if (b->refreshed_ns != 0 && now_ns - b->refreshed_ns < REFRESH_NS)
        return 0;
    b->refreshed_ns = now_ns;
    auto_mem void *tmp = mem_ctx("base_refresh");
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(etc_files) && r == 0; i++)
        r = refresh_file(tmp, b, i, e);
    b->proc_absent = 0;
    const char *path;
    for (unsigned i = 0; (path = mounts_proc_path(i)) != NULL; i++)
        if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
            b->proc_absent |= 1u << i;
    return r;
}

static int
bind_etc(const void *ctx, const struct base *b, const char *name, struct err *e)
{
    struct stat st;
    const char *from = mem_printf(ctx, "/etc/%s", name);
    if (stat(from, &st) < 0)
        return 0;
    const char *src = mem_printf(ctx, "%s/src/etc/%s", b->dir, name);
    const char *to = mem_printf(ctx, "%s/etc/%s", b->dir, name);
    int r = 0;
    if (S_ISDIR(st.st_mode))
        r = make_dir(src, 0755, e);
    else
        r = file_write_atomic(AT_FDCWD, src, "", 0, 0644);
    if (r == 0)
        r = clone_mount(from, to, true, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                        e);
    return r;
}

static int
bind_etc_dirs(const void *ctx, const struct base *b, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(etc_dirs) && r == 0; i++)
        r = bind_etc(ctx, b, etc_dirs[i], e);
    auto_fd int fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = r == 0 && fd >= 0 ? fdopendir(TAKE_FD(fd)) : NULL;
    for (struct dirent *d; r == 0 && dir && (d = readdir(dir)) != NULL;)
        for (size_t k = 0; k < ARRAY_LEN(etc_patterns) && r == 0; k++)
            if (str_glob(etc_patterns[k], d->d_name))
                r = bind_etc(ctx, b, d->d_name, e);
    if (dir)
        (void)closedir(dir);
    return r;
}

static int
make_etc(const void *ctx, struct base *b, const char *const *roots, size_t n_roots, struct err *e)
{
    const char *src = base_sub(ctx, b, "src/etc"), *etc = base_sub(ctx, b, "etc");
    int r = make_dir(mem_printf(ctx, "%s/ssl", src), 0755, e);
    if (r == 0)
        r = make_dir(etc, 0755, e);
    if (r == 0)
        r = base_refresh(b, 1, e);
    if (r == 0 && symlink("../proc/self/mounts", mem_printf(ctx, "%s/mtab", src)) < 0)
        r = err_errno(e, errno, "cannot make \"%s/mtab\"", src);
    if (r == 0)
        r = clone_mount(
            src, etc, false,
            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
    if (r == 0)
        r = bind_etc_dirs(ctx, b, e);
    for (size_t i = 0; i < n_roots && r == 0; i++)
        if (str_prefix(roots[i], "/etc/"))
            r = bind_etc(ctx, b, roots[i] + 5, e);
    return r;
}

/* --- the policy's bind roots --- */
static int
make_root(const void *ctx, const struct base *b, const char *path, struct mounts_root *ret,
          struct err *e)
{
    struct stat st;
    *ret = (struct mounts_root){.path = mem_strdup(ctx, path), .kind = '-', .link = NULL};
    if (path[0] != '/' || path[1] == 0 || strstr(path, "//") || strstr(path, "/../") ||
        str_suffix(path, "/"))
        return err_set(e, -ERR_INVALID, "bind root \"%s\" is not a plain absolute path", path);
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_errno(e, errno, "cannot look at bind root \"%s\"", path);
    if (S_ISLNK(st.st_mode)) {
        char text[MOUNTS_PATH_MAX];
        ssize_t n = readlink(path, text, sizeof(text) - 1);
        if (n <= 0)
            return err_errno(e, errno, "cannot read link \"%s\"", path);
        ret->link = mem_strndup(ctx, text, (size_t)n);
        ret->kind = 'l';
        return 0;
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return err_set(e, -ERR_INVALID, "bind root \"%s\" is neither a directory nor a file", path);
    ret->kind = S_ISDIR(st.st_mode) ? 'd' : 'f';
    if (strcmp(path, "/etc") == 0)
        return 0;
    const char *to = mem_printf(ctx, "%s/root-of%s", b->dir, path);
    int r = 0;
    if (ret->kind == 'd') {
        r = make_dir(to, 0755, e);
    } else {
        char *dir = mem_strdup(ctx, to);
        *strrchr(dir, '/') = 0;
        r = make_dir(dir, 0755, e);
        if (r == 0)
            r = file_write_atomic(AT_FDCWD, to, "", 0, 0644);
    }
    if (r == 0)
        r = clone_mount(path, to, true, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                        e);
    return r;
}

static int
make_roots(const void *ctx, struct base *b, const char *const *roots, size_t n, struct err *e)
{
    b->roots = mem_array(ctx, struct mounts_root, n);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (str_prefix(roots[i], "/etc/"))
            continue; /* in the /etc template */
        ASSERT(b->n_roots < n);
        r = make_root(ctx, b, roots[i], &b->roots[b->n_roots], e);
        if (r == 0)
            b->n_roots++;
    }
    return r;
}

static int
enter_namespace(const void *ctx, const struct base_conf *c, const char *const *roots, size_t n,
                struct err *e)
{
    if (unshare(CLONE_NEWNS) < 0)
        return err_errno(e, errno, "cannot make the warden's mount namespace (unshare)");
    long r = RAW(SYS_mount, "none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    if (r < 0)
        return err_errno(e, (int)-r, "cannot make the mounts of the warden private");
    int k = base_prune(ctx, c, roots, n, e);
    if (k < 0)
        return k;
    r = RAW(SYS_mount, "tmpfs", c->dir, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0711,size=32m");
    if (r < 0)
        return err_errno(e, (int)-r, "cannot mount a tmpfs on \"%s\"", c->dir);
    return 0;
}

int
base_make(const void *ctx, const struct base_conf *conf, struct base *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("base_make");
    const char *const *roots = conf->bind_roots ? conf->bind_roots : default_roots;
    size_t n = conf->bind_roots ? conf->n_bind_roots : ARRAY_LEN(default_roots);
    int r = make_dir(conf->dir, 0711, e);
    if (r < 0)
        return r;
    char real[PATH_MAX]; /* tasks' mounts follow no symbolic link */
    if (realpath(conf->dir, real) == NULL)
        return err_errno(e, errno, "cannot resolve \"%s\"", conf->dir);
    struct base b = {.dir = mem_strdup(ctx, real), .host_ns = -1};
    struct base_conf c = *conf;
    c.dir = b.dir;
    auto_fd int host = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (host < 0)
        return err_errno(e, errno, "cannot open /proc/self/ns/mnt");
    b.files = mem_array(ctx, struct base_file, ARRAY_LEN(etc_files));
    mode_t mask = umask(022);
    r = enter_namespace(tmp, &c, roots, n, e);
    if (r == 0)
        r = make_dir(base_sub(tmp, &b, "root"), 0755, e);
    if (r == 0)
        r = make_empty(tmp, &b, e);
    if (r == 0)
        r = make_dev(tmp, &b, e);
    b.kvm = r == 0 && c.kvm ? make_kvm(tmp, &b) : -EPERM;
    b.devices = mem_array(ctx, struct base_device, c.n_devices + 1);
    for (; r == 0 && b.n_devices < c.n_devices; b.n_devices++)
        (void)make_device(tmp, &b, b.n_devices, mem_strdup(ctx, c.devices[b.n_devices]),
                          &b.devices[b.n_devices]);
    if (r == 0)
        r = make_sys(tmp, &b, e);
    if (r == 0)
        r = make_etc(tmp, &b, roots, n, e);
    if (r == 0)
        r = make_roots(ctx, &b, roots, n, e);
    (void)umask(mask);
    if (r < 0)
        return r;
    b.host_ns = TAKE_FD(host);
    *ret = b;
    return 0;
}
