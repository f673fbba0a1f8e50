/* SPDX-License-Identifier: Apache-2.0
 *
 * What the client parses without a schema: kernel files, ${...}, names of log files, task configs,
 * paths of the file API. The first byte chooses.
 */
#include <stdint.h>
#include <string.h>

#include "client/io/log_index.h"
#include "client/task/env.h"
#include "common/mem.h"
#include "drivers/driver.h"
#include "fingerprint/fingerprint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
kernel_files(const char *text)
{
    struct fingerprint_cpuinfo cpu;
    struct fingerprint_mounts mounts;
    char out[40];
    fingerprint_parse_cpuinfo(text, &cpu);
    ASSERT(strlen(cpu.model) < sizeof(cpu.model));
    ASSERT(fingerprint_parse_meminfo(text, "MemTotal") >= 0);
    (void)fingerprint_parse_os_release(text, "ID", out, sizeof(out));
    auto_mem void *tmp = mem_ctx("mounts");
    fingerprint_parse_mounts(mem_strdup(tmp, text), &mounts);
    (void)fingerprint_parse_volume(mem_strdup(tmp, text), "/data/alloc", out, sizeof(out));
}

static void
interpolation(void *ctx, const char *text)
{
    struct node node = {.id = "n", .name = "x"};
    struct job job = {.id = "j"};
    struct allocation alloc = {.id = "12345678-aaaa-bbbb-cccc-0123456789ab", .name = text, .job = &job};
    struct task_group group = {.name = text};
    struct task task = {.name = "t"};
    str_map_set(ctx, &task.env, "A", text);
    str_map_set(ctx, &task.meta, text, text);
    struct env_input in = {.node = &node, .alloc = &alloc, .group = &group, .task = &task};
    struct env *e = env_build(ctx, &in);
    (void)env_interpolate(ctx, e, text);
    struct str_list l;
    env_list(ctx, e, &l);
}

static void
config(void *ctx, const char *text, size_t n)
{
    struct value *v = NULL;
    struct err e = ERR_INIT;
    if (json_decode_value(ctx, SLICE(text, n), BUDGET(4 << 20), &v, &e) < 0)
        return;
    for (size_t i = 0; i < DRIVERS_N; i++) {
        err_clear(&e);
        if (driver_check(drivers[i], v, &e) < 0)
            continue;
        struct task task = {.name = "t"};
        struct str_list env = {0};
        struct driver_input in = {.alloc_id = "12345678-aaaa-bbbb-cccc-0123456789ab",
                                  .task = &task, .config = v, .env = &env};
        struct launch_spec *s = NULL;
        if (drivers[i]->spec(ctx, &in, &s, &e) == 0)
            ASSERT(s->command && *s->command);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    auto_mem void *ctx = mem_ctx("fuzz");
    char *text = mem_strndup(ctx, (const char *)data + 1, size - 1);
    uint64_t index;
    switch (data[0] % 4) {
    case 0:
        kernel_files(text);
        break;
    case 1:
        interpolation(ctx, text);
        break;
    case 2:
        config(ctx, text, strlen(text));
        break;
    default:
        (void)log_index_parse(text, "web", "stdout", &index);
        (void)signal_parse(text);
        break;
    }
    return 0;
}
