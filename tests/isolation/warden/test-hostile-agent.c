/* SPDX-License-Identifier: Apache-2.0
 *
 * A fully compromised agent: this test holds its end of the warden's socket and sends what it
 * likes, a table of launches that each want one thing more than the policy gives, and then
 * thousands of requests that were valid before they were changed (seeded: PADDOCK_SEED repeats).
 * Whatever is answered, nothing outside of the policy is there at any moment, the host is as it was
 * at the end, and a proper agent is served.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/err.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/random.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/launch/proto.h"
#include "isolation/packet.h"
#include "tests/attempts/watch.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { ROUNDS = 4000, ROUNDS_LONG = 50000, LOOK_EVERY = 250, AGENT = 65533 };

static const char *const ids[] = {"01234567-89ab-cdef-0123-456789abcdef",
                                  "11111111-2222-3333-4444-555555555555",
                                  "99999999-0000-0000-0000-000000000000"};
static const char *const tasks[] = {"web", "db", "x"};

static uint64_t seed;
static size_t
below(size_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % n);
}

/* Strings that are wrong in most places. */
static const char *
poison(const void *ctx)
{
    static const char *const v[] = {
        "",
        ".",
        "..",
        "../../outside",
        "/etc/passwd",
        "/",
        "alloc",
        "web/../..",
        "web/local",
        "alloc/logs",
        "root",
        "0",
        "0:0",
        "raw_exec",
        "exec",
        "docker",
        "unconfined",
        "host",
        "A=B",
        "LD_PRELOAD",
        "NO",
        "x\ny=z",
        "cgroup.kill",
        "CAP_SYS_ADMIN",
        "none",
        "bridge",
        "required",
        "off",
        "127.0.0.1",
        "\xff\xfe",
        "secrets",
        "web/secrets",
        "web/local/x",
        "11111111-2222-3333-4444-555555555555",
    };
    switch (below(12)) {
    case 0:
        return mem_printf(ctx, "%0*d", (int)below(9000), 1);
    case 1: {
        char *s = mem_strdup(ctx, "");
        for (size_t n = below(200); n > 0; n--)
            s = mem_printf(ctx, "%s../", s);
        return s;
    }
    case 2:
        return mem_printf(ctx, "/proc/self/fd/%zu/../..", below(40));
    default:
        return v[below(ARRAY_LEN(v))];
    }
}

static int64_t
odd_number(void)
{
    static const int64_t v[] = {0,  1,         -1,        9,         15,        64,   65,
                                -9, INT64_MAX, INT64_MIN, INT32_MAX, 1 << 30,   0777, 04755,
                                02, 4096,      100000,    1000000,   UINT32_MAX};
    return v[below(ARRAY_LEN(v))];
}

/* --- valid requests, and what becomes of them --- */

static struct launch_spec *
valid_spec(struct rig *r, const void *ctx)
{
    struct launch_spec *s = rig_spec(r, ids[below(2)], tasks[below(2)], true, "sleep 0.2");
    (void)talloc_steal(ctx, s);
    return s;
}

static struct warden_request *
valid_request(struct rig *r, const void *ctx)
{
    struct warden_request *q = type_new(ctx, &type_warden_request);
    q->seq = below(1000);
    q->op = 1 + below(WARDEN_OP_END - 1);
    q->alloc_id = ids[below(3)];
    switch (q->op) {
    case WARDEN_INFO:
    case WARDEN_LIST:
        q->alloc_id = NULL;
        return q;
    case WARDEN_LAUNCH:
        q->alloc_id = NULL;
        q->spec = valid_spec(r, ctx);
        return q;
    case WARDEN_ALLOC_MAKE: {
        struct warden_task *t = type_new(ctx, &type_warden_task);
        t->name = tasks[below(3)];
        t->driver = "exec";
        list_add(q, q->tasks, t);
        q->disk_mb = below(100);
        return q;
    }
    case WARDEN_ALLOC_REMOVE:
    case WARDEN_NET_REMOVE:
        return q;
    case WARDEN_OPEN:
    case WARDEN_STAT:
    case WARDEN_READDIR:
        q->path = below(2) ? "alloc/logs" : "web/local";
        return q;
    case WARDEN_NET_MAKE:
        q->network = type_new(ctx, &type_net_request);
        q->network->mode = "none";
        return q;
    default:
        q->task_name = tasks[below(2)];
    }
    if (q->op == WARDEN_SIGNAL)
        q->signal = 15;
    if (q->op == WARDEN_RESIZE)
        q->limits = type_new(ctx, &type_launch_limits);
    if (q->op == WARDEN_EXEC) {
        q->exec = type_new(ctx, &type_exec_request);
        list_add(q->exec, q->exec->command, "/bin/true");
        q->exec->tty = below(2);
    }
    if (q->op == WARDEN_PUT) {
        q->path = "web/local/put";
        q->data = (struct bytes){(const uint8_t *)"text", 4};
        q->mode = 0644;
    }
    return q;
}

