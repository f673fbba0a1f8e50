/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop: posts from threads, timers, watches, workers, signals, addresses, teardown.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "net/addr.h"
#include "net/loop.h"
#include "net/stream.h"
#include "tests/lib/test.h"

static int order[8];
static int n_order;
static bool all_closed;

static void
note(void *arg)
{
    order[n_order++] = (int)(intptr_t)arg;
}

static void
set(void *arg)
{
    *(bool *)arg = true;
}

START_TEST(posts_keep_order)
{
    struct loop *l = loop_new();
    bool done = false;
    for (intptr_t i = 0; i < 4; i++)
        loop_post(l, note, (void *)i);
    loop_post(l, set, &done);
    ck_assert_int_eq(n_order, 0);
    ck_assert(loop_run_until(l, &done, 5000));
    ck_assert_int_eq(n_order, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(order[i], i);
    loop_free(l);
}
END_TEST

struct flood {
    struct loop *l;
    atomic_int *left;
    bool *done;
};

static void
flood_one(void *arg)
{
    struct flood *f = arg;
    if (atomic_fetch_sub(f->left, 1) == 1)
        *f->done = true;
}

static void *
flood_thread(void *arg)
{
    struct flood *f = arg;
    for (int i = 0; i < 10000; i++)
        loop_post(f->l, flood_one, f);
    return NULL;
}

START_TEST(posts_from_threads_all_arrive)
{
    struct loop *l = loop_new();
    atomic_int left = 40000;
    bool done = false;
    struct flood f = {l, &left, &done};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, flood_thread, &f), 0);
    ck_assert(loop_run_until(l, &done, 10000));
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    ck_assert_int_eq(atomic_load(&left), 0);
    loop_free(l);
}
END_TEST

START_TEST(posts_left_are_run_by_free)
{
    struct loop *l = loop_new();
    bool ran = false;
    loop_post(l, set, &ran);
    loop_free(l);
    ck_assert(ran);
}
END_TEST

START_TEST(timers_fire_in_order_and_stop)
{
    struct loop *l = loop_new();
    bool done = false;
    timer_start(l, 20, note, (void *)2);
    timer_start(l, 5, note, (void *)1);
    struct timer *never = timer_start(l, 10, note, (void *)9);
    timer_start(l, 40, set, &done);
    timer_stop(never);
    ck_assert(loop_run_until(l, &done, 5000));
    ck_assert_int_eq(n_order, 2);
    ck_assert_int_eq(order[0], 1);
    ck_assert_int_eq(order[1], 2);
    loop_free(l);
}
END_TEST

/* Due before the turn began: what it sets is seen before the loop waits for something else. */
START_TEST(what_a_late_timer_sets_is_seen_at_once)
{
    struct loop *l = loop_new();
    bool done = false;
    timer_start(l, 1, set, &done);
    int64_t from = clock_mono_ns();
    while (clock_mono_ns() < from + 5000000)
        ;
    ck_assert(loop_run_until(l, &done, 20000));
    ck_assert_int_lt(clock_mono_ns() - from, 10000000000);
    loop_free(l);
}
END_TEST

/* A timer is never early, by no part of a millisecond: who finds nothing due then waits for ever. */
START_TEST(timers_are_never_early)
{
    struct loop *l = loop_new();
    for (int i = 0; i < 200; i++) {
        bool done = false;
        int64_t from = clock_mono_ns(), until = from + i % 20 * 50000;
        while (clock_mono_ns() < until)
            ;
        from = clock_mono_ns();
        timer_start(l, 1 + i % 3, set, &done);
        ck_assert(loop_run_until(l, &done, 20000));
        ck_assert_int_ge(clock_mono_ns() - from, (1 + i % 3) * 1000000);
    }
    loop_free(l);
}
END_TEST

START_TEST(run_until_gives_up)
{
    struct loop *l = loop_new();
    bool never = false;
    ck_assert(!loop_run_until(l, &never, 10));
    loop_free(l);
}
END_TEST

struct pipe_watch {
    struct watch *w;
    bool done;
};

