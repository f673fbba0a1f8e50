/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch pad's mount namespace: as small as it can be, because every launch copies it, and
 * without anything of the host beyond the templates, because nothing is detached later.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "isolation/confine/raw.h"
#include "isolation/root/base.h"

enum { DETACH = 2 /* MNT_DETACH, whose header conflicts with linux/mount.h */ };

/* Moves the template DIR/`from` to `to` (absolute) in the new root. */
static int
base_enter_place(const void *ctx, const struct base *b, const char *from, const char *to, bool file,
                 struct err *e)
{
    const char *source = mem_printf(ctx, "%s/%s", b->dir, from);
    char *target = mem_printf(ctx, "%s/root%s", b->dir, to);
    char *last = strrchr(target, '/');
    int r = 0;
    if (file) {
        *last = '\0';
        r = dir_make(AT_FDCWD, target, 0755);
        *last = '/';
        if (r == 0)
            r = file_write_atomic(AT_FDCWD, target, "", 0, 0644);
    } else {
        r = dir_make(AT_FDCWD, target, 0755);
    }
    if (r < 0)
        return err_errno(e, -r, "make \"%s\"", target);
    long m = RAW(SYS_move_mount, AT_FDCWD, source, AT_FDCWD, target, 0);
    return m < 0 ? err_errno(e, (int)-m, "move the template \"%s\" to \"%s\"", source, target) : 0;
}

static int
place_all(const void *ctx, const struct base *b, struct err *e)
{
    int r = base_enter_place(ctx, b, "dev", "/dev", false, e);
    if (r == 0)
        r = base_enter_place(ctx, b, "sys", "/sys", false, e);
    for (size_t i = 0; i < b->n_roots && r == 0; i++) {
        const struct mounts_root *m = &b->roots[i];
        bool etc = strcmp(m->path, "/etc") == 0;
        if (m->kind == 'd' || m->kind == 'f')
            r = base_enter_place(ctx, b, etc ? "etc" : mem_printf(ctx, "root-of%s", m->path),
                                 m->path, m->kind == 'f', e);
    }
    return r;
}

int
base_enter(const struct base *b, struct err *e)
{
    auto_mem void *tmp = mem_ctx("base_enter");
    const char *root = mem_printf(tmp, "%s/root", b->dir);
    if (unshare(CLONE_NEWNS) < 0)
        return err_errno(e, errno, "make the launch pad's mount namespace (unshare)");
    mode_t mask = umask(022);
    long r = RAW(SYS_mount, "tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                 "mode=0755,size=64k");
    if (r < 0)
        return err_errno(e, (int)-r, "mount a tmpfs on \"%s\"", root);
    int k = dir_make(AT_FDCWD, mem_printf(tmp, "%s/" MOUNTS_EMPTY, root), 0555);
    if (k < 0)
        return err_errno(e, -k, "make \"%s/" MOUNTS_EMPTY "\"", root);
    k = place_all(tmp, b, e);
    (void)umask(mask);
    if (k < 0)
        return k;
    r = RAW(SYS_mount, NULL, root, NULL,
            MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    if (r == 0)
        r = RAW(SYS_chdir, root);
    if (r == 0)
        r = RAW(SYS_pivot_root, ".", ".");
    if (r == 0)
        r = RAW(SYS_umount2, ".", DETACH);
    if (r == 0)
        r = RAW(SYS_chdir, "/");
    return r < 0 ? err_errno(e, (int)-r, "enter the launch pad's root \"%s\"", root) : 0;
}
