/* SPDX-License-Identifier: Apache-2.0
 *
 * java: the host's JVM in the full sandbox, as exec has it. The command line is made here; what a
 * JVM is there is found by fingerprint/java.c. Pure.
 */
#include <signal.h>
#include <string.h>

#include "common/mem.h"
#include "drivers/process/process.h"

/* The program that fingerprint/java.c looks for, beneath a root that every box has. */
#define JAVA "/usr/bin/java"
enum { WORDS_OURS = 5 }; /* -cp, -jar and what follows them, the class */

static const struct driver_option options[] = {
    {"jar_path", DRIVER_STRING},     {"class", DRIVER_STRING},    {"class_path", DRIVER_STRING},
    {"jvm_options", DRIVER_STRINGS}, {"args", DRIVER_STRINGS},    {"work_dir", DRIVER_STRING},
    {"pid_mode", DRIVER_STRING},     {"ipc_mode", DRIVER_STRING}, {"cap_add", DRIVER_STRINGS},
    {"cap_drop", DRIVER_STRINGS},
};

static void
java_fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    box_fingerprint(host, ret);
    driver_found(ctx, host, "no JVM: there is no " JAVA, ret);
}

static size_t
java_length(const struct value *config, const char *name)
{
    const struct value *v = value_get(config, name);
    return v && v->kind == VALUE_LIST ? v->list.n : 0;
}

static int
java_check(const struct value *config, struct err *e)
{
    if (!*driver_string(config, "jar_path", "") && !*driver_string(config, "class", ""))
        return err_set(e, -ERR_INVALID,
                       "driver \"java\" needs \"jar_path\" or \"class\" in config");
    size_t n = WORDS_OURS + java_length(config, "args") + java_length(config, "jvm_options");
    size_t most = type_field(&type_launch_spec, "Args", strlen("Args"))->max;
    if (n > most)
        return err_set(
            e, -ERR_INVALID,
            "jvm_options and args of driver \"java\" make a command line of %zu words: at most "
            "%zu are allowed",
            n, most);
    return 0;
}

/* jvm_options, -cp CLASS_PATH, -jar JAR, class, args: the order that the launcher takes them in. */
static void
command_line(struct launch_spec *s, const struct value *config)
{
    const char *jar = driver_string(config, "jar_path", "");
    const char *class = driver_string(config, "class", "");
    const char *path = driver_string(config, "class_path", "");
    struct str_list args = s->args;
    s->command = JAVA;
    driver_strings(s, config, "jvm_options", &s->args);
    if (*path) {
        list_add(s, s->args, "-cp");
        list_add(s, s->args, mem_strdup(s, path));
    }
    if (*jar) {
        list_add(s, s->args, "-jar");
        list_add(s, s->args, mem_strdup(s, jar));
    }
    if (*class)
        list_add(s, s->args, mem_strdup(s, class));
    for (size_t i = 0; i < args.n; i++)
        list_add(s, s->args, args.v[i]);
}

static int
java_spec(const void *ctx, const struct driver_input *in, struct launch_spec **ret, struct err *e)
{
    int r = java_check(in->config, e);
    r = r < 0 ? r : box_spec(ctx, &driver_java, in, ret, e);
    if (r == 0)
        command_line(*ret, in->config);
    return r;
}

const struct driver driver_java = {
    .can = &drivers_can[DRIVER_java],
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = SIGINT,
    .check = java_check,
    .fingerprint = java_fingerprint,
    .spec = java_spec,
};
