/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/warden/user.h"

#include <string.h>
#include <sys/stat.h>

#include "common/str.h"
#include "isolation/launch/policy.h"

int
user_get(struct warden *w, const struct launch_spec *s, bool inside, struct user *ret,
            struct err *e)
{
    static const char *const files[2] = {"/etc/passwd", "/etc/group"};
    struct user_cache *c = &w->users;
    struct stat st[2] = {0};
    for (int i = 0; i < 2; i++) {
        (void)stat(files[i], &st[i]);
        if (memcmp(&st[i].st_ctim, &c->stamp[i], sizeof(c->stamp[i])) != 0)
            c->n = 0;
    }
    /* nobody named: not the same user for raw_exec; no user's name has a colon */
    const char *spec = str_or(s->user, s->isolated ? "" : ":raw_exec");
    for (size_t i = 0; i < c->n; i++) {
        if (c->v[i].inside == inside && str_eq(c->v[i].spec, spec)) {
            *ret = c->v[i].user;
            return 0;
        }
    }
    int r = policy_user(w->policy, s, inside, NULL, ret, e);
    if (r < 0 || strlen(spec) > USERS_NAME_MAX)
        return r;
    c->n %= ARRAY_LEN(c->v);
    c->stamp[0] = st[0].st_ctim;
    c->stamp[1] = st[1].st_ctim;
    (void)str_copy(c->v[c->n].spec, sizeof(c->v[c->n].spec), spec);
    c->v[c->n].inside = inside;
    c->v[c->n++].user = *ret;
    return 0;
}