static void
spoil_spec(struct launch_spec *s)
{
    const char *const t = poison(s);
    const char **const strings[] = {&s->alloc_id, &s->task_name, &s->driver,
                                    &s->user,     &s->command,   &s->work_dir,
                                    &s->hostname, &s->seccomp,   &s->isolation->userns};
    if (s->limits == NULL)
        s->limits = type_new(s, &type_launch_limits);
    if (s->isolation == NULL)
        s->isolation = type_new(s, &type_task_isolation);
    if (s->logs == NULL)
        s->logs = type_new(s, &type_launch_logs);
    int64_t *const numbers[] = {
        &s->limits->cpu_max,    &s->limits->memory_max, &s->isolation->pids_max,
        &s->isolation->nofile,     &s->logs->max_files,    &s->logs->max_file_bytes,
        &s->limits->cpu_shares, &s->secrets_mb,         &s->kill_signal};
    switch (below(8)) {
    case 0:
        list_add(s, s->args, t);
        break;
    case 1:
        list_add(s, s->env, t);
        break;
    case 2:
        list_add(s, s->cap_add, t);
        break;
    case 3: {
        struct launch_mount *m = type_new(s, &type_launch_mount);
        m->source = below(2) ? t : "/etc";
        m->target = poison(s);
        list_add(s, s->mounts, m);
        break;
    }
    case 4:
        *numbers[below(ARRAY_LEN(numbers))] = odd_number();
        break;
    case 5:
        s->isolated ^= below(2) == 0;
        s->host_pid ^= below(4) == 0;
        s->host_ipc ^= below(4) == 0;
        s->share_net ^= below(4) == 0;
        break;
    default:
        *strings[below(ARRAY_LEN(strings))] = t;
    }
}

static void
spoil_exec(struct exec_request *x)
{
    switch (below(4)) {
    case 0:
        list_add(x, x->command, poison(x));
        break;
    case 1:
        list_add(x, x->env, poison(x));
        break;
    case 2:
        x->work_dir = poison(x);
        break;
    default:
        *(below(2) ? &x->rows : &x->columns) = odd_number();
    }
}

static void
spoil(struct warden_request *q)
{
    const char **const strings[] = {&q->alloc_id, &q->task_name, &q->path, &q->owner};
    int64_t *const numbers[] = {&q->signal, &q->offset, &q->mode, &q->disk_mb};
    switch (below(7)) {
    case 0:
    case 1:
        *strings[below(ARRAY_LEN(strings))] = poison(q);
        break;
    case 2:
        *numbers[below(ARRAY_LEN(numbers))] = odd_number();
        break;
    case 3:
        q->op = below(WARDEN_OP_END + 3);
        break;
    case 4:
        for (size_t i = 0; i < q->tasks.n; i++)
            *(below(2) ? &q->tasks.v[i]->name : &q->tasks.v[i]->user) = poison(q);
        break;
    case 5:
        q->data = (struct bytes){mem_array(q, uint8_t, 200000), below(200000)};
        break;
    default:
        if (q->spec != NULL)
            spoil_spec(q->spec);
        if (q->exec != NULL)
            spoil_exec(q->exec);
    }
}

/* Bytes that are no longer what was encoded. */
static size_t
spoil_bytes(uint8_t *p, size_t n, size_t max)
{
    for (size_t k = 1 + below(4); k > 0 && n > 0; k--)
        switch (below(5)) {
        case 0:
            p[below(n)] = (uint8_t)below(256);
            break;
        case 1:
            p[below(n)] ^= (uint8_t)(1u << below(8));
            break;
        case 2:
            n = below(n) + 1;
            break;
        case 3: { /* a piece of itself once more */
            size_t at = below(n), len = below(n - at) + 1;
            len = len < max - n ? len : max - n;
            memmove(p + n, p + at, len);
            n += len;
            break;
        }
        default:
            memset(p + below(n), 0xdf, 1); /* an array or map of four billion */
        }
    return n;
}

