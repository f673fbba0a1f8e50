/* SPDX-License-Identifier: Apache-2.0
 *
 * What no client would run is refused with the job; what a client may allow, or resolves, is not.
 */
#include <string.h>

#include "agent/admit.h"
#include "api/canonical.h"
#include "api/validate.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

static const struct {
    const char *driver, *config, *more; /* of the task, or of the group behind a '#' */
    const char *why;                    /* NULL: it may be registered */
} rows[] = {
    {"exec", "\"command\":\"/bin/true\"", "", NULL},
    {"exec", "\"comand\":\"/bin/true\"", "", "did you mean \"command\"?"},
    {"exec", "", "", "needs the option \"command\""},
    {"exec", "\"command\":\"${meta.command}\"", "", NULL},
    {"exec", "\"command\":\"x\",\"pid_mode\":\"host\"", "", "host's pid and ipc namespaces"},
    {"exec", "\"command\":\"x\",\"pid_mode\":\"${meta.mode}\"", "", NULL},
    {"exec", "\"command\":\"x\",\"ipc_mode\":\"odd\"", "", "must be \"private\" or \"host\""},
    {"exec", "\"command\":\"x\",\"work_dir\":\"a\"", "", "must be absolute"},
    {"exec", "\"command\":\"x\",\"cap_drop\":[\"nope\"]", "", "no capability \"nope\""},
    {"exec", "\"command\":\"x\",\"cap_add\":[\"nope\"]", "", "nope"},
    {"exec", "\"command\":\"x\",\"cap_add\":[\"sys_admin\"]", "", NULL}, /* an operator may */
    {"exec", "\"command\":\"x\",\"cpu_hard_limit\":true", "", NULL},
    {"exec", "\"command\":\"x\"", "\"KillSignal\":\"SIGNOPE\"", "\"SIGNOPE\" is not a signal"},
    {"exec", "\"command\":\"x\"", "\"User\":\"${meta.user}\"", NULL},
    {"exec", "\"command\":\"x\"", "\"Isolation\":{\"Seccomp\":{\"Deny\":[\"execve\"]}}",
     "no task can start"},
    {"exec", "\"command\":\"x\"",
     "\"Isolation\":{\"Seccomp\":{\"Allow\":[\"bpf\"],\"Mode\":\"log\"},\"Apparmor\":\"x\","
     "\"Swap\":9}",
     NULL},
    {"exec2", "\"command\":\"x\",\"unveil\":[\"rw:/usr/x\"]", "", "is read-only"},
    {"exec2", "\"command\":\"x\",\"unveil\":[\"r:/srv\",\"rwc:/srv/x\"]", "", NULL},
    {"raw_exec", "\"command\":\"x\"", "", NULL},
    {"raw_exec", "\"command\":\"x\"", "\"Isolation\":{\"NoFile\":9,\"Apparmor\":\"x\"}",
     "does not isolate"},
    {"java", "\"class_path\":\"a\"", "", "needs \"jar_path\" or \"class\""},
    {"java", "\"jar_path\":\"${meta.jar}\"", "", NULL},
    {"qemu", "\"image_path\":\"a\"", "\"Resources\":{\"CPU\":100,\"MemoryMB\":64}",
     "from 128 to 4000000"},
    {"qemu", "\"image_path\":\"/srv/a\"", "", NULL},
    {"qemu", "\"image_path\":\"a\",\"port_map\":[{\"ssh\":22}]", "", "no port \"ssh\""},
    {"qemu", "\"image_path\":\"a\",\"port_map\":[{\"p\":22}]",
     "#\"Networks\":[{\"DynamicPorts\":[{\"Label\":\"p\"}]}]", NULL},
    {"docker", "\"image\":\"a\"", "", NULL},
    {"docker", "\"image\":\"a b\"", "", "no name of an image"},
    {"docker", "\"image\":\"${meta.image}\",\"shm_size\":\"${meta.n}\"", "", NULL},
    {"docker", "\"image\":\"${meta.image}\",\"network_mode\":\"container:x\"", "",
     "not the name of a network"},
    {"docker", "\"image\":\"a\",\"ports\":[\"p\"]", "", "no port \"p\""},
    {"docker", "\"image\":\"a\",\"ports\":[\"p\"]",
     "#\"Networks\":[{\"DynamicPorts\":[{\"Label\":\"p\"}]}]", NULL},
    {"docker", "\"image\":\"a\",\"port_map\":[{\"p\":7}]",
     "#\"Networks\":[{\"DynamicPorts\":[{\"Label\":\"p\"}]}]", "use 'ports' instead"},
    {"docker", "\"image\":\"a\",\"port_map\":[{\"p\":7}]",
     "\"Resources\":{\"CPU\":100,\"MemoryMB\":64,\"Networks\":[{\"DynamicPorts\":[{\"Label\":\"p\"}"
     "]}]}",
     NULL},
    {"docker", "\"image\":\"a\",\"hostname\":\"x\"", "#\"Networks\":[{\"Mode\":\"bridge\"}]",
     "in the network of its group"},
    {"docker", "\"image\":\"a\",\"volumes\":[\"/srv:/srv\"]", "", NULL},
    {"docker", "\"image\":\"a\",\"volumes\":[\"../other:/x\"]", "", "in the task's local/"},
    {"docker", "\"image\":\"a\",\"volumes\":[\"local:/x:odd\"]", "",
     "option \"odd\" is not supported"},
    {"docker", "\"image\":\"a\",\"mount\":[{\"type\":\"tmpfs\",\"target\":\"x\"}]", "",
     "is not absolute"},
    {"docker", "\"image\":\"a\",\"mount\":[{\"type\":\"npipe\",\"target\":\"/x\"}]", "",
     "none of bind"},
    {"docker",
     "\"image\":\"a\",\"devices\":[{\"host_path\":\"/dev/x\",\"cgroup_permissions\":\"q\"}]", "",
     "not of r, w, m"},
    {"docker",
     "\"image\":\"a\",\"privileged\":true,\"cap_add\":[\"all\"],\"pid_mode\":\"host\",\"runtime\":"
     "\"x\",\"devices\":[{\"host_path\":\"/dev/mem\"}],"
     "\"security_opt\":[\"seccomp=unconfined\"],\"oom_score_adj\":-1,\"mount\":[{\"source\":\"v\","
     "\"target\":\"/x\"}]",
     "", NULL},
    {"docker", "\"image\":\"a\",\"pid_mode\":\"container:x\"", "",
     "namespaces of other containers"},
    {"docker", "\"image\":\"a\",\"cgroupns\":\"x\"", "", "neither private nor host"},
    {"docker", "\"image\":\"a\",\"security_opt\":[\"seccomp=/x\"]", "", "not read from a file"},
    {"docker", "\"image\":\"a\",\"logging\":[{\"type\":\"syslog\"}]", "",
     "\"syslog\" is not allowed"},
    {"docker", "\"image\":\"a\",\"ulimit\":[{\"nofile\":\"x\"}]", "", "not a number"},
    {"docker", "\"image\":\"a\",\"cpu_cfs_period\":7", "", "cpu_cfs_period is not"},
    {"docker", "\"image\":\"a\",\"oom_score_adj\":1001", "", "oom_score_adj is not"},
    {"docker", "\"image\":\"a\",\"ipv4_address\":\"10.0.0.1\"", "", "that network_mode names"},
    {"docker", "\"image\":\"a\",\"load\":\"../x\"", "", "not a file in the task's local/"},
    {"docker", "\"image\":\"a\",\"memory_hard_limit\":5", "", "exceed driver hard limit"},
    {"docker", "\"image\":\"a\"", "\"Network\":{\"Egress\":{\"Deny\":[\"0.0.0.0/0\"]}}",
     "rules do not hold in a container"},
    {"docker", "\"image\":\"a\"", "\"DispatchPayload\":{\"File\":\"../../../x\"}",
     "destination escapes allocation directory"},
    {"podman", "\"image\":\"oci:x\"", "", "images come from registries"},
    {"podman", "\"image\":\"a\",\"socket\":\"x\"", "", "there is one, \"default\""},
    {"podman", "\"image\":\"a\",\"tmpfs\":[\"/x:odd\"]", "", "\"odd\" is not supported"},
    {"podman", "\"image\":\"a\",\"memory_swap\":\"1g\"", "", "a task has no swap"},
};

