/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/users.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

enum { LINE_MAX_BYTES = 64 * 1024 };

/* Groups whose members can become root: refused wherever root is. */
static const char *const rootlike[] = {"root", "disk", "docker", "kmem", "shadow", "lxd", "libvirt"};

/* A name as useradd makes them: so nothing that starts with a sign or a space or holds a colon. */
static bool
is_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    size_t n = strlen(s);
    if (n > USERS_NAME_MAX)
        return false;
    for (size_t i = 1; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && strchr("_.-", s[i]) == NULL &&
            !(s[i] == '$' && i == n - 1))
            return false;
    return true;
}

/* Plain decimal without sign, space or leading zero, and not one of the two ids that mean "unchanged". */
static bool
is_id(const char *s, uint32_t *ret)
{
    size_t n = strlen(s);
    if (n == 0 || n > 10 || (n > 1 && s[0] == '0'))
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(s[i] - '0');
    }
    if (v >= UINT32_MAX || v == UINT16_MAX)
        return false;
    *ret = (uint32_t)v;
    return true;
}

struct lookup {
    const char *passwd;
    const char *group;
    char *line; /* LINE_MAX_BYTES */
};

/* The first account with this name (or, without one, this uid): 1 found, 0 not, or -errno. */
static int
find_account(const struct lookup *l, const char *name, uint32_t uid, struct user *ret)
{
    FILE *f = fopen(l->passwd, "re");
    if (f == NULL)
        return -errno;
    struct passwd pw, *got = NULL;
    int r = 0;
    while (r == 0 && fgetpwent_r(f, &pw, l->line, LINE_MAX_BYTES, &got) == 0) {
        if (name != NULL ? strcmp(pw.pw_name, name) != 0 : pw.pw_uid != uid)
            continue;
        if (!str_copy(ret->name, sizeof(ret->name), pw.pw_name) ||
            !str_copy(ret->home, sizeof(ret->home), pw.pw_dir)) {
            r = -ENAMETOOLONG;
            break;
        }
        ret->uid = pw.pw_uid;
        ret->gid = pw.pw_gid;
        r = 1;
    }
    (void)fclose(f);
    return r;
}

static bool
has_member(const struct group *gr, const char *name)
{
    for (char **m = gr->gr_mem; *m != NULL; m++)
        if (strcmp(*m, name) == 0)
            return true;
    return false;
}

static bool
is_rootlike(const struct group *gr)
{
    for (size_t i = 0; i < ARRAY_LEN(rootlike); i++)
        if (gr->gr_gid == 0 || strcmp(gr->gr_name, rootlike[i]) == 0)
            return true;
    return false;
}

static int
find_groups(const struct lookup *l, struct user *u, bool no_rootlike, struct err *e)
{
    u->n_groups = 0;
    u->groups[u->n_groups++] = u->gid;
    FILE *f = fopen(l->group, "re");
    if (f == NULL)
        return err_errno(e, errno, "cannot read \"%s\"", l->group);
    struct group gr, *got = NULL;
    int r = 0;
    while (r == 0 && fgetgrent_r(f, &gr, l->line, LINE_MAX_BYTES, &got) == 0) {
        if (gr.gr_gid != u->gid && !has_member(&gr, u->name))
            continue;
        if (no_rootlike && is_rootlike(&gr))
            r = err_set(e, -ERR_POLICY,
                        "user \"%s\" is in group \"%.64s\", which is as good as root, and root is "
                        "denied by policy",
                        u->name, gr.gr_name);
        else if (gr.gr_gid == u->gid)
            continue;
        else if (u->n_groups == USERS_GROUPS_MAX)
            r = err_set(e, -ERR_LIMIT, "user \"%s\" is in more than %d groups", u->name,
                        USERS_GROUPS_MAX);
        else
            u->groups[u->n_groups++] = gr.gr_gid;
    }
    (void)fclose(f);
    return r;
}

/* Is `u` one of the denied, by uid whatever the name? Also tells whether uid 0 is among them. */
static int
check_denied(const struct lookup *l, const char *const *denied, size_t n, const struct user *u,
             bool *root_denied, struct err *e)
{
    *root_denied = false;
    for (size_t i = 0; i < n; i++) {
        struct user d = {0};
        uint32_t uid = 0;
        bool known = true;
        if (is_id(denied[i], &uid))
            d.uid = uid;
        else if (strcmp(denied[i], "root") == 0)
            d.uid = 0;
        else
            known = find_account(l, denied[i], 0, &d) == 1;
        if (!known)
            continue; /* nobody by that name here */
        if (d.uid == 0)
            *root_denied = true;
        if (d.uid == u->uid)
            return err_set(e, -ERR_POLICY, "user \"%s\" (uid %u) is denied by policy (\"%.64s\")",
                           u->name, (unsigned)u->uid, denied[i]);
    }
    return 0;
}

int
users_resolve(const char *spec, const char *const *denied, size_t n_denied,
              const struct users_files *files, struct user *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("users_resolve");
    struct lookup l = {
        .passwd = files ? files->passwd : "/etc/passwd",
        .group = files ? files->group : "/etc/group",
        .line = mem_array(tmp, char, LINE_MAX_BYTES),
    };
    uint32_t uid = 0;
    bool by_id = is_id(spec, &uid);
    if (!by_id && !is_name(spec))
        return err_set(e, -ERR_INVALID,
                       "user \"%.64s\" is neither a user name nor a uid in plain decimal", spec);
    struct user u = {0};
    int r = find_account(&l, by_id ? NULL : spec, uid, &u);
    if (r < 0)
        return err_errno(e, -r, "cannot look up user \"%s\" in \"%s\"", spec, l.passwd);
    if (r == 0)
        return err_set(e, -ERR_NOT_FOUND, "user \"%s\" does not exist on this machine (\"%s\")", spec,
                       l.passwd);
    bool root_denied;
    r = check_denied(&l, denied, n_denied, &u, &root_denied, e);
    if (r == 0 && root_denied && u.gid == 0)
        r = err_set(e, -ERR_POLICY, "user \"%s\" has gid 0, and root is denied by policy", u.name);
    if (r == 0)
        r = find_groups(&l, &u, root_denied, e);
    if (r == 0)
        *ret = u;
    return r;
}
