/* SPDX-License-Identifier: Apache-2.0
 *
 * Putting a policy into place: the directories it names, and the compiled file. Run by the
 * supervisor, or by `paddock policy` before the warden is started.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"

/* An older directory of root's through which the agent's user cannot walk, as a data_dir that
 * another program made (0700): its group may, and no one else. */
static int
let_through(const struct policy *p, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    bool in = (st.st_mode & S_IXOTH) != 0 ||
              (st.st_gid == (gid_t)p->agent_gid && (st.st_mode & S_IXGRP) != 0) ||
              (st.st_uid == (uid_t)p->agent_uid && (st.st_mode & S_IXUSR) != 0);
    if (geteuid() != 0 || in || st.st_uid != 0 ||
        (st.st_gid != 0 && st.st_gid != (gid_t)p->agent_gid))
        return 0; /* the agent says what is to be changed */
    if (fchown(fd, 0, (gid_t)p->agent_gid) < 0 || fchmod(fd, (st.st_mode & 07777) | S_IXGRP) < 0)
        return -errno;
    return 0;
}

static int
make_dir(const struct policy *p, const char *path, mode_t mode, bool agents, struct err *e)
{
    int r = dir_make(AT_FDCWD, path, mode);
    if (r == -EROFS) /* most of all by the unit, which may write where its lines say */
        return err_set(e, -ERR_FORBIDDEN,
                       "make \"%s\": it is read-only here: give paddock-policy.service and "
                       "paddock.service a drop-in with [Service] ReadWritePaths=%s",
                       path, p->data_dir);
    if (r < 0)
        return err_errno(e, -r, "make \"%s\"", path);
    auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "open \"%s\"", path);
    if (geteuid() == 0 && agents && fchown(fd, (uid_t)p->agent_uid, (gid_t)p->agent_gid) < 0)
        return err_errno(e, errno, "give \"%s\" to the agent", path);
    if (agents && fchmod(fd, mode) < 0)
        return err_errno(e, errno, "chmod \"%s\"", path);
    r = agents ? 0 : let_through(p, fd);
    return r < 0 ? err_errno(e, -r, "let the agent through \"%s\"", path) : 0;
}

/* Makes the one file of the run directory that is the agent's. A file that is right already is not
 * written, nor given to its owner again: who waits for changes of either would hear of this. */
static int
make_bell(const struct policy *p, struct err *e)
{
    const char *path = mem_printf(p, "%s/" POLICY_RELOAD, p->run_dir);
    auto_fd int fd = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    uid_t uid = (uid_t)p->agent_uid;
    gid_t gid = (gid_t)p->agent_gid;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 ||
        (geteuid() == 0 && (st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0))
        return err_errno(e, errno, "make \"%s\"", path);
    return 0;
}

int
policy_install(struct policy *p, const char **path, struct err *e)
{
    const struct {
        const char *path;
        mode_t mode;
        bool agents;
    } dirs[] = {
        {p->data_dir, 0755, false},
        {p->run_dir, 0755, false},
        {mem_printf(p, "%s/server", p->data_dir), 0700, true},
        {mem_printf(p, "%s/client", p->data_dir), 0700, true},
        {mem_printf(p, "%s/audit", p->data_dir), 0700, true},
        {p->state_dir, 0700, true},
    };
    int r = policy_check(p, e);
    for (size_t i = 0; i < ARRAY_LEN(dirs) && r == 0; i++) {
        if (str_empty(dirs[i].path) || (i > 0 && str_eq(dirs[i].path, p->data_dir)))
            continue;
        r = make_dir(p, dirs[i].path, dirs[i].mode, dirs[i].agents, e);
    }
    if (r < 0)
        return r;
    r = make_bell(p, e);
    if (r < 0)
        return r;
    const char *file = mem_printf(p, "%s/" POLICY_FILE, p->run_dir);
    const char *made = mem_printf(p, "%s.new", file);
    r = policy_compile(p, made, e);
    if (r == 0 && geteuid() == 0 && chown(made, 0, (gid_t)p->agent_gid) < 0)
        r = err_errno(e, errno, "give the agent access to \"%s\"", made);
    if (r == 0 && rename(made, file) < 0) /* last: an agent that starts now can read either */
        r = err_errno(e, errno, "rename \"%s\" to \"%s\"", made, file);
    if (r == 0 && path != NULL)
        *path = file;
    return r;
}
