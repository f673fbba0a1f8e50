/* SPDX-License-Identifier: Apache-2.0
 *
 * exec2: job files of Nomad's driver of that name, in the full sandbox as exec has it. What they
 * unveil of the host is in every box already, or is bound where the client's policy has it. Pure.
 */
#include <signal.h>
#include <string.h>

#include "common/mem.h"
#include "drivers/process/process.h"

static const struct driver_option options[] = {
    {"command", DRIVER_STRING, .required = true},
    {"args", DRIVER_STRINGS},
    {"unveil", DRIVER_STRINGS},
    {"oom_score_adj", DRIVER_INT, .later = true},
};

static void
exec2_fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    box_fingerprint(host, ret);
    if (!ret->detected)
        return;
    str_map_set(ctx, &ret->attributes, "driver.exec2.unveil.defaults", "true");
    str_map_set(ctx, &ret->attributes, "driver.exec2.unveil.tasks", "true");
}

static bool
exec2_below(const char *path, const char *const *tops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(tops[i]);
        if (strncmp(path, tops[i], len) == 0 && (path[len] == 0 || path[len] == '/'))
            return true;
    }
    return false;
}

/* "rwxc:/path", up to the last colon. NULL: *e says what it is not. */
static const char *
path_of(const char *s, bool *ret_writes, struct err *e)
{
    const char *colon = strrchr(s, ':');
    size_t n = colon ? (size_t)(colon - s) : 0;
    if (n == 0 || strspn(s, "rwxc") != n || colon[1] != '/') {
        err_set(e, -ERR_INVALID,
                "unveil \"%.128s\" is not such as \"rx:/opt/tool\": letters of rwxc and an "
                "absolute path",
                s);
        return NULL;
    }
    *ret_writes = strcspn(s, "wc") < n;
    return colon + 1;
}

static int
exec2_unveil(struct launch_spec *s, const char *what, struct err *e)
{
    static const char *const own[] = {"/local", "/alloc", "/secrets", "/tmp", "/dev", "/proc"};
    static const char *const system[] = {"/usr",   "/bin",   "/sbin", "/lib",
                                         "/lib32", "/lib64", "/etc",  "/sys"};
    bool writes;
    const char *path = path_of(what, &writes, e);
    if (!path)
        return e->code;
    if (exec2_below(path, own, ARRAY_LEN(own)))
        return 0;
    if (exec2_below(path, system, ARRAY_LEN(system)))
        return writes
                   ? err_set(e, -ERR_UNSUPPORTED,
                             "unveil \"%.128s\": what a box has of the system is read-only", what)
                   : 0;
    struct launch_mount *m = mem_new(s, struct launch_mount);
    *m = (struct launch_mount){
        .source = mem_strdup(m, path), .target = mem_strdup(m, path), .read_only = !writes};
    list_add(s, s->mounts, m);
    return 0;
}

static int
exec2_spec(const void *ctx, const struct driver_input *in, struct launch_spec **ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("unveil");
    struct launch_spec *s = NULL;
    struct str_list paths;
    int r = box_spec(ctx, &driver_exec2, in, &s, e);
    driver_strings(tmp, in->config, "unveil", &paths);
    for (size_t i = 0; i < paths.n && r == 0; i++)
        r = exec2_unveil(s, paths.v[i], e);
    if (r < 0)
        mem_free(s);
    else
        *ret = s;
    return r;
}

const struct driver driver_exec2 = {
    .can = &drivers_can[DRIVER_exec2],
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = SIGINT,
    .fingerprint = exec2_fingerprint,
    .spec = exec2_spec,
};