static void
check(size_t i)
{
    auto_mem void *ctx = mem_ctx("admit");
    struct str_list errors = {0}, warnings = {0};
    struct err e = ERR_INIT;
    void *job = NULL;
    const char *more = rows[i].more, *group = *more == '#' ? more + 1 : "";
    const char *text = mem_printf(
        ctx,
        "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\",\"Driver\":"
        "\"%s\",\"Config\":{%s}%s%s}]%s%s}]}",
        rows[i].driver, rows[i].config, *more && !*group ? "," : "", *group ? "" : more,
        *group ? "," : "", group);
    ck_assert_msg(
        json_decode(ctx, &type_job, SLICE(text, strlen(text)), BUDGET(1 << 20), &job, &e) == 0,
        "%s: %s", text, e.text);
    job_canonicalize(ctx, job);
    if (job_validate(ctx, job, NULL, &errors, &warnings) == 0)
        admit_job(ctx, job, &errors);
    const char *said = errors.n ? errors.v[0] : "";
    ck_assert_msg((errors.n > 0) == (rows[i].why != NULL) && strstr(said, str_or(rows[i].why, "")),
                  "%s: %s", text, said);
    ck_assert_msg(errors.n == 0 || str_prefix(said, "task group \"g\": task \"t\": "), "%s", said);
}

START_TEST(what_no_client_would_run_is_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(i);
}
END_TEST

TEST_SUITE("admit", what_no_client_would_run_is_refused)