/* --- the socket --- */

struct agent {
    struct rig *r;
    int fd;
    bool greeted;
    size_t sent, closed, answered, granted;
};

static void
agent_connect(struct agent *a)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    ck_assert(str_copy(sun.sun_path, sizeof(sun.sun_path), a->r->socket));
    fd_close(&a->fd);
    a->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(a->fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
    packet_buffers(a->fd);
    a->greeted = false;
}

/* The answer's code, or -1 where the connection was closed. What comes along is closed. */
static int
agent_answer(struct agent *a)
{
    static uint8_t buf[PROTO_PACKET_MAX];
    int fds[PACKET_FDS_MAX];
    size_t n_fds = 0;
    struct pollfd p = {.fd = a->fd, .events = POLLIN};
    ck_assert_msg(poll(&p, 1, 15000) == 1, "neither an answer nor the end");
    long n = packet_recv(a->fd, buf, sizeof(buf), fds, &n_fds);
    for (size_t i = 0; i < n_fds; i++)
        close(fds[i]);
    if (n <= 0) {
        a->closed++;
        agent_connect(a);
        return -1;
    }
    auto_mem void *ctx = mem_ctx("answer");
    void *ret = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(mp_decode(ctx, &type_warden_response, SLICE(buf, (size_t)n), BUDGET(8 << 20), &ret, &e),
                     0);
    a->answered++;
    const struct warden_response *w = ret;
    return (int)w->code;
}

static int
agent_send(struct agent *a, const void *p, size_t n, const int *fds, size_t n_fds)
{
    a->sent++;
    if (packet_send(a->fd, p, n, fds, n_fds) < 0) { /* too large, or the end that came before */
        agent_connect(a);
        return -1;
    }
    return agent_answer(a);
}

static int
agent_ask(struct agent *a, const struct warden_request *q)
{
    auto_buf struct buf b = BUF_INIT(PROTO_DECODE_MAX);
    mp_encode(&b, &type_warden_request, q);
    return buf_error(&b) != 0 ? -1 : agent_send(a, b.data, b.len, NULL, 0);
}

static void
agent_greet(struct agent *a)
{
    const struct warden_request hello = {.op = WARDEN_INFO};
    if (!a->greeted)
        ck_assert_int_eq(agent_ask(a, &hello), 0);
    a->greeted = true;
}

/* --- what may be there --- */

static char *
tree(const void *ctx, const char *top, char *text)
{
    DIR *d = opendir(top);
    ck_assert_msg(d != NULL, "%s", top);
    const char *names[64];
    size_t n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && n < ARRAY_LEN(names))
            names[n++] = mem_strdup(ctx, e->d_name);
    closedir(d);
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && strcmp(names[k - 1], names[k]) > 0; k--) {
            const char *t = names[k];
            names[k] = names[k - 1];
            names[k - 1] = t;
        }
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        const char *path = mem_printf(ctx, "%s/%s", top, names[i]);
        ck_assert_int_eq(lstat(path, &st), 0);
        text = mem_printf(ctx, "%s%s %o %d:%d %lld\n", text, path, (unsigned)st.st_mode,
                          (int)st.st_uid, (int)st.st_gid,
                          S_ISDIR(st.st_mode) ? 0LL : (long long)st.st_size);
        if (S_ISDIR(st.st_mode) && !str_eq(names[i], "records") && !str_eq(names[i], "run"))
            text = uuid_valid(names[i]) ? text : tree(ctx, path, text);
    }
    return text;
}

/* Everything in the rig's directory but allocations and the warden's own. */
static char *
outside(struct rig *r)
{
    return tree(r->ctx, mem_printf(r->ctx, "%s/outside", r->dir), mem_strdup(r->ctx, ""));
}

static bool
status_is(const char *pid, const char *key, const char *value)
{
    char path[300], line[256];
    bool same = false;
    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    FILE *f = fopen(path, "re");
    size_t n = strlen(key);
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, key, n) == 0 && strstr(line, value) != NULL)
            same = true;
    if (f != NULL)
        fclose(f);
    return same;
}

