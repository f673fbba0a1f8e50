/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/confine/users.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/confine.h"
#include "isolation/limits.h"

/* Groups whose members can become root: refused wherever root is. */
static const char *const rootlike[] = {"root",   "disk", "docker", "kmem",
                                       "shadow", "lxd",  "libvirt"};

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

/* Decimal digits only, within 32 bits. */
static bool
is_number(const char *s, uint32_t *ret)
{
    size_t n = strlen(s);
    if (n == 0 || n > 10)
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(s[i] - '0');
    }
    if (v > UINT32_MAX)
        return false;
    *ret = (uint32_t)v;
    return true;
}

/* Reads an id as a job may spell it: no leading zero, and not one of the two ids that mean
 * "unchanged". */
static bool
is_id(const char *s, uint32_t *ret)
{
    uint32_t v;
    if (!is_number(s, &v) || (s[0] == '0' && s[1] != 0) || v == UINT32_MAX || v == CONFINE_SHIM_UID)
        return false;
    *ret = v;
    return true;
}

/* The two files, read once per question: no stdio, no NSS. */
struct lookup {
    const char *passwd_path;
    const char *group_path;
    char *passwd;
    char *group;
};

enum { PASSWD_FIELDS = 7, GROUP_FIELDS = 4 };

/* Cuts the line at *p into `n` fields at colons and moves *p to the next line. False for a line
 * that has another number of fields. The text is left as it was: fields are copied into `buf`. */
static bool
next_line(const char **p, char *buf, size_t size, char **fields, int n)
{
    size_t len = strcspn(*p, "\n");
    bool fits = len < size;
    if (fits) {
        memcpy(buf, *p, len);
        buf[len] = 0;
    }
    *p += len;
    *p += **p == '\n';
    int k = 0;
    char *s = buf;
    while (fits && s != NULL) {
        char *field = strsep(&s, ":");
        if (k < n)
            fields[k] = field;
        k++;
    }
    return k == n;
}

/* The first account with this name (or, without one, this uid): 1 found, 0 not, or -errno. */
static int
find_account(const struct lookup *l, const char *name, uint32_t uid, struct user *ret)
{
    char buf[USERS_LINE_MAX];
    char *f[PASSWD_FIELDS];
    for (const char *p = l->passwd; *p != 0;) {
        uint32_t u, g;
        if (!next_line(&p, buf, sizeof(buf), f, PASSWD_FIELDS) || !is_number(f[2], &u) ||
            !is_number(f[3], &g))
            continue;
        if (name != NULL ? strcmp(f[0], name) != 0 : u != uid)
            continue;
        if (!str_copy(ret->name, sizeof(ret->name), f[0]) ||
            !str_copy(ret->home, sizeof(ret->home), f[5]))
            return -ENAMETOOLONG;
        ret->uid = u;
        ret->gid = g;
        return 1;
    }
    return 0;
}

static bool
has_member(char *members, const char *name)
{
    for (char *m; (m = strsep(&members, ",")) != NULL;)
        if (strcmp(m, name) == 0)
            return true;
    return false;
}

static bool
is_rootlike(const char *name, uint32_t gid)
{
    for (size_t i = 0; i < ARRAY_LEN(rootlike); i++)
        if (gid == 0 || strcmp(name, rootlike[i]) == 0)
            return true;
    return false;
}

static int
find_groups(const struct lookup *l, const void *ctx, struct user *u, bool no_rootlike,
            struct err *e)
{
    size_t size = strlen(l->group) + 1; /* a group may have many members */
    char *buf = mem_array(ctx, char, size);
    char *f[GROUP_FIELDS];
    u->n_groups = 0;
    u->groups[u->n_groups++] = u->gid;
    for (const char *p = l->group; *p != 0;) {
        uint32_t gid;
        if (!next_line(&p, buf, size, f, GROUP_FIELDS) || !is_number(f[2], &gid))
            continue;
        if (gid != u->gid && !has_member(f[3], u->name))
            continue;
        if (no_rootlike && is_rootlike(f[0], gid))
            return err_set(
                e, -ERR_POLICY,
                "user \"%s\" is in group \"%.64s\", which is as good as root, and root is "
                "denied by policy",
                u->name, f[0]);
        if (gid == u->gid)
            continue;
        if (u->n_groups == USERS_GROUPS_MAX)
            return err_set(e, -ERR_LIMIT, "user \"%s\" is in more than %d groups", u->name,
                           USERS_GROUPS_MAX);
        u->groups[u->n_groups++] = gid;
    }
    return 0;
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
            return err_set(e, -ERR_POLICY, "user \"%s\" (uid %u) is denied by policy (\"%.64s\" in "
                           "isolation.denied_users)",
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
        .passwd_path = files ? files->passwd : "/etc/passwd",
        .group_path = files ? files->group : "/etc/group",
    };
    uint32_t uid = 0;
    bool by_id = is_id(spec, &uid);
    if (!by_id && !is_name(spec))
        return err_set(e, -ERR_INVALID,
                       "user \"%.64s\" is neither a user name nor a uid in plain decimal", spec);
    int r = file_read(tmp, AT_FDCWD, l.passwd_path, USERS_FILE_MAX, &l.passwd, NULL);
    if (r < 0)
        return err_set(e, r, "cannot read \"%s\": %s", l.passwd_path, err_name(r));
    r = file_read(tmp, AT_FDCWD, l.group_path, USERS_FILE_MAX, &l.group, NULL);
    if (r < 0)
        return err_set(e, r, "cannot read \"%s\": %s", l.group_path, err_name(r));
    struct user u = {0};
    r = find_account(&l, by_id ? NULL : spec, uid, &u);
    if (r < 0)
        return err_errno(e, -r, "cannot look up user \"%s\" in \"%s\"", spec, l.passwd_path);
    if (r == 0)
        return err_set(e, -ERR_NOT_FOUND, "user \"%s\" does not exist on this machine (\"%s\")",
                       spec, l.passwd_path);
    if (u.uid == CONFINE_SHIM_UID)
        return err_set(e, -ERR_POLICY, "user \"%s\" has uid %d, which is no user's", spec,
                       CONFINE_SHIM_UID);
    bool root_denied;
    r = check_denied(&l, denied, n_denied, &u, &root_denied, e);
    if (r == 0 && root_denied && u.gid == 0)
        r = err_set(e, -ERR_POLICY, "user \"%s\" has gid 0, and root is denied by policy", u.name);
    if (r == 0)
        r = find_groups(&l, tmp, &u, root_denied, e);
    if (r == 0)
        *ret = u;
    return r;
}
