/* SPDX-License-Identifier: Apache-2.0 */
#include "common/host/path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/str.h"

enum { PATH_LINKS_MAX = 40 };

struct path_walk {
    char *at;            /* resolved; "" is the root */
    char left[PATH_MAX]; /* to do */
    int links;
};

static bool
path_is_trusted(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid();
}

/* Goes one up. */
static void
path_up(struct path_walk *w)
{
    char *slash = strrchr(w->at, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* Puts the target of the link that the walk is at in place of it. */
static int
path_follow(struct path_walk *w, const struct stat *link)
{
    char to[PATH_MAX], rest[PATH_MAX];
    struct stat dir;
    ssize_t n = readlink(w->at, to, sizeof(to) - 1);
    if (n < 0)
        return -errno;
    to[n] = '\0';
    path_up(w);
    if (lstat(w->at[0] != '\0' ? w->at : "/", &dir) < 0)
        return -errno;
    mode_t others = dir.st_gid == 0 ? S_IWOTH : S_IWGRP | S_IWOTH;
    bool alone = (dir.st_mode & others) == 0;
    bool sticky = (dir.st_mode & S_ISVTX) != 0 && path_is_trusted(link);
    if (!path_is_trusted(&dir) || (!alone && !sticky) || ++w->links > PATH_LINKS_MAX)
        return -ELOOP;
    if (to[0] == '/')
        w->at[0] = '\0';
    (void)str_copy(rest, sizeof(rest), w->left);
    int len = snprintf(w->left, sizeof(w->left), "%s/%s", to, rest);
    return len < 0 || (size_t)len >= sizeof(w->left) ? -ENAMETOOLONG : 0;
}

/* Takes the next name of what is to do. */
static int
path_step(struct path_walk *w)
{
    char name[PATH_MAX];
    size_t skip = strspn(w->left, "/"), n = strcspn(w->left + skip, "/"), len = strlen(w->at);
    struct stat st;
    memcpy(name, w->left + skip, n);
    name[n] = '\0';
    memmove(w->left, w->left + skip + n, strlen(w->left + skip + n) + 1);
    if (n == 0 || str_eq(name, "."))
        return 0;
    if (str_eq(name, "..")) {
        path_up(w);
        return 0;
    }
    if (len + n + 2 > PATH_MAX)
        return -ENAMETOOLONG;
    w->at[len] = '/';
    memcpy(w->at + len + 1, name, n + 1);
    if (lstat(w->at, &st) < 0)
        return -errno;
    return S_ISLNK(st.st_mode) ? path_follow(w, &st) : 0;
}

int
path_real(const char *path, char ret[PATH_MAX])
{
    struct path_walk w = {.at = ret};
    int r = path[0] != '/' || !str_copy(w.left, sizeof(w.left), path) ? -EINVAL : 0;
    ret[0] = '\0';
    while (r == 0 && w.left[0] != '\0')
        r = path_step(&w);
    if (r == 0 && ret[0] == '\0')
        (void)str_copy(ret, PATH_MAX, "/");
    return r;
}
