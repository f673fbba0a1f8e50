/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/confine/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/landlock.h"
#include "isolation/confine/raw.h"
#include "isolation/confine/seccomp.h"

enum {
    READS = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    NEVER =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK,
    /* all that a rule for something that is no directory may name */
    OF_FILES = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_FS_TRUNCATE |
               LANDLOCK_FS_IOCTL | LANDLOCK_ACCESS_FS_EXECUTE,
};

static int
no_new_privs(struct err *e)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? err_errno(e, errno, "set no_new_privs") : 0;
}

static int
add_path(int rules, const struct sandbox_path *p, uint64_t handled, struct err *e)
{
    struct stat st;
    auto_fd int own = p->path != NULL ? open(p->path, O_PATH | O_CLOEXEC) : -1;
    int fd = p->path != NULL ? own : p->fd;
    if (fd < 0 || fstat(fd, &st) < 0)
        return errno == ENOENT || errno == EACCES || errno == ENOTDIR
                   ? 0
                   : err_errno(e, errno, "open \"%s\"", str_or(p->path, "a directory"));
    uint64_t allowed = p->write     ? ~(uint64_t)NEVER
                       : p->execute ? READS | LANDLOCK_ACCESS_FS_EXECUTE
                                    : READS;
    struct landlock_path_beneath_attr a = {.allowed_access = handled & allowed, .parent_fd = fd};
    if (!S_ISDIR(st.st_mode))
        a.allowed_access &= OF_FILES;
    long r = RAW(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0);
    return r < 0 ? err_errno(e, (int)-r, "allow \"%s\"", str_or(p->path, "a directory")) : 0;
}

int
sandbox_files(const struct sandbox_path *v, size_t n, struct err *e)
{
    int r = no_new_privs(e);
    if (r < 0)
        return r;
    long abi = RAW(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < LANDLOCK_ABI_REFER)
        return err_set(e, -ERR_UNSUPPORTED, "Landlock is off, or older than version %d",
                       LANDLOCK_ABI_REFER);
    struct landlock_rules all = {.fs = landlock_fs((uint32_t)abi)};
    /* signals: to whom is in the same box, which is nobody; sockets stay, a service manager's may
     * be abstract */
    all.scoped = abi >= LANDLOCK_ABI_SCOPE ? LANDLOCK_SCOPE_SIGNALS : 0;
    auto_fd int rules =
        (int)RAW(SYS_landlock_create_ruleset, &all, landlock_size((uint32_t)abi), 0);
    if (rules < 0)
        return err_errno(e, -rules, "make Landlock rules");
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_path(rules, &v[i], all.fs, e);
    if (r < 0)
        return r;
    long done = RAW(SYS_landlock_restrict_self, rules, 0);
    return done < 0 ? err_errno(e, (int)-done, "restrict ourselves by Landlock") : 0;
}

/* The number is the same on every architecture, so none is looked at. */
int
sandbox_rings(struct err *e)
{
    struct sock_filter v[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = ARRAY_LEN(v), .filter = v};
    int r = no_new_privs(e);
    if (r < 0)
        return r;
    long done = RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
    return done < 0 ? err_errno(e, (int)-done, "load the filter of io_uring") : 0;
}

int
sandbox_calls(struct err *e)
{
    auto_mem void *ctx = mem_ctx("sandbox");
    struct seccomp_program p;
    int r = no_new_privs(e);
    if (r == 0)
        r = seccomp_compile_agent(ctx, &p, e);
    if (r < 0)
        return r;
    struct sock_fprog prog = {.len = p.n, .filter = p.insns};
    long done = RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
    if (done > 0) /* the id of a thread that would not take it */
        return err_set(e, -ERR_CONFLICT, "thread %ld has a filter of its own", done);
    return done < 0 ? err_errno(e, (int)-done, "load the system call filter") : 0;
}
