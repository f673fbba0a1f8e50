/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled policy: see policy.h. First the checks of a policy as a whole (paths, ranges of ids,
 * AppArmor, networks), by who makes one and again by who reads one; then policy_compile() and
 * policy_load(). Then what is asked at each launch: mounts, limits, seccomp, users, capabilities. A
 * refusal says which setting of the operator it is by.
 */
#include "isolation/launch/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/drivers.h"
#include "api/isolation.h"
#include "api/plain.h"
#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/netrule.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/confine/caps.h"
#include "isolation/confine/seccomp.h"

#define USER_DEFAULT "nobody"
#define BRIDGE_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
enum { BRIDGE_BITS_MIN = 8, BRIDGE_BITS_MAX = 29 };

static bool
path_ok(const char *s)
{
    if (str_empty(s) || s[0] != '/' || strlen(s) > 1024)
        return false;
    for (const char *p = s; *p != '\0';) {
        p++; /* '/' */
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
    }
    return true;
}

static int
check_paths(const struct str_list *l, const char *what, struct err *e)
{
    for (size_t i = 0; i < l->n; i++)
        if (!path_ok(l->v[i]))
            return err_set(e, -ERR_INVALID, "policy: %s \"%s\" is not a plain absolute path", what,
                           str_or(l->v[i], ""));
    return 0;
}

uint32_t
policy_range_base(const struct policy *p)
{
    return p->userns_base > 0 ? (uint32_t)p->userns_base : POLICY_RANGE_BASE;
}

uint32_t
policy_range_count(const struct policy *p)
{
    return p->userns_count > 0 ? (uint32_t)p->userns_count : POLICY_RANGE_COUNT;
}