/* No task is root, has a capability or goes without the filter. */
static void
look_at_tasks(struct rig *r)
{
    DIR *d = opendir("/proc");
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char *text = NULL, *where = mem_printf(r->ctx, "/proc/%s/cgroup", e->d_name);
        if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
            file_read(r->ctx, AT_FDCWD, where, 4096, &text, NULL) < 0 ||
            strstr(text, strrchr(r->policy.cgroup_root, '/')) == NULL ||
            strstr(text, "/task") == NULL)
            continue;
        if (status_is(e->d_name, "Name:", "paddock-shim") || status_is(e->d_name, "State:", "Z"))
            continue; /* about to become one, or it was one */
        bool root = status_is(e->d_name, "Uid:", "\t0\t"),
             caps = !status_is(e->d_name, "CapEff:", "0000000000000000"),
             free = !status_is(e->d_name, "Seccomp:", "\t2");
        ck_assert_msg(access(where, F_OK) < 0 || (!root && !caps && !free),
                      "task %s: root %d, capabilities %d, no filter %d", e->d_name, root, caps,
                      free);
    }
    closedir(d);
}

static void
start(struct rig *r, struct agent *a, struct watch *w)
{
    static const char *only[] = {"exec"}, *allowed[1], *modes[] = {"host", "none"};
    rig_start(r, 0);
    allowed[0] = mem_printf(r->ctx, "%s/outside/allowed", r->dir);
    ck_assert_int_eq(mkdir(mem_printf(r->ctx, "%s/outside", r->dir), 0755), 0);
    ck_assert_int_eq(mkdir(allowed[0], 0755), 0);
    ck_assert_int_eq(symlink("/etc", mem_printf(r->ctx, "%s/link", allowed[0])), 0);
    ck_assert_int_eq(
        file_write_atomic(AT_FDCWD, mem_printf(r->ctx, "%s/outside/file", r->dir), "x", 1, 0600),
        0);
    r->policy.drivers = (struct str_list){only, 1};
    r->policy.raw_exec = false;
    r->policy.bind_allowed = (struct str_list){allowed, 1};
    r->policy.network_modes = (struct str_list){modes, 2};
    r->policy.agent_uid = r->policy.agent_gid = AGENT;
    rig_change_policy(r);
    for (size_t i = 0; i < 2; i++)
        rig_alloc(r, ids[i], "web", "exec");
    *a = (struct agent){.r = r, .fd = -1};
    agent_connect(a);
    watch_begin(w, r->dir);
}

/* All that is left goes by proper requests; then one more task is started, runs and ends. */
static void
finish(struct rig *r, struct agent *a, struct watch *w, const char *before)
{
    fd_close(&a->fd);
    rig_kill(r, SIGUSR1); /* with its tasks */
    rig_spawn(r);
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        for (size_t k = 0; k <= ARRAY_LEN(tasks); k++) {
            struct got g = {0};
            if (k < ARRAY_LEN(tasks))
                warden_destroy(r->client, ids[i], tasks[k], rig_got, &g);
            else
                warden_alloc_remove(r->client, ids[i], rig_got, &g);
            rig_wait(r, &g);
            got_free(&g);
        }
    ck_assert_str_eq(outside(r), before);
    watch_end(w, NULL);
    struct got g;
    rig_alloc(r, rig_id, "web", "exec");
    rig_launch(r, rig_spec(r, rig_id, "web", true, "echo served"), &g);
    (void)rig_end(r, &g);
    got_free(&g);
    ck_assert_str_eq(rig_file(r, rig_id, "alloc/logs/web.stdout.0"), "served\n");
    rig_stop(r);
}

/* --- the table: each wants one thing that the policy does not give --- */

enum want {
    W_DRIVER,
    W_ROOT,
    W_ROOT_ID,
    W_AGENT,
    W_CAP,
    W_MOUNT,
    W_MOUNT_UP,
    W_MOUNT_LINK,
    W_MOUNT_BELOW_LINK,
    W_TARGET_UP,
    W_TARGET_PROC,
    W_UNCONFINED,
    W_PROFILE,
    W_PID,
    W_IPC,
    W_USERNS,
    W_NOT_ISOLATED,
    W_ALLOC,
    W_ALLOC_UP,
    W_TASK_UP,
    W_TASK_SLASH,
    W_TASK_ALLOC,
    W_TASK_CGROUP,
    W_ENV,
    W_ENV_LINE,
    W_NO_COMMAND,
    W_LOGS_DIR,
    W_LOGS_MANY,
    W_LIMIT,
    W_NOFILE,
    W_SECRETS,
    W_SIGNAL,
    W_SYSCALL,
    W_LOG_MODE,
    W_HOSTNAME,
    W_WORK_DIR,
    W_SEAL_UP,
    W_SEAL_MANY,
    W_DEVICE,
    W_DEVICE_UP,
    W_VOLUME,
    W_VOLUME_PATH,
    W_VOLUME_UP,
    W_VOLUME_MADE,
    W_NONE
};

