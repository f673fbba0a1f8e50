/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/repo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/base64.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fetch/program.h"
#include "fetch/reach.h"
#include "fetch/relay.h"

enum { ARGS_MAX = 24, ENV_MAX = 48, COMMIT_MAX = 128 };

struct repo {
    const struct repo_wish *w;
    void *ctx;
    int dir, tree;    /* tree -1: not there yet */
    const char *path; /* of dir, for programs; NULL: none */
    struct relay *relay;
    const char *env[ENV_MAX];
    size_t n_env, n_config;
    int64_t deadline_ns;
};

static void
put_env(struct repo *r, const char *name, const char *value)
{
    ASSERT(r->n_env + 1 < ENV_MAX);
    r->env[r->n_env++] = mem_printf(r->ctx, "%s=%s", name, value);
}

/* Makes a setting of git's, for its children too. */
static void
put_config(struct repo *r, const char *key, const char *value)
{
    put_env(r, mem_printf(r->ctx, "GIT_CONFIG_KEY_%zu", r->n_config), key);
    put_env(r, mem_printf(r->ctx, "GIT_CONFIG_VALUE_%zu", r->n_config), value);
    r->n_config++;
}

/* Runs a program with these words, in the tree if there is one, and names it in an error: "hg
 * --config X clone" is "hg clone". */
static int
run_words(struct repo *r, char *out, const char *const *words, struct err *e)
{
    const struct program p = {.argv = words,
                              .env = r->env,
                              .dir = r->tree >= 0 ? r->tree : r->dir,
                              .deadline_ns = r->deadline_ns};
    int code = program_run(&p, out, COMMIT_MAX, e);
    const char *const *verb = words + 1;
    while (str_eq(*verb, "--config"))
        verb += 2;
    return code < 0 && code != -ERR_NOT_FOUND ? err_prefix(e, "%s %s", words[0], *verb) : code;
}
#define RUN(r, out, e, ...) run_words(r, out, (const char *const[]){__VA_ARGS__, NULL}, e)

/* --- ssh --- */

/* "ssh://[user@]host[:port]/": the host, and the port "22" where there is none. */
static int
ssh_host(const void *ctx, const char *url, const char **host, const char **port, struct err *e)
{
    const char *from = url + strlen("ssh://");
    size_t n = strcspn(from, "/?#");
    const char *at = memchr(from, '@', n);
    size_t skip = at != NULL ? (size_t)(at - from) + 1 : 0;
    from += skip;
    n -= skip;
    const char *colon = from[0] == '[' ? NULL : memchr(from, ':', n);
    size_t k = colon != NULL ? (size_t)(colon - from) : n;
    *host = mem_strndup(ctx, from, k);
    *port = colon != NULL ? mem_strndup(ctx, colon + 1, n - k - 1) : "22";
    for (const char *p = *host; *p != '\0'; p++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *p) == NULL)
            k = 0;
    if (k == 0 || **host == '-' || str_empty(*port) || strspn(*port, "0123456789") != strlen(*port))
        return err_set(e, -ERR_INVALID, "its host is none that ssh can be told");
    return 0;
}

/* Writes the key where only ssh reads it, and has ssh connect to the address that was looked at. */
static int
use_ssh(struct repo *r, struct err *e)
{
    const char *host, *port;
    struct reach_name address;
    size_t n = 0;
    uint8_t *key = mem_array(r->ctx, uint8_t, BASE64_DECODED(strlen(r->w->sshkey)) + 1);
    int rc = ssh_host(r->ctx, r->w->url, &host, &port, e);
    if (rc == 0 && base64_decode(r->w->sshkey, strlen(r->w->sshkey), key, &n) < 0)
        rc = err_set(e, -ERR_INVALID, "the option sshkey is no base64");
    if (rc == 0)
        rc = reach_lookup(r->w->policy, host, port, &address, e);
    if (rc < 0)
        return rc;
    if (n > 0 && key[n - 1] != '\n')
        key[n++] = '\n';
    if (r->path == NULL || strchr(r->path, '\'') != NULL)
        return err_set(e, -ERR_INTERNAL, "the directory for the key has no name");
    rc = file_write_atomic(r->dir, "key", key, n, 0600);
    if (rc < 0)
        return err_errno(e, -rc, "write the key");
    bool usual = str_eq(port, "22");
    put_env(r, "GIT_SSH_VARIANT", "ssh");
    put_env(r, "GIT_SSH_COMMAND",
            mem_printf(r->ctx,
                       "ssh -F /dev/null -i '%s/key' -o IdentitiesOnly=yes -o IdentityAgent=none "
                       "-o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=%d "
                       "-o UserKnownHostsFile=/dev/null "
                       "-o GlobalKnownHostsFile=/etc/ssh/ssh_known_hosts "
                       "-o HostKeyAlias='%s%s%s%s' -o HostName=%s",
                       r->path, REACH_CONNECT_MS / 1000, usual ? "" : "[", host,
                       usual ? "" : "]:", usual ? "" : port, address.text));
    return 0;
}