static void
readable(void *arg, int fd, unsigned events)
{
    struct pipe_watch *p = arg;
    char c;
    ck_assert(events & (WATCH_READ | WATCH_ERROR));
    ck_assert_int_eq(read(fd, &c, 1), 1);
    ck_assert_int_eq(c, 'x');
    watch_stop(p->w);
    p->done = true;
}

START_TEST(watches_tell_of_readable_fds)
{
    struct loop *l = loop_new();
    int fd[2];
    struct pipe_watch p = {0};
    ck_assert_int_eq(pipe(fd), 0);
    p.w = watch_fd(l, fd[0], WATCH_READ, readable, &p);
    ck_assert_ptr_nonnull(p.w);
    ck_assert_int_eq(write(fd[1], "x", 1), 1);
    ck_assert(loop_run_until(l, &p.done, 5000));
    loop_free(l);
    close(fd[0]);
    close(fd[1]);
}
END_TEST

static pthread_t work_thread;

static void
work(void *arg)
{
    (void)arg;
    work_thread = pthread_self();
}

START_TEST(work_runs_elsewhere)
{
    struct loop *l = loop_new();
    bool done = false;
    loop_work(l, work, set, &done);
    ck_assert(loop_run_until(l, &done, 5000));
    ck_assert(!pthread_equal(work_thread, pthread_self()));
    loop_free(l);
}
END_TEST

static void
on_signal(void *arg, int sig)
{
    ck_assert_int_eq(sig, SIGHUP);
    loop_stop(arg);
}

static void
hup(void *arg)
{
    (void)arg;
    kill(getpid(), SIGHUP);
}

START_TEST(signals_reach_the_loop)
{
    struct loop *l = loop_new();
    loop_on_signal(l, SIGHUP, on_signal, l);
    loop_post(l, hup, NULL);
    loop_run(l);
    loop_free(l);
}
END_TEST

START_TEST(free_aborts_on_an_open_handle)
{
    struct loop *l = loop_new();
    bool b = false;
    timer_start(l, 100000, set, &b);
    loop_free(l);
}
END_TEST

START_TEST(addresses)
{
    struct addr a;
    struct err e = ERR_INIT;
    char t[ADDR_TEXT];
    ck_assert_int_eq(addr_parse("{a]:80", 0, &a, &e), -ERR_INVALID); /* no address reads it again */
    err_clear(&e);
    ck_assert_int_eq(addr_parse("127.0.0.1:80", 0, &a, &e), 0);
    ck_assert_str_eq(a.host, "127.0.0.1");
    ck_assert_uint_eq(a.port, 80);
    ck_assert(addr_is_numeric(&a));
    ck_assert_int_eq(addr_parse("10.0.0.1.example:80", 0, &a, &e), 0);
    ck_assert(!addr_is_numeric(&a));
    ck_assert_int_eq(addr_parse("http://[::1]:4646/", 0, &a, &e), 0);
    ck_assert_str_eq(addr_format(&a, t), "[::1]:4646");
    ck_assert_int_eq(addr_parse("::1", 7, &a, &e), 0);
    ck_assert_str_eq(addr_format(&a, t), "[::1]:7");
    ck_assert(addr_is_numeric(&a));
    ck_assert_int_eq(addr_parse("unix:///run/x.sock", 0, &a, &e), 0);
    ck_assert(a.is_unix);
    static const char *const bad[] = {"", ":80", "host", "host:", "host:x", "host:70000", "[::1:80",
                                      "https://x:1", "unix://rel", "a b:1", "http://u@h:1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err f = ERR_INIT;
        ck_assert_msg(addr_parse(bad[i], 0, &a, &f) < 0, "%s", bad[i]);
        ck_assert(f.text[0]);
    }
}
END_TEST

/* Timers without delay that start each other leave turns to everybody else. */
struct chain {
    struct loop *l;
    int n;
    bool seen, stop;
};

static void
link_cb(void *arg)
{
    struct chain *c = arg;
    c->n++;
    if (!c->stop && c->n < 100000)
        timer_start(c->l, 0, link_cb, c);
}