static void
want_mount(struct launch_spec *s, const char *source, const char *target)
{
    struct launch_mount *m = type_new(s, &type_launch_mount);
    m->source = source;
    m->target = target;
    list_add(s, s->mounts, m);
}

static void
want_more(struct rig *r, struct launch_spec *s, enum want w)
{
    const char *ok = r->policy.bind_allowed.v[0];
    switch (w) {
    case W_MOUNT:
        want_mount(s, "/etc", "/local/m");
        break;
    case W_MOUNT_UP:
        want_mount(s, mem_printf(s, "%s/../../../../etc", ok), "/local/m");
        break;
    case W_MOUNT_LINK:
        want_mount(s, mem_printf(s, "%s/link", ok), "/local/m");
        break;
    case W_MOUNT_BELOW_LINK:
        want_mount(s, mem_printf(s, "%s/link/ssl", ok), "/local/m");
        break;
    case W_TARGET_UP:
        want_mount(s, ok, "/local/../../../x");
        break;
    case W_TARGET_PROC:
        want_mount(s, ok, "/proc");
        break;
    case W_SYSCALL:
    case W_LOG_MODE:
        s->isolation->seccomp = type_new(s, &type_task_seccomp);
        if (w == W_LOG_MODE)
            s->isolation->seccomp->mode = "log";
        else
            list_add(s, s->isolation->seccomp->allow, "mount");
        break;
    case W_LOGS_DIR:
    case W_LOGS_MANY:
        s->logs = type_new(s, &type_launch_logs);
        s->logs->dir = w == W_LOGS_DIR ? "../../outside" : "alloc/logs";
        s->logs->max_files = w == W_LOGS_DIR ? 1 : 1 << 30;
        s->logs->max_file_bytes = 1 << 20;
        break;
    case W_SEAL_UP:
    case W_SEAL_MANY:
        for (int i = 0; i < (w == W_SEAL_UP ? 1 : VERITY_FILES_MAX + 1); i++) {
            struct task_verity *v = type_new(s, &type_task_verity);
            v->path = w == W_SEAL_UP ? "../../outside/x" : "local/x";
            list_add(s, s->isolation->verity, v);
        }
        break;
    case W_LIMIT:
    case W_NOFILE:
        s->limits = type_new(s, &type_launch_limits);
        *(w == W_LIMIT ? &s->limits->memory_max : &s->isolation->nofile) =
            w == W_LIMIT ? -1 : INT64_MAX;
        break;
    case W_VOLUME:
    case W_VOLUME_PATH:
    case W_VOLUME_UP:
    case W_VOLUME_MADE:
        want_mount(s, NULL, "/local/m");
        s->mounts.v[0]->volume = w == W_VOLUME        ? "etc"
                                 : w == W_VOLUME_PATH ? "/etc"
                                 : w == W_VOLUME_UP   ? "../alloc"
                                                      : ids[0];
        break;
    default:
        ck_abort_msg("no such wish");
    }
}

/* One line per wish. */
/* clang-format off */
static bool
want_plain(struct launch_spec *s, enum want w)
{
    switch (w) {
    case W_DRIVER: s->driver = "raw_exec"; s->isolated = false; break;
    case W_ROOT: s->user = "root"; break;
    case W_ROOT_ID: s->user = "0:0"; break;
    case W_AGENT: s->user = "65533"; break;
    case W_CAP: list_add(s, s->cap_add, "CAP_SYS_ADMIN"); break;
    case W_UNCONFINED: s->seccomp = "unconfined"; break;
    case W_PROFILE: s->seccomp = "../x"; break;
    case W_PID: s->host_pid = true; break;
    case W_IPC: s->host_ipc = true; break;
    case W_USERNS: s->isolation->userns = "host"; break;
    case W_NOT_ISOLATED: s->isolated = false; break;
    case W_ALLOC: s->alloc_id = ids[2]; break;
    case W_ALLOC_UP: s->alloc_id = "../../outside/xxxxxxxxxxxxxxxxxxxxxx"; break;
    case W_TASK_UP: s->task_name = ".."; break;
    case W_TASK_SLASH: s->task_name = "web/../../x"; break;
    case W_TASK_ALLOC: s->task_name = "alloc"; break;
    case W_TASK_CGROUP: s->task_name = "cgroup.procs"; break;
    case W_ENV: list_add(s, s->env, "=x"); break;
    case W_ENV_LINE: list_add(s, s->env, "A\nB=x"); break;
    case W_NO_COMMAND: s->command = ""; break;
    case W_SECRETS: s->secrets_mb = INT64_MAX; break;
    case W_SIGNAL: s->kill_signal = 1000; break;
    case W_HOSTNAME: s->hostname = "../../../../../../../../../../../../../../../../../../../../../.."; break;
    case W_DEVICE: list_add(s, s->devices, "/dev/mem"); break;
    case W_DEVICE_UP: list_add(s, s->devices, "/dev/../etc/shadow"); break;
    case W_WORK_DIR: s->work_dir = "/proc/self/fd/3"; break;
    default:
        return false;
    }
    return true;
}
/* clang-format on */

