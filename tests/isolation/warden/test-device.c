/* SPDX-License-Identifier: Apache-2.0
 *
 * The one device of the host that a task can be given, with another in its place: /dev/full says
 * what it is when it is written to.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

#define LOOK                                                                                       \
    "ls -ld /dev/kvm | cut -c 1-10; dd if=/dev/zero of=/dev/kvm bs=1 count=1 2>&1 | grep -o 'No "  \
    "space\\|Read-only'; mknod /tmp/kvm c 1 7 2>/dev/null && echo made; true"

/* In a mount namespace of the test: a /dev with the usual ones, and that. */
static void
fake_dev(struct rig *r)
{
    static const char *const usual[] = {"null", "zero", "full", "random", "urandom", "tty", "shm"};
    const char *dev = mem_printf(r->ctx, "%s/dev", r->dir);
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert_int_eq(mkdir(dev, 0755), 0);
    ck_assert_int_eq(mount("tmpfs", dev, "tmpfs", 0, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        const char *from = mem_printf(r->ctx, "/dev/%s", usual[i]);
        const char *to = mem_printf(r->ctx, "%s/%s", dev, usual[i]);
        struct stat st;
        ck_assert_int_eq(stat(from, &st), 0);
        ck_assert_int_eq(S_ISDIR(st.st_mode) ? mkdir(to, 0755) : mknod(to, S_IFREG | 0644, 0), 0);
        ck_assert_int_eq(mount(from, to, NULL, MS_BIND, NULL), 0);
    }
    /* its owner's alone: who may open it in a task is the policy's to say */
    ck_assert_int_eq(mknod(mem_printf(r->ctx, "%s/kvm", dev), S_IFCHR | 0600, makedev(1, 7)), 0);
    ck_assert_int_eq(mount(dev, "/dev", NULL, MS_MOVE, NULL), 0);
}

static const char *
look(struct rig *r, const char *task, bool given, const char **ret_why)
{
    struct got g;
    rig_alloc(r, rig_id, task, "exec");
    struct launch_spec *s = rig_spec(r, rig_id, task, true, LOOK);
    if (given)
        list_add(s, s->devices, POLICY_KVM);
    rig_launch(r, s, &g);
    *ret_why = g.err.code != 0 ? mem_strdup(r->ctx, g.err.text) : NULL;
    if (!*ret_why)
        (void)rig_end(r, &g);
    got_free(&g);
    return *ret_why ? "" : rig_file(r, rig_id, mem_printf(r->ctx, "alloc/logs/%s.stdout.0", task));
}

static void
again(struct rig *r)
{
    struct err e = ERR_INIT;
    rig_kill(r, SIGUSR1);
    ck_assert_msg(policy_compile(&r->policy, r->policy_path, &e) == 0, "%s", e.text);
    rig_spawn(r);
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
}

START_TEST(who_is_given_a_device_has_it)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    const char *why;
    rig_start(&r, 0);
    fake_dev(&r);
    again(&r);
    ck_assert_str_eq(rig_fact(&r, "kvm"), "off by the client's policy");
    (void)look(&r, "one", true, &why);
    ck_assert_msg(why && strstr(why, "isolation.allowed_devices"), "%s", why);
    list_add(r.ctx, r.policy.allowed_devices, POLICY_KVM);
    again(&r);
    ck_assert_str_eq(rig_fact(&r, "kvm"), "true");
    ck_assert_str_eq(look(&r, "two", true, &why), "crw-rw-rw-\nNo space\n");
    ck_assert_str_eq(look(&r, "three", false, &why), "----------\nRead-only\n");
    ck_assert_int_eq(unlink("/dev/kvm"), 0);
    again(&r);
    ck_assert_str_eq(rig_fact(&r, "kvm"), "No such file or directory");
    (void)look(&r, "four", true, &why);
    ck_assert_msg(why && strstr(why, "\"/dev/kvm\": No such file"), "%s", why);
    rig_stop(&r);
}
END_TEST

START_TEST(no_other_device_is_in_a_policy)
{
    struct err e = ERR_INIT;
    struct policy p = {.data_dir = "/d", .alloc_dir = "/d/a", .run_dir = "/r"};
    auto_mem void *ctx = mem_ctx("t");
    list_add(ctx, p.allowed_devices, "/dev/sda");
    ck_assert_int_lt(policy_check(&p, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "\"/dev/sda\" is not /dev/kvm"));
    p.allowed_devices.v[0] = POLICY_KVM;
    ck_assert_int_eq(policy_check(&p, NULL), 0);
}
END_TEST

TEST_SUITE_TIMEOUT("device", 60, who_is_given_a_device_has_it, no_other_device_is_in_a_policy)