/* --- git --- */

static int
git_prepare(struct repo *r, struct err *e)
{
    bool ssh = str_prefix(r->w->url, "ssh://");
    put_env(r, "GIT_CONFIG_NOSYSTEM", "1");
    put_env(r, "GIT_CONFIG_GLOBAL", "/dev/null");
    put_env(r, "GIT_TERMINAL_PROMPT", "0");
    put_env(r, "GIT_ALLOW_PROTOCOL", ssh ? "http:https:ssh" : "http:https");
    put_env(r, "GIT_HTTP_PROXY_AUTHMETHOD", "basic");
    if (r->w->insecure)
        put_env(r, "GIT_SSL_NO_VERIFY", "1");
    put_config(r, "core.hooksPath", "/dev/null");
    put_config(r, "core.fsmonitor", "false");
    put_config(r, "credential.helper", "");
    put_config(r, "gc.auto", "0");
    put_config(r, "maintenance.auto", "false");
    put_config(r, "advice.detachedHead", "false");
    put_config(r, "init.defaultBranch", "main");
    put_env(r, "GIT_CONFIG_COUNT", mem_printf(r->ctx, "%zu", r->n_config));
    return ssh ? use_ssh(r, e) : 0;
}

/* Finds the commit of the name: a branch of the server's, a tag, or what else git knows; and what
 * the server has by that name and did not tell. */
static int
git_resolve(struct repo *r, char commit[COMMIT_MAX], struct err *e)
{
    static const char *const below[] = {"", "refs/remotes/origin/", "refs/tags/"};
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        const char *name = mem_printf(r->ctx, "%s%s^{commit}", below[i], r->w->ref);
        if (RUN(r, commit, NULL, "git", "rev-parse", "--verify", "-q", name) == 0)
            return 0;
    }
    int rc = RUN(r, NULL, e, "git", "fetch", "-q", "--", "origin", r->w->ref);
    return rc < 0 ? rc : RUN(r, commit, e, "git", "rev-parse", "--verify", "FETCH_HEAD^{commit}");
}