START_TEST(one_thing_more)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct agent a;
    struct watch w;
    start(&r, &a, &w);
    char *before = outside(&r);
    size_t refused = 0;
    for (enum want k = 0; k < W_NONE; k++) {
        agent_greet(&a);
        auto_mem void *ctx = mem_ctx("want");
        struct warden_request *q = type_new(ctx, &type_warden_request);
        q->op = WARDEN_LAUNCH;
        q->spec = rig_spec(&r, ids[0], "web", true, "sleep 1000");
        if (!want_plain(q->spec, k))
            want_more(&r, q->spec, k);
        ck_assert_msg(agent_ask(&a, q) != 0, "wish %d was granted", (int)k);
        look_at_tasks(&r);
        refused++;
    }
    struct got g = {
        0}; /* nothing of them is left; and without a wish it is no wonder that it starts */
    warden_list(r.client, NULL, NULL, rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_uint_eq(g.n_records, 0);
    got_free(&g);
    agent_greet(&a);
    const struct warden_request plain = {.op = WARDEN_LAUNCH,
                                         .spec = rig_spec(&r, ids[0], "web", true, "sleep 1000")};
    ck_assert_int_eq(agent_ask(&a, &plain), 0);
    printf("# hostile agent: %zu wishes refused, %zu connections closed\n", refused, a.closed);
    finish(&r, &a, &w, before);
}
END_TEST

START_TEST(changed_at_random)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct agent a;
    struct watch w;
    const char *given = getenv("PADDOCK_SEED"), *many = getenv("PADDOCK_LONG");
    uint64_t first = 0;
    if (given == NULL || num_parse_u64(given, &first) < 0 || first == 0)
        first = rand_u64() | 1;
    seed = first;
    printf("# PADDOCK_SEED=%llu\n", (unsigned long long)first);
    fflush(stdout);
    start(&r, &a, &w);
    char *before = outside(&r);
    int fds[3] = {open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                  open("/etc/passwd", O_RDONLY | O_CLOEXEC), a.fd};
    size_t rounds = many != NULL && str_eq(many, "1") ? ROUNDS_LONG : ROUNDS;
    for (size_t i = 0; i < rounds; i++) {
        auto_mem void *ctx = mem_ctx("round");
        struct warden_request *q = valid_request(&r, ctx);
        if (below(20) != 0)
            agent_greet(&a);
        if (below(8) != 0)
            spoil(q);
        auto_buf struct buf b = BUF_INIT(PROTO_DECODE_MAX);
        mp_encode(&b, &type_warden_request, q);
        if (buf_error(&b) != 0)
            continue;
        size_t n = b.len, max = n * 2 + 16;
        uint8_t *p = mem_array(ctx, uint8_t, max);
        memcpy(p, b.data, n);
        if (below(5) == 0)
            n = spoil_bytes(p, n, max);
        fds[2] = a.fd;
        a.granted += agent_send(&a, p, n, fds, below(30) == 0 ? 1 + below(3) : 0) == 0;
        if (i % LOOK_EVERY == 0)
            look_at_tasks(&r);
    }
    look_at_tasks(&r);
    printf("# hostile agent: %zu requests, %zu answered (%zu granted), %zu connections closed\n",
           a.sent, a.answered, a.granted, a.closed);
    ck_assert_msg(a.granted > 0 && a.closed > 0 && a.answered > a.granted, "that was no test");
    close(fds[0]);
    close(fds[1]);
    finish(&r, &a, &w, before);
}
END_TEST

TEST_SUITE_TIMEOUT("hostile-agent", 120, one_thing_more, changed_at_random)