static void
seen_cb(void *arg, int fd, unsigned events)
{
    struct chain *c = arg;
    (void)fd;
    (void)events;
    c->seen = c->stop = true;
}

START_TEST(a_chain_without_delay_starves_nobody)
{
    int p[2];
    struct chain c = {.l = loop_new()};
    ck_assert_int_eq(pipe(p), 0);
    ck_assert_int_eq(write(p[1], "x", 1), 1);
    struct watch *w = watch_fd(c.l, p[0], WATCH_READ, seen_cb, &c);
    timer_start(c.l, 0, link_cb, &c);
    ck_assert(loop_run_until(c.l, &c.seen, 5000));
    ck_assert_int_lt(c.n, 10);
    watch_stop(w);
    loop_free(c.l);
    close(p[0]);
    close(p[1]);
}
END_TEST

static void
closed(void *arg, int code)
{
    *(int *)arg = code;
    set(&all_closed);
}

/* A machine where only `lo` is up: nobody listens, but the name is found. */
START_TEST(localhost_needs_no_network)
{
    TEST_NEED("root");
    static const struct stream_ops ops = {.on_close = closed};
    struct ifreq q = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct addr a = {.host = "localhost", .port = 1};
    int code = 0;
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &q), 0);
    struct loop *l = loop_new();
    ck_assert_ptr_nonnull(stream_connect(l, &a, NULL, &ops, &code));
    ck_assert(loop_run_until(l, &all_closed, 10000));
    ck_assert_int_eq(code, -ECONNREFUSED);
    loop_free(l);
    close(fd);
}
END_TEST

static void
take(void *arg, struct stream *s)
{
    stream_close(s);
    set(arg);
}

static int64_t
cpu_ns(void)
{
    struct timespec ts;
    ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts), 0);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* A socket on which somebody waits is readable for as long as nobody can be accepted: the loop goes
 * on meanwhile, and does not turn round and round. */
START_TEST(connections_wait_for_descriptors)
{
    struct loop *l = loop_new();
    struct err e = ERR_INIT;
    struct addr a = {.host = "127.0.0.1"};
    bool came = false, over = false;
    struct listener_config cfg = {
        .conns_max = 8, .per_peer = 8, .on_accept = take, .arg = &came};
    struct listener *n = listener_new(l, &a, &cfg, &e);
    ck_assert_msg(n != NULL, "%s", e.text);
    auto_fd int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(listener_port(n)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rlimit was;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, was.rlim_max}), 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&to, sizeof(to)), 0);
    timer_start(l, 300, set, &over);
    int64_t begin = clock_mono_ns(), cpu = cpu_ns();
    ck_assert(loop_run_until(l, &over, 60000));
    ck_assert_int_lt(cpu_ns() - cpu, (clock_mono_ns() - begin) / 4);
    ck_assert(!came);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert(loop_run_until(l, &came, 60000));
    listener_close(n);
    loop_free(l);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("loop");
    TCase *tc = tcase_create("loop");
    tcase_set_timeout(tc, 20);
    tcase_add_test(tc, posts_keep_order);
    tcase_add_test(tc, a_chain_without_delay_starves_nobody);
    tcase_add_test(tc, posts_from_threads_all_arrive);
    tcase_add_test(tc, posts_left_are_run_by_free);
    tcase_add_test(tc, timers_fire_in_order_and_stop);
    tcase_add_test(tc, what_a_late_timer_sets_is_seen_at_once);
    tcase_add_test(tc, timers_are_never_early);
    tcase_add_test(tc, run_until_gives_up);
    tcase_add_test(tc, watches_tell_of_readable_fds);
    tcase_add_test(tc, work_runs_elsewhere);
    tcase_add_test(tc, signals_reach_the_loop);
    tcase_add_test_raise_signal(tc, free_aborts_on_an_open_handle, SIGABRT);
    tcase_add_test(tc, addresses);
    tcase_add_test(tc, localhost_needs_no_network);
    tcase_add_test(tc, connections_wait_for_descriptors);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