static int
open_tree(struct repo *r, struct err *e)
{
    r->tree = openat(r->dir, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return r->tree < 0 ? err_errno(e, errno, "open the clone") : 0;
}

/* With a depth no more than the one commit's history is asked for. */
static int
git_fetch_shallow(struct repo *r, const char *depth, struct err *e)
{
    const char *ref = str_or(r->w->ref, "HEAD");
    int rc = RUN(r, NULL, e, "git", "init", "-q", "tree");
    if (rc == 0)
        rc = open_tree(r, e);
    if (rc == 0)
        rc = RUN(r, NULL, e, "git", "remote", "add", "origin", r->w->url);
    if (rc == 0)
        rc = RUN(r, NULL, e, "git", "fetch", "-q", depth, "--", "origin", ref);
    return rc < 0 ? rc : RUN(r, NULL, e, "git", "checkout", "-q", "--detach", "FETCH_HEAD");
}

static int
git_fetch(struct repo *r, struct err *e)
{
    char commit[COMMIT_MAX] = "HEAD";
    int rc = RUN(r, NULL, e, "git", "clone", "-q", "--no-checkout", "--", r->w->url, "tree");
    if (rc == 0)
        rc = open_tree(r, e);
    if (rc < 0 || str_empty(r->w->ref))
        return rc < 0 ? rc : RUN(r, NULL, e, "git", "reset", "-q", "--hard");
    rc = git_resolve(r, commit, e);
    return rc < 0 ? rc : RUN(r, NULL, e, "git", "checkout", "-q", "--detach", commit);
}

static int
git_clone(struct repo *r, struct err *e)
{
    const char *depth = mem_printf(r->ctx, "--depth=%lld", (long long)r->w->depth);
    int rc = git_prepare(r, e);
    if (rc < 0)
        return rc;
    rc = r->w->depth > 0 ? git_fetch_shallow(r, depth, e) : git_fetch(r, e);
    if (rc < 0 || faccessat(r->tree, ".gitmodules", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return rc;
    return r->w->depth > 0
               ? RUN(r, NULL, e, "git", "submodule", "-q", "update", "--init", "--recursive", depth)
               : RUN(r, NULL, e, "git", "submodule", "-q", "update", "--init", "--recursive");
}

/* --- hg --- */

static int
hg_clone(struct repo *r, struct err *e)
{
    /* Subrepositories would be asked for by any URL. */
#define HG "hg", "--config", "http_proxy.always=True", "--config", "subrepos.allowed=False"
    put_env(r, "HGRCPATH", "");
    put_env(r, "HGPLAIN", "1");
    const char *insecure = r->w->insecure ? "--insecure" : "-q";
    int rc = RUN(r, NULL, e, HG, "clone", "-q", "-U", insecure, "--", r->w->url, "tree");
    if (rc == 0)
        rc = open_tree(r, e);
    if (rc < 0)
        return rc;
    return str_empty(r->w->ref) ? RUN(r, NULL, e, HG, "update", "-q")
                                : RUN(r, NULL, e, HG, "update", "-q", "--", r->w->ref);
#undef HG
}

/* Opens `dir` by the name that programs see: /tmp is the warden's doing (launch/helper.h); without
 * root there is only its own. */
static int
open_named(struct repo *r, int dir, struct err *e)
{
    struct stat want, got;
    char path[PATH_MAX];
    r->dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->dir >= 0 && fstat(dir, &want) == 0 && fstat(r->dir, &got) == 0 &&
        want.st_ino == got.st_ino && want.st_dev == got.st_dev) {
        r->path = "/tmp";
        return 0;
    }
    fd_close(&r->dir);
    r->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (r->dir < 0 || fchdir(dir) < 0)
        return err_errno(e, errno, "enter the directory");
    r->path = getcwd(path, sizeof(path)) != NULL ? mem_strdup(r->ctx, path) : NULL;
    return 0;
}

static int
repo_start(struct repo *r, int dir, struct err *e)
{
    if (open_named(r, dir, e) < 0)
        return e->code;
    r->relay = relay_start(r->ctx, r->w->policy, r->w->bytes_max, r->w->idle_ms, e);
    if (r->relay == NULL)
        return e->code;
    put_env(r, "PATH", "/usr/local/bin:/usr/bin:/bin");
    put_env(r, "LANG", "C.UTF-8");
    put_env(r, "HOME", "/nonexistent");
    put_env(r, "TMPDIR", str_or(r->path, "."));
    put_env(r, "http_proxy", relay_url(r->relay));
    put_env(r, "https_proxy", relay_url(r->relay));
    return r->w->kind == ARTIFACT_GIT ? git_clone(r, e) : hg_clone(r, e);
}

int
repo_clone(const struct repo_wish *w, int dir, int64_t *ret_bytes, bool *final, struct err *e)
{
    struct repo r = {.w = w, .dir = -1, .tree = -1, .ctx = mem_ctx("repo")};
    r.deadline_ns = clock_mono_ns() + w->total_ms * NS_PER_MS;
    int rc = repo_start(&r, dir, e);
    (void)unlinkat(dir, "key", 0);
    if (rc < 0 && r.relay != NULL && relay_explain(r.relay, e) < 0)
        rc = e->code;
    *final = rc == -ERR_POLICY || rc == -ERR_LIMIT || rc == -ERR_INVALID;
    *ret_bytes = r.relay != NULL ? relay_bytes(r.relay) : 0;
    fd_close(&r.tree);
    fd_close(&r.dir);
    if (rc < 0 && rc == -ERR_TIMEOUT && clock_mono_ns() >= r.deadline_ns)
        (void)err_prefix(e, "%s_timeout is %lld s", w->kind == ARTIFACT_GIT ? "git" : "hg",
                         (long long)(w->total_ms / 1000));
    return rc; /* the relay's threads may still look at its memory */
}
