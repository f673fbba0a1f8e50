/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the warden alone: a request that the table would refuse fails before it is
 * sent, and one that the connection is lost with is not sent for ever.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/limits.h"
#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/client.h"
#include "isolation/launch/proto.h"
#include "isolation/limits.h"
#include "isolation/packet.h"
#include "tests/lib/test.h"

static const char id[] = "01234567-89ab-cdef-0123-456789abcdef";

/* --- a warden that does nothing, and does not live through a request about the task "bad" --- */

static void
reply(int fd, uint64_t seq)
{
    struct warden_info info = {.version = "fake", .protocol = PROTO_VERSION};
    struct warden_response m = {.seq = seq, .info = &info};
    auto_buf struct buf b = BUF_INIT(4096);
    mp_encode(&b, &type_warden_response, &m);
    ck_assert_int_eq(packet_send(fd, b.data, b.len, NULL, 0), 0);
}

/* One connection, until it is closed by either side. `slow`: what launches of such a task get. */
static void
serve(int fd, bool slow)
{
    static uint8_t packet[PROTO_PACKET_MAX];
    for (;;) {
        auto_mem void *ctx = mem_ctx("serve");
        struct pollfd p = {.fd = fd, .events = POLLIN};
        struct warden_request *q = NULL;
        struct err e = ERR_INIT;
        (void)poll(&p, 1, -1);
        long n = packet_recv(fd, packet, sizeof(packet), NULL, NULL);
        if (n <= 0)
            return;
        ck_assert_msg(proto_decode(ctx, packet, (size_t)n, PROTO_READY, &q, &e) == 0, "%s", e.text);
        const char *task = q->spec != NULL ? q->spec->task_name : q->task_name;
        if (str_eq(task, "bad"))
            return;
        if (slow || !str_eq(task, "slow"))
            reply(fd, q->seq);
    }
}

static char dir[] = "/tmp/paddock-client-XXXXXX", path[64];

static void
clean(void)
{
    (void)unlink(path);
    (void)rmdir(dir);
}

static char *
fake_warden(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    ck_assert_int_eq(atexit(clean), 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    str_copy(a.sun_path, sizeof(a.sun_path), path);
    int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ck_assert_int_eq(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(listen(s, 4), 0);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0;; i++) {
            int fd = accept(s, NULL, NULL);
            serve(fd, i > 1);
            close(fd);
        }
    }
    close(s);
    return path;
}

/* --- the agent --- */

struct ask {
    unsigned done;
    struct err err;
};

static void
answered(void *arg, const struct err *e, struct warden_reply *r)
{
    struct ask *a = arg;
    (void)r;
    a->done++;
    a->err = e != NULL ? *e : (struct err){.code = 0};
}

static struct launch_spec *
spec(const void *ctx, const char *task)
{
    struct launch_spec *s = type_new(ctx, &type_launch_spec);
    s->alloc_id = id;
    s->task_name = task;
    s->driver = "exec";
    s->command = "/bin/true";
    return s;
}

static void
launch(struct warden_client *c, const char *task, struct ask *a)
{
    auto_mem void *ctx = mem_ctx("launch");
    *a = (struct ask){0};
    warden_launch(c, spec(ctx, task), answered, a);
}

static void
drain(struct warden_client *c)
{
    ck_assert_int_eq(warden_client_drain(c, 10000), 0);
}

static struct warden_client *
connected(void *ctx)
{
    struct err e = ERR_INIT;
    struct warden_client *c = warden_client_new(ctx, fake_warden());
    ck_assert_msg(warden_client_connect(c, &e) == 0, "%s", e.text);
    return c;
}