/* Says whether the name may become a word of what is written to the kernel. */
static bool
profile_ok(const char *s)
{
    static const char set[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@+";
    return !str_empty(s) && strlen(s) <= CONFINE_APPARMOR_MAX && strspn(s, set) == strlen(s);
}

static int
check_apparmor(const struct policy *p, struct err *e)
{
    const char *bad = str_empty(p->apparmor) || profile_ok(p->apparmor) ? NULL : p->apparmor;
    for (size_t i = 0; i < p->apparmor_allowed.n && bad == NULL; i++)
        bad = profile_ok(p->apparmor_allowed.v[i]) ? NULL : str_or(p->apparmor_allowed.v[i], "");
    return bad == NULL ? 0
                       : err_set(e, -ERR_INVALID,
                                 "policy: \"%.64s\" is no name of an AppArmor profile", bad);
}

static bool
mode_ok(const char *s)
{
    return str_empty(s) || str_eq(s, "auto") || str_eq(s, "required") || str_eq(s, "off");
}

static int
check_userns(const struct policy *p, struct err *e)
{
    if (!mode_ok(p->userns))
        return err_set(e, -ERR_INVALID, "policy: userns \"%s\" is neither auto, required nor off",
                       p->userns);
    if (p->userns_base < 0 || p->userns_base > UINT32_MAX || p->userns_count < 0 ||
        p->userns_count > UINT32_MAX / POLICY_RANGE_IDS || p->userns_base % POLICY_RANGE_IDS != 0 ||
        policy_range_base(p) + (uint64_t)policy_range_count(p) * POLICY_RANGE_IDS > UINT32_MAX)
        return err_set(e, -ERR_INVALID,
                       "policy: userns_base must be a multiple of %u, and userns_count ranges of "
                       "as many ids must fit below 4294967295",
                       POLICY_RANGE_IDS);
    return 0;
}

bool
policy_network(const struct policy *p, const char *mode)
{
    return p->network_modes.n == 0 || str_list_has(&p->network_modes, mode);
}

/* 0: not a private network of a sensible size. */
static uint32_t
policy_subnet(const char *text, uint32_t *ret_addr)
{
    struct netrule r;
    if (netrule_parse(text, &r, NULL) < 0 || !r.v4 || r.v6 || strchr(text, ':') != NULL ||
        r.bits < BRIDGE_BITS_MIN || r.bits > BRIDGE_BITS_MAX)
        return 0;
    uint32_t a = (uint32_t)r.addr[0] << 24 | (uint32_t)r.addr[1] << 16 | (uint32_t)r.addr[2] << 8 |
                 r.addr[3];
    *ret_addr = a & ~(UINT32_MAX >> r.bits);
    return r.bits;
}

void
policy_bridge(const struct policy *p, struct net_conf *ret)
{
    str_copy(ret->bridge, sizeof(ret->bridge), str_or(p->bridge_name, POLICY_BRIDGE_NAME));
    str_copy(ret->owner, sizeof(ret->owner), p->data_dir);
    ret->bits = policy_subnet(str_or(p->bridge_subnet, POLICY_BRIDGE_SUBNET), &ret->subnet);
}

static int
check_network(const struct policy *p, struct err *e)
{
    static const char *const modes[] = {"host", "none", "bridge"};
    uint32_t addr;
    for (size_t i = 0; i < p->network_modes.n; i++) {
        bool known = false;
        for (size_t k = 0; k < ARRAY_LEN(modes); k++)
            known = known || str_eq(p->network_modes.v[i], modes[k]);
        if (!known)
            return err_set(e, -ERR_INVALID,
                           "policy: network mode \"%s\" is not host, none or bridge",
                           str_or(p->network_modes.v[i], ""));
    }
    const char *name = str_or(p->bridge_name, POLICY_BRIDGE_NAME);
    size_t n = strlen(name);
    if (n == 0 || n >= NET_NAME_MAX || name[0] == '.' || strspn(name, BRIDGE_NAME_CHARS) != n)
        return err_set(
            e, -ERR_INVALID,
            "policy: bridge_network_name \"%s\" is not 1 to 15 letters, digits, '-' and '_'", name);
    if (policy_subnet(str_or(p->bridge_subnet, POLICY_BRIDGE_SUBNET), &addr) == 0)
        return err_set(
            e, -ERR_INVALID,
            "policy: bridge_network_subnet \"%s\" is not an IPv4 network of %d to %d bits",
            str_or(p->bridge_subnet, ""), BRIDGE_BITS_MIN, BRIDGE_BITS_MAX);
    return 0;
}

int
policy_check(const struct policy *p, struct err *e)
{
    const struct {
        const char *name, *v;
        bool required;
    } paths[] = {{"data_dir", p->data_dir, true},
                 {"alloc_dir", p->alloc_dir, true},
                 {"run_dir", p->run_dir, true},
                 {"state_dir", p->state_dir, false},
                 {"cgroup root", p->cgroup_root, false}};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if ((paths[i].required || !str_empty(paths[i].v)) && !path_ok(paths[i].v))
            return err_set(e, -ERR_INVALID, "policy: %s \"%s\" is not a plain absolute path",
                           paths[i].name, str_or(paths[i].v, ""));
    for (size_t i = 0; i < p->agent_files.n; i++)
        if (!path_ok(p->agent_files.v[i]))
            return err_set(e, -ERR_INVALID, "policy: file \"%s\" is not a plain absolute path",
                           str_or(p->agent_files.v[i], ""));
    for (size_t i = 0; i < p->allowed_caps.n; i++)
        if (!str_eq(p->allowed_caps.v[i], "all") && caps_from_name(p->allowed_caps.v[i]) < 0)
            return err_set(e, -ERR_INVALID, "policy: unknown capability \"%s\"",
                           str_or(p->allowed_caps.v[i], ""));
    for (size_t i = 0; i < p->drivers.n; i++)
        if (str_empty(p->drivers.v[i]))
            return err_set(e, -ERR_INVALID, "policy: a driver has no name");
    for (size_t i = 0; i < p->allowed_devices.n; i++)
        if (!str_eq(p->allowed_devices.v[i], POLICY_KVM))
            return err_set(e, -ERR_UNSUPPORTED,
                           "policy: allowed_devices: \"%s\" is not " POLICY_KVM
                           ", the one device that "
                           "tasks can have",
                           str_or(p->allowed_devices.v[i], ""));
    for (size_t i = 0; i < p->device_paths.n; i++)
        if (!str_prefix(p->device_paths.v[i], "/dev/") || !plain_path(p->device_paths.v[i] + 1))
            return err_set(e, -ERR_INVALID, "policy: device \"%s\" is no plain path below /dev",
                           str_or(p->device_paths.v[i], ""));
    if (p->agent_uid < 0 || p->agent_uid > UINT32_MAX - 1 || p->agent_gid < 0 ||
        p->agent_gid > UINT32_MAX - 1)
        return err_set(e, -ERR_INVALID, "policy: the agent's ids are out of range");
    if (p->pids_max_default < 0)
        return err_set(e, -ERR_INVALID, "policy: pids_max is negative");
    if (!str_empty(p->limits) && !str_eq(p->limits, "best-effort") && !policy_limits_required(p))
        return err_set(e, -ERR_INVALID, "policy: limits \"%s\" is neither best-effort nor required",
                       p->limits);
    if (!mode_ok(p->disk_quota))
        return err_set(e, -ERR_INVALID,
                       "policy: disk_quota \"%s\" is neither auto, required nor off",
                       p->disk_quota);
    if (p->swap_max < 0 || p->hugetlb_max < 0 || p->memory_min_max < 0)
        return err_set(e, -ERR_INVALID,
                       "policy: swap_max, hugetlb_max and memory_min_max may not be negative");
    int r = check_userns(p, e);
    if (r == 0)
        r = check_apparmor(p, e);
    if (r == 0 && (r = seccomp_check_names(&p->seccomp_allowed, e)) < 0)
        err_prefix(e, "policy: seccomp_allowed");
    if (r == 0)
        r = check_network(p, e);
    if (r == 0)
        r = check_paths(&p->bind_roots, "bind root", e);
    if (r == 0)
        r = check_paths(&p->image_paths, "path of images", e);
    for (size_t i = 0; i < p->host_volumes.n && r == 0; i++) {
        const struct policy_volume *v = p->host_volumes.v[i];
        const char *path = v != NULL ? str_or(v->path, "") : "";
        r = check_paths(&(struct str_list){&path, 1}, "host volume", e);
    }
    return r < 0 ? r : check_paths(&p->bind_allowed, "allowed bind", e);
}

int
policy_compile(const struct policy *p, const char *path, struct err *e)
{
    int r = policy_check(p, e);
    if (r < 0)
        return r;
    auto_buf struct buf b = BUF_INIT(POLICY_BYTES_MAX);
    mp_encode(&b, &type_policy, p);
    r = buf_error(&b);
    if (r < 0)
        return err_set(e, -ERR_LIMIT, "policy: more than %d KiB", POLICY_BYTES_MAX / 1024);
    r = file_write_atomic(AT_FDCWD, path, b.data, b.len, 0640);
    if (r < 0)
        return err_errno(e, -r, "write \"%s\"", path);
    return 0;
}

int
policy_load(const void *ctx, const char *path, struct policy **ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("policy");
    struct stat st;
    if (stat(path, &st) < 0)
        return err_errno(e, errno, "read the policy \"%s\" (paddock policy makes it)", path);
    if (geteuid() == 0 && (st.st_uid != 0 || (st.st_mode & 022) != 0))
        return err_set(e, -ERR_FORBIDDEN,
                       "the policy \"%s\" must be root's and writable by nobody else", path);
    char *text = NULL;
    size_t n = 0;
    int r = file_read(tmp, AT_FDCWD, path, POLICY_BYTES_MAX, &text, &n);
    if (r < 0)
        return err_errno(e, -r, "read \"%s\"", path);
    void *p = NULL;
    r = mp_decode(ctx, &type_policy, SLICE(text, n), BUDGET(8 << 20), &p, e);
    if (r < 0) {
        err_prefix(e, "policy \"%s\"", path);
        return r;
    }
    r = policy_check(p, e);
    if (r < 0) {
        mem_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

/* Equal to `root` or below it. */
static bool
policy_below(const char *path, const char *root)
{
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

const struct policy_volume *
policy_volume(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->host_volumes.n; i++)
        if (str_eq(p->host_volumes.v[i]->name, name))
            return p->host_volumes.v[i];
    return NULL;
}

static bool
is_made_volume(const struct policy *p, const char *name)
{
    return !str_empty(p->host_volumes_dir) && uuid_valid(name);
}

const char *
policy_volume_path(const void *ctx, const struct policy *p, const char *name)
{
    const struct policy_volume *v = policy_volume(p, name);
    if (v != NULL)
        return v->path;
    return is_made_volume(p, name) ? mem_printf(ctx, "%s/%s", p->host_volumes_dir, name) : NULL;
}

int
policy_check_volume(const struct policy *p, const char *name, bool read_only, struct err *e)
{
    const struct policy_volume *v = policy_volume(p, name);
    if (v == NULL && is_made_volume(p, name))
        return 0;
    if (v == NULL)
        return err_set(e, -ERR_POLICY, "this client has no host volume \"%.128s\"", name);
    if (v->read_only && !read_only)
        return err_set(e, -ERR_POLICY, "the host volume \"%.128s\" of this client is read-only",
                       name);
    return 0;
}

static int
check_mount(const struct policy *p, const char *driver, const struct launch_mount *m, struct err *e)
{
    const struct driver_can *can = driver_can(driver);
    if (!str_empty(m->volume))
        return policy_check_volume(p, m->volume, m->read_only, e);
    for (size_t i = 0; can && can->images && m->read_only && i < p->image_paths.n; i++)
        if (policy_below(m->source, p->image_paths.v[i]))
            return 0;
    for (size_t i = 0; i < p->bind_allowed.n; i++)
        if (policy_below(m->source, p->bind_allowed.v[i]))
            return 0;
    return err_set(e, -ERR_POLICY,
                   "mount of \"%s\": this client's policy does not allow that host path",
                   m->source);
}

bool
policy_limits_required(const struct policy *p)
{
    return str_eq(p->limits, "required");
}

/* Resources that a task takes from others beyond its reservation. */
int
policy_check_limits(const struct policy *p, const struct task_isolation *i, struct err *e)
{
    i = isolation_of(i);
    const struct {
        const char *what, *name;
        int64_t asked, allowed;
    } rows[] = {
        {"swap", "swap_max", i->swap, p->swap_max},
        {"huge pages", "hugetlb_max", i->hugetlb, p->hugetlb_max},
        {"memory that is always kept", "memory_min_max", i->memory_min, p->memory_min_max},
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++)
        if (rows[k].asked > rows[k].allowed >> 20)
            return err_set(e, -ERR_POLICY,
                           "the task asks for %lld MiB of %s, this client's policy allows %lld "
                           "(isolation.%s)",
                           (long long)rows[k].asked, rows[k].what,
                           (long long)(rows[k].allowed >> 20), rows[k].name);
    return 0;
}

static int
check_seccomp(const struct policy *p, const struct task_seccomp *t, struct err *e)
{
    if (t == NULL)
        return 0;
    int r = seccomp_check_task(t, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < t->allow.n; i++)
        if (!seccomp_allows(seccomp_profile_default(), t->allow.v[i]) &&
            !str_list_has(&p->seccomp_allowed, t->allow.v[i]))
            return err_set(e, -ERR_POLICY,
                           "seccomp: \"%.64s\" may not be allowed on this client "
                           "(isolation.seccomp_allowed)",
                           t->allow.v[i]);
    if (str_eq(t->mode, "log") && !p->seccomp_log)
        return err_set(e, -ERR_POLICY,
                       "seccomp: mode \"log\" denies nothing, and is not allowed on this client "
                       "(isolation.seccomp_log)");
    if (!str_empty(t->mode) && !str_eq(t->mode, "log") && !str_eq(t->mode, "enforce") &&
        !seccomp_audits(t))
        return err_set(e, -ERR_INVALID, "seccomp: mode \"%.16s\" is none of enforce, audit, log",
                       t->mode);
    return 0;
}

int
policy_check_launch(const struct policy *p, const struct launch_spec *s, struct err *e)
{
    if (!str_list_has(&p->drivers, s->driver))
        return err_set(e, -ERR_POLICY, "driver \"%s\" is not allowed on this client", s->driver);
    const struct task_isolation *iso = isolation_of(s->isolation);
    bool raw = driver_unboxed(s->driver);
    if (raw && !p->raw_exec)
        return err_set(e, -ERR_POLICY, "driver \"%s\" is disabled on this client", s->driver);
    if (raw == s->isolated)
        return err_set(e, -ERR_POLICY, "driver \"%s\" %s an isolated task", s->driver,
                       raw ? "is not for" : "needs");
    if (raw && (s->mounts.n > 0 || s->cap_add.n > 0))
        return err_set(e, -ERR_POLICY, "driver \"%s\" takes no mounts and no capabilities",
                       s->driver);
    if (str_eq(s->seccomp, "unconfined")) {
        if (p->seccomp && !raw)
            return err_set(e, -ERR_POLICY, "seccomp \"unconfined\" is not allowed on this client");
    } else if (seccomp_profile_find(str_or(s->seccomp, "")) == NULL) {
        return err_set(e, -ERR_INVALID, "unknown seccomp profile \"%s\"", s->seccomp);
    }
    int k = check_seccomp(p, iso->seccomp, e);
    if (k < 0)
        return k;
    if (!str_empty(iso->userns) && !str_eq(iso->userns, "host"))
        return err_set(e, -ERR_INVALID, "userns \"%s\" is not \"host\"", iso->userns);
    if (!raw && str_eq(iso->userns, "host") && !p->userns_host && !str_eq(p->userns, "off"))
        return err_set(e, -ERR_POLICY,
                       "the host's user namespace is not allowed on this client (userns_host)");
    if (!str_empty(iso->apparmor) && !str_eq(iso->apparmor, p->apparmor) &&
        !str_list_has(&p->apparmor_allowed, iso->apparmor))
        return err_set(e, -ERR_POLICY,
                       "AppArmor profile \"%.64s\" is not allowed on this client "
                       "(isolation.apparmor_allowed)",
                       iso->apparmor);
    if (s->share_net && !policy_network(p, "host"))
        return err_set(e, -ERR_POLICY, "network mode \"host\" is not allowed on this client");
    if (s->host_pid || s->host_ipc)
        return err_set(e, -ERR_POLICY, "the host's pid and ipc namespaces are not allowed");
    for (size_t i = 0; i < s->devices.n; i++)
        if (raw || (!str_list_has(&p->allowed_devices, s->devices.v[i]) &&
                    !str_list_has(&p->device_paths, s->devices.v[i])))
            return err_set(e, -ERR_POLICY,
                           "device \"%s\" is not allowed on this client "
                           "(isolation.allowed_devices, client.device)",
                           s->devices.v[i]);
    for (size_t i = 0; i < s->mounts.n; i++) {
        int r = check_mount(p, s->driver, s->mounts.v[i], e);
        if (r < 0)
            return r;
    }
    return policy_check_limits(p, iso, e);
}

static bool
is_allowed(const struct policy *p, const struct user *u)
{
    for (size_t i = 0; i < p->allowed_users.n; i++) {
        uint64_t uid;
        const char *a = p->allowed_users.v[i];
        if ((u->name[0] != '\0' && str_eq(a, u->name)) ||
            (a != NULL && num_parse_u64(a, &uid) == 0 && uid == u->uid))
            return true;
    }
    return p->allowed_users.n == 0;
}

/* Unset, it denies root; empty, nobody. Root of a user namespace is one of the host's nobodies. */
static void
denied_users(const void *ctx, const struct policy *p, bool inside, struct str_list *ret)
{
    bool root_too = !(inside && p->userns_root);
    if (p->denied_users.v == NULL && root_too)
        list_add(ctx, *ret, "root");
    for (size_t i = 0; i < p->denied_users.n; i++)
        if (root_too ||
            (!str_eq(p->denied_users.v[i], "root") && !str_eq(p->denied_users.v[i], "0")))
            list_add(ctx, *ret, p->denied_users.v[i]);
}

const char *
policy_raw_user(const struct policy *p, const struct users_files *files)
{
    const struct launch_spec root = {.user = "root"};
    struct user u;
    struct err e = ERR_INIT;
    return policy_user(p, &root, false, files, &u, &e) == 0 ? "root" : USER_DEFAULT;
}

int
policy_user(const struct policy *p, const struct launch_spec *s, bool inside,
            const struct users_files *files, struct user *ret, struct err *e)
{
    auto_mem void *ctx = mem_ctx("denied");
    struct str_list denied = {0};
    ASSERT(!inside || policy_range_count(p) > 0);
    denied_users(ctx, p, inside, &denied);
    const char *name = !str_empty(s->user) ? s->user
                       : s->isolated       ? USER_DEFAULT
                                           : policy_raw_user(p, files);
    struct user u;
    int r = users_resolve(name, denied.v, denied.n, files, &u, e);
    if (r == -ERR_POLICY && p->userns_root && !inside)
        err_prefix(e, "outside of a user namespace (isolation.userns_root)");
    if (r < 0)
        return r;
    /* it could talk to the warden, signal the agent and read its state */
    if (u.uid == p->agent_uid)
        return err_set(e, -ERR_POLICY, "user \"%s\" is the agent's own: no task may run as it",
                       name);
    /* owner of a user namespace, or somebody in one of another allocation */
    if (u.uid >= policy_range_base(p) &&
        (u.uid - policy_range_base(p)) / POLICY_RANGE_IDS < policy_range_count(p))
        return err_set(
            e, -ERR_POLICY,
            "user \"%s\" has uid %u, of the ids that user namespaces of allocations have "
            "(isolation.userns_base)",
            name, u.uid);
    if (!is_allowed(p, &u))
        return err_set(e, -ERR_POLICY, "user \"%s\" is not among this client's allowed users",
                       name);
    *ret = u;
    return 0;
}

bool
policy_no_setuid(const struct policy *p, const struct launch_spec *s)
{
    bool writes = p->raw_exec;
    for (size_t i = 0; i < s->mounts.n; i++)
        writes = writes || !s->mounts.v[i]->read_only;
    return s->isolated && writes;
}

const char *
policy_apparmor(const struct policy *p, const struct launch_spec *s)
{
    const char *own = isolation_of(s->isolation)->apparmor;
    return !s->isolated ? "" : str_or(str_empty(own) ? p->apparmor : own, "");
}

int
policy_caps(const struct policy *p, const struct launch_spec *s, uint64_t *ret, struct err *e)
{
    uint64_t caps = 0;
    int r = caps_plan(s->cap_add.v, s->cap_add.n, p->allowed_caps.v, p->allowed_caps.n, &caps, e);
    if (r == 0 && policy_no_setuid(p, s) && (caps & UINT64_C(1) << CAP_SETFCAP) != 0)
        r = err_set(
            e, -ERR_POLICY,
            "cap_add: \"setfcap\" is not for a task with a path of the host that it may write, nor "
            "for any where raw_exec is on");
    if (r == 0)
        *ret = caps;
    return r;
}
