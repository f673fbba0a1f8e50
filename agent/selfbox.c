/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/selfbox.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/sandbox.h"
#include "isolation/launch/policy.h"

#ifdef INSTRUMENTED /* its runtime forks, traces and writes where it likes */
enum { OFF = 1 };
#else
enum { OFF = 0 };
#endif
enum { PATHS_MAX = 64 };

struct paths {
    void *ctx;
    struct sandbox_path v[PATHS_MAX];
    size_t n;
};

static void
selfbox_add(struct paths *p, const char *path, bool write)
{
    if (p->n < PATHS_MAX && !str_empty(path))
        p->v[p->n++] = (struct sandbox_path){path, write};
}

/* Adds the directory that holds the file: whoever replaces it makes another one. */
static void
add_parent(struct paths *p, const char *file, bool write)
{
    const char *slash = strrchr(file, '/');
    if (slash == NULL)
        selfbox_add(p, ".", write);
    else
        selfbox_add(p, slash == file ? "/" : mem_strndup(p->ctx, file, (size_t)(slash - file)),
                    write);
}

/* Without one a file is missed, not the agent: it says so and goes on. */
static void
selfbox_told(const char *what, const struct err *e)
{
    if (e->code != 0)
        log_warn("agent", "the agent goes without a part of its own confinement", "part", what,
                 "error", e->text, NULL);
}

void
selfbox_files(const struct agent_config *cfg, const struct policy *policy, const char *run_dir)
{
    if (OFF)
        return;
    /* libraries that are opened late, names and addresses, zones, facts about the host */
    static const char *const reads[] = {"/usr", "/lib", "/lib64",   "/etc",         "/proc",
                                        "/sys", "/run", "/var/run", "/var/lib/sss", "/dev"};
    auto_mem void *ctx = mem_ctx("selfbox");
    struct paths p = {.ctx = ctx};
    struct cgroup_info cgroups;
    struct err e = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(reads); i++)
        selfbox_add(&p, reads[i], false);
    if (cgroup_find(ctx, &cgroups, NULL) == 0) /* its root is one, wherever the warden mounted it */
        selfbox_add(&p, cgroups.mount, false);
    selfbox_add(&p, "/dev/null", true);
    selfbox_add(&p, run_dir, false);
    selfbox_add(&p, mem_printf(ctx, "%s/" POLICY_RELOAD, run_dir), true);
    selfbox_add(&p, policy->data_dir, true);
    selfbox_add(&p, policy->state_dir, true);
    for (size_t i = 0; i < cfg->keyrings.n; i++) {
        const struct agent_keyring *k = cfg->keyrings.v[i];
        const char *dir = str_empty(k->credential) ? NULL : getenv("CREDENTIALS_DIRECTORY");
        if (!str_empty(k->key_file))
            selfbox_add(&p, k->key_file, false);
        if (!str_empty(k->tls_ca_cert))
            selfbox_add(&p, k->tls_ca_cert, false);
        if (!str_empty(dir))
            selfbox_add(&p, dir, false);
    }
    for (size_t i = 0; cfg->audit != NULL && i < cfg->audit->sinks.n; i++)
        if (!str_empty(cfg->audit->sinks.v[i]->path))
            add_parent(&p, cfg->audit->sinks.v[i]->path, true);
    if (!str_empty(cfg->log_file))
        add_parent(&p, cfg->log_file, true);
    (void)sandbox_files(p.v, p.n, &e);
    selfbox_told("Landlock", &e);
}

void
selfbox_rings(void)
{
    struct err e = ERR_INIT;
    if (!OFF)
        (void)sandbox_rings(&e);
    selfbox_told("io_uring", &e);
}

void
selfbox_calls(void)
{
    struct err e = ERR_INIT;
    if (!OFF)
        (void)sandbox_calls(&e);
    selfbox_told("seccomp", &e);
}