START_TEST(a_request_with_which_connections_are_lost_fails_and_no_other_does)
{
    auto_mem void *ctx = mem_ctx("test");
    struct warden_client *c = connected(ctx);
    struct err e = ERR_INIT;
    struct ask slow, bad, good;
    launch(c, "slow", &slow);
    launch(c, "bad", &bad);
    launch(c, "good", &good);
    drain(c);
    ck_assert_int_eq(slow.err.code, -ERR_UNAVAILABLE);
    ck_assert_int_eq(bad.err.code, -ERR_UNAVAILABLE);
    ck_assert_int_eq(good.err.code, -ERR_UNAVAILABLE);
    ck_assert_int_eq(warden_client_connect(c, &e), 0); /* the second */
    launch(c, "slow", &slow);
    launch(c, "bad", &bad);
    launch(c, "good", &good);
    drain(c);
    ck_assert_int_eq(bad.err.code, -ERR_UNAVAILABLE);
    ck_assert_int_eq(warden_client_connect(c, &e), 0); /* the third, without the one to blame */
    launch(c, "slow", &slow);
    launch(c, "bad", &bad);
    launch(c, "good", &good);
    drain(c);
    ck_assert_int_eq(slow.err.code, 0);
    ck_assert_int_eq(good.err.code, 0);
    ck_assert_int_eq(bad.err.code, -ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(bad.err.text, "lost with this request"));
    ck_assert(warden_client_connected(c));
    launch(c, "bad", &bad);
    drain(c);
    ck_assert_int_eq(bad.err.code, -ERR_INTERNAL);
    ck_assert(warden_client_connected(c));
}
END_TEST

START_TEST(what_ends_a_task_is_asked_for_however_often_the_connection_is_lost)
{
    auto_mem void *ctx = mem_ctx("test");
    struct warden_client *c = connected(ctx);
    struct err e = ERR_INIT;
    for (int i = 0; i < 10; i++) {
        struct ask a = {0};
        ck_assert_int_eq(warden_client_connect(c, &e), 0);
        warden_kill(c, id, "bad", answered, &a);
        drain(c);
        ck_assert_int_eq(a.err.code, -ERR_UNAVAILABLE);
        ck_assert(!warden_client_connected(c));
    }
}
END_TEST

/* --- every limit of the schema --- */

static void
refused(struct warden_client *c, const struct launch_spec *s, const struct field *f)
{
    struct ask a = {0};
    warden_launch(c, s, answered, &a);
    drain(c);
    ck_assert_msg(a.err.code == -ERR_INVALID && strstr(a.err.text, f->wire) != NULL, "%s: %d %s",
                  f->wire, a.err.code, a.err.text);
    ck_assert_msg(warden_client_connected(c), "%s", f->wire);
}

/* `obj` is `s` or a part of it: each field of it beyond its limit, one after the other. Returns how
 * many. */
static unsigned
beyond(void *ctx, struct warden_client *c, const struct launch_spec *s, const struct type *t,
       void *obj)
{
    unsigned n = 0;
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        void *at = (char *)obj + f->offset;
        if (f->type == FT_STRUCT) {
            void *sub = type_new(ctx, f->sub);
            struct object_list was = {0}, one = {.v = mem_dup(ctx, &sub, sizeof(sub)), .n = 1};
            size_t size = f->shape == FS_ONE ? sizeof(void *) : sizeof(was);
            memcpy(&was, at, size);
            memcpy(at, f->shape == FS_ONE ? (void *)&sub : (void *)&one, size);
            n += beyond(ctx, c, s, f->sub, sub);
            memcpy(at, &was, size);
        }
        if (f->max == 0)
            continue;
        n++;
        if (f->shape == FS_ONE) {
            const char *was;
            char *text = mem_array(ctx, char, f->max + 2);
            memset(text, 'x', f->max + 1);
            memcpy(&was, at, sizeof(was));
            memcpy(at, &text, sizeof(text));
            refused(c, s, f);
            memcpy(at, &was, sizeof(was));
        } else {
            struct object_list was,
                many = {.v = mem_array(ctx, void *, f->max + 1), .n = f->max + 1};
            for (size_t k = 0; k < many.n && f->type != FT_INT; k++)
                many.v[k] = f->type == FT_STRUCT ? type_new(ctx, f->sub) : mem_strdup(ctx, "a=b");
            memcpy(&was, at, sizeof(was));
            memcpy(at, &many, sizeof(many));
            refused(c, s, f);
            memcpy(at, &was, sizeof(was));
        }
    }
    return n;
}

START_TEST(a_launch_beyond_any_limit_of_the_schema_fails_before_it_is_sent)
{
    auto_mem void *ctx = mem_ctx("test");
    struct warden_client *c = connected(ctx);
    struct launch_spec *s = spec(ctx, "web");
    ck_assert_uint_gt(beyond(ctx, c, s, &type_launch_spec, s), 20);
    struct ask a;
    launch(c, "good", &a);
    drain(c);
    ck_assert_int_eq(a.err.code, 0);
}
END_TEST

START_TEST(other_requests_that_the_table_refuses_fail_before_they_are_sent)
{
    auto_mem void *ctx = mem_ctx("test");
    struct warden_client *c = connected(ctx);
    struct ask a = {0};
    struct warden_task t = {.name = ".x", .driver = "exec"};
    const struct warden_task *tasks[JOB_TASKS_MAX + 1] = {&t};
    struct warden_alloc alloc = {.id = id, .tasks = tasks, .n = 1};
    struct net_request net = {.mode = "cni/x"};
    struct task_isolation iso = {.nofile = -1};
    struct launch_limits l = {.cpu_max = 0};
    struct launch_spec s = {.alloc_id = id, .task_name = "web", .limits = &l, .isolation = &iso};
    struct exec_request x = {0};
    warden_alloc_make(c, &alloc, answered, &a);
    warden_kill(c, id, "a\nb", answered, &a);
    warden_destroy(c, id, ".x", answered, &a);
    warden_open(c, id, "../x", answered, &a);
    warden_net_make(c, id, &net, answered, &a);
    warden_resize(c, &s, answered, &a);
    warden_exec(c, id, "web", &x, answered, &a);
    t.name = "x";
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++)
        tasks[i] = &t;
    alloc.n = ARRAY_LEN(tasks);
    warden_alloc_make(c, &alloc, answered, &a);
    ck_assert_uint_eq(a.done, 0); /* never from inside */
    drain(c);
    ck_assert_uint_eq(a.done, 8);
    ck_assert_int_eq(a.err.code, -ERR_INVALID);
    alloc.n = JOB_TASKS_MAX;
    warden_alloc_make(c, &alloc, answered, &a);
    drain(c);
    ck_assert_int_eq(a.err.code, 0);
    ck_assert(warden_client_connected(c));
}
END_TEST

static uint64_t
limit(const struct type *t, const char *field)
{
    return type_field(t, field, strlen(field))->max;
}

START_TEST(limits_of_jobs_are_those_of_the_table)
{
    ck_assert_uint_eq(JOB_TASKS_MAX, limit(&type_warden_request, "Tasks"));
    ck_assert_uint_eq(JOB_TASK_NAME_MAX, limit(&type_warden_request, "TaskName"));
    ck_assert_uint_eq(JOB_TASK_NAME_MAX, limit(&type_warden_task, "Name"));
    ck_assert_uint_eq(JOB_TASK_NAME_MAX, limit(&type_launch_spec, "TaskName"));
    ck_assert_uint_eq(JOB_PORTS_MAX, limit(&type_net_request, "Ports"));
    ck_assert_uint_eq(JOB_PORTS_MAX, NET_PORTS_MAX);
    ck_assert_uint_eq(JOB_HOSTNAME_MAX, limit(&type_launch_spec, "Hostname"));
    ck_assert_uint_eq(JOB_PATH_MAX, limit(&type_task_verity, "Path"));
    ck_assert_uint_eq(JOB_CORES_MAX, limit(&type_launch_limits, "Cores"));
    ck_assert_uint_eq(JOB_TCP_PORTS_MAX, CONFINE_PORTS_MAX);
}
END_TEST

TEST_SUITE("warden-client", a_request_with_which_connections_are_lost_fails_and_no_other_does,
           what_ends_a_task_is_asked_for_however_often_the_connection_is_lost,
           a_launch_beyond_any_limit_of_the_schema_fails_before_it_is_sent,
           other_requests_that_the_table_refuses_fail_before_they_are_sent,
           limits_of_jobs_are_those_of_the_table)
