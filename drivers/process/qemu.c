/* SPDX-License-Identifier: Apache-2.0
 *
 * qemu: a virtual machine by the QEMU of the host, which runs in the full sandbox as exec has it:
 * the image, and whatever `args` name, is what the task sees. Pure.
 *
 * graceful_shutdown: QEMU takes every signal for the end of the machine, so its power button is
 * pressed by QMP. The warden's signal goes to a shell that waits for QEMU and then writes to its
 * control pipe: that works while no agent runs, and nobody outside follows a path of the task's.
 */
#include <signal.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "drivers/process/process.h"

#define PROGRAMS "/usr/bin/qemu-system-" /* as fingerprint/qemu.c looks for them */
#define TCG "tcg"                        /* emulation */
#define KVM "kvm"                        /* the host's processor, or no start */
#define EITHER "kvm:tcg"                 /* the host's where tasks can have it */
#define PIPE "/secrets/qmp"              /* memory of the task alone */

enum {
    MEMORY_MB_MIN = 128,
    MEMORY_MB_MAX = 4000000,
    OVERHEAD_MB = 192,   /* of QEMU itself beside the machine's memory */
    TRANSLATED_MB = 64,  /* of it: code that the emulator has translated */
    PORT_MAX = 65535,
};

static const struct driver_option options[] = {
    {"image_path", DRIVER_STRING, .required = true},
    {"emulator", DRIVER_STRING},
    {"machine_type", DRIVER_STRING},
    {"drive_interface", DRIVER_STRING},
    {"accelerator", DRIVER_STRING},
    {"graceful_shutdown", DRIVER_BOOL},
    {"guest_agent", DRIVER_BOOL},
    {"args", DRIVER_STRINGS},
    {"port_map", DRIVER_MAP},
};

static void
qemu_fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    box_fingerprint(host, ret);
    driver_found(ctx, host, "no QEMU: there is no " PROGRAMS "*", ret);
    if (host->kvm && ret->healthy)
        str_map_set(ctx, &ret->attributes, "driver.qemu.kvm", "true");
}

/* --- what may be in a config --- */

static const char *
qemu_emulator(const struct value *config)
{
    static const char prefix[] = "qemu-system-";
    const char *name = driver_string(config, "emulator", "x86_64");
    return strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name;
}

/* A value in an option of QEMU, whose list of properties it must not leave. */
static bool
qemu_plain(const char *s)
{
    return *s &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == 0;
}

static int
check_accelerator(const struct value *config, struct err *e)
{
    const char *a = driver_string(config, "accelerator", TCG);
    if (str_eq(a, TCG) || str_eq(a, KVM) || str_eq(a, EITHER))
        return 0;
    return err_set(e, -ERR_INVALID,
                   "accelerator \"%.32s\" of driver \"qemu\" is none of " TCG ", " KVM ", " EITHER,
                   a);
}

static int
qemu_check(const struct value *config, struct err *e)
{
    static const char *const interfaces[] = {"ide",    "scsi",   "sd",     "mtd",
                                             "floppy", "pflash", "virtio", "none"};
    const char *i = driver_string(config, "drive_interface", "ide");
    bool known = false;
    for (size_t k = 0; k < ARRAY_LEN(interfaces); k++)
        known |= str_eq(i, interfaces[k]);
    if (!known)
        return err_set(
            e, -ERR_INVALID,
            "drive_interface \"%.32s\" of driver \"qemu\" is none of ide, scsi, sd, mtd, "
            "floppy, pflash, virtio, none",
            i);
    if (!qemu_plain(qemu_emulator(config)))
        return err_set(e, -ERR_INVALID,
                       "emulator \"%.64s\" of driver \"qemu\" is not a name such as x86_64",
                       qemu_emulator(config));
    if (!qemu_plain(driver_string(config, "machine_type", "pc")))
        return err_set(e, -ERR_INVALID,
                       "machine_type \"%.64s\" of driver \"qemu\" is not a name such as pc",
                       driver_string(config, "machine_type", ""));
    return check_accelerator(config, e);
}

/* Holds arguments against the lists of the client's plugin block; an empty list is none. */
static int
check_allowed(const struct driver_input *in, struct err *e)
{
    auto_mem void *tmp = mem_ctx("allowed");
    struct str_list emulators, words, args;
    driver_strings(tmp, in->plugin, "emulators_allowlist", &emulators);
    driver_strings(tmp, in->plugin, "args_allowlist", &words);
    driver_strings(tmp, in->config, "args", &args);
    if (emulators.n > 0 && !str_list_has(&emulators, qemu_emulator(in->config)) &&
        !str_list_has(&emulators, mem_printf(tmp, "qemu-system-%s", qemu_emulator(in->config))))
        return err_set(e, -ERR_POLICY,
                       "emulator \"%.64s\" is not in emulators_allowlist of this client",
                       qemu_emulator(in->config));
    for (size_t i = 0; words.n > 0 && i < args.n; i++) {
        const char *word = args.v[i] + strspn(args.v[i], " \t\n");
        if (*word == '-' && !str_list_has(&words, args.v[i]))
            return err_set(e, -ERR_POLICY,
                           "args: \"%.64s\" is not in args_allowlist of this client", args.v[i]);
    }
    return 0;
}

/* --- the command line --- */

struct line {
    struct launch_spec *s;
    const struct driver_input *in;
};

static void
qemu_put(struct line *l, const char *word)
{
    list_add(l->s, l->s->args, word);
}

static void
qemu_put2(struct line *l, const char *option, const char *value)
{
    qemu_put(l, option);
    qemu_put(l, value);
}

/* Commas end a property of an option of QEMU; twice, they are themselves. */
static const char *
qemu_escaped(const void *ctx, const char *s)
{
    char *out = mem_array(ctx, char, 2 * strlen(s) + 1), *p = out;
    for (; *s; s++) {
        if (*s == ',')
            *p++ = ',';
        *p++ = *s;
    }
    *p = 0;
    return out;
}

/* Is it below what every box has? */
static bool
in_box(const char *path)
{
    static const char *const tops[] = {"/local/", "/alloc/", "/secrets/", "/tmp/",
                                       "/usr/",   "/lib/",   "/etc/",     "/dev/"};
    if (*path != '/')
        return true;
    for (size_t i = 0; i < ARRAY_LEN(tops); i++)
        if (strncmp(path, tops[i], strlen(tops[i])) == 0)
            return true;
    return false;
}

static bool
has_variable(const struct str_list *env, const char *prefix)
{
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

/* The list came whole, with no room behind it: list_add() is for lists that it has made. */
static void
add_variable(struct launch_spec *s, const char *text)
{
    struct str_list old = s->env;

    s->env = (struct str_list){NULL, 0};
    for (size_t i = 0; i < old.n; i++)
        list_add(s, s->env, old.v[i]);
    list_add(s, s->env, text);
}

/* An image of the host's is bound where it is, if the client's policy has its path, and only read:
 * what the machine writes goes into a file of the task's, which ends with the machine. */
static void
put_image(struct line *l)
{
    const char *path = driver_string(l->in->config, "image_path", "");
    const char *slash = strrchr(path, '/');
    bool host = !in_box(path);
    qemu_put2(l, "-name", qemu_escaped(l->s, slash ? slash + 1 : path));
    qemu_put2(l, "-m", mem_printf(l->s, "%lldM", (long long)l->in->resources->memory->memory_mb));
    qemu_put2(l, "-drive",
              mem_printf(l->s, "file=%s,if=%s,id=image0%s", qemu_escaped(l->s, path),
                         driver_string(l->in->config, "drive_interface", "ide"),
                         host ? ",snapshot=on" : ""));
    qemu_put(l, "-nographic");
    if (!host)
        return;
    struct launch_mount *m = mem_new(l->s, struct launch_mount);
    *m = (struct launch_mount){
        .source = mem_strdup(m, path), .target = mem_strdup(m, path), .read_only = true};
    list_add(l->s, l->s->mounts, m);
    if (!has_variable(&l->s->env, "TMPDIR="))
        add_variable(l->s, "TMPDIR=/local");
}

static int
guest_port(const char *label, const struct value *v, int64_t *ret, struct err *e)
{
    *ret = 0;
    if (v && v->kind == VALUE_INT)
        *ret = v->i;
    else if (v && v->kind == VALUE_STRING)
        (void)num_parse_i64(v->str.s, ret);
    if (*ret < 1 || *ret > PORT_MAX)
        return err_set(e, -ERR_INVALID, "port_map: \"%.64s\" is not a port from 1 to %d", label,
                       PORT_MAX);
    return 0;
}

/* From each mapped port to the machine's, by TCP and UDP, with QEMU's own network. */
static int
put_network(struct line *l, struct err *e)
{
    const struct value *map = driver_map(l->in->config, "port_map");
    const char *forward = "";
    for (size_t i = 0; map && i < map->map.n; i++) {
        const char *label = map->map.v[i].k;
        const struct driver_port *p = driver_find_port(l->in, label);
        int64_t to;
        if (!p)
            return err_set(e, -ERR_INVALID, "port_map: the group has no port \"%.64s\"", label);
        int r = guest_port(label, map->map.v[i].v, &to, e);
        if (r < 0)
            return r;
        /* in a network of the allocation's, who connects comes to the port inside */
        int port = l->in->own_network && p->to > 0 ? p->to : p->value;
        const char *ip = l->in->own_network || strchr(p->host_ip, ':') ? "" : p->host_ip;
        forward = mem_printf(l->s, "%s,hostfwd=udp:%s:%d-:%lld,hostfwd=tcp:%s:%d-:%lld", forward,
                             ip, port, (long long)to, ip, port, (long long)to);
    }
    if (!*forward)
        return 0;
    qemu_put2(l, "-netdev", mem_printf(l->s, "user,id=user.0%s", forward));
    qemu_put2(l, "-device", "virtio-net,netdev=user.0");
    return 0;
}

/* QEMU gives up what it does not need, in a filter of its own beneath the box's. */
static void
put_machine(struct line *l)
{
    qemu_put2(l, "-sandbox",
              "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
    qemu_put(l, "-no-user-config");
    qemu_put2(l, "-machine",
              mem_printf(l->s, "type=%s", driver_string(l->in->config, "machine_type", "pc")));
    const char *a = driver_string(l->in->config, "accelerator", TCG);
    if (str_eq(a, KVM) || (str_eq(a, EITHER) && l->in->kvm)) {
        list_add(l->s, l->s->devices, "/dev/kvm");
        qemu_put2(l, "-accel", "kvm");
        qemu_put2(l, "-cpu", "host");
    } else {
        qemu_put2(l, "-accel", mem_printf(l->s, "tcg,tb-size=%d", TRANSLATED_MB));
    }
    if (l->s->limits->cores.n > 0)
        qemu_put2(l, "-smp", mem_printf(l->s, "%zu", l->s->limits->cores.n));
}

/* $1... is QEMU. It has no name for the signal that the job may have chosen: the number will do. */
static void
put_shell(struct line *l)
{
    int sig = l->s->kill_signal > 0 ? (int)l->s->kill_signal : SIGINT;
    l->s->command = "/bin/sh";
    qemu_put(l, "-c");
    qemu_put(
        l, mem_printf(l->s,
                      "rm -f " PIPE ".in " PIPE ".out; mkfifo -m 600 " PIPE ".in " PIPE
                      ".out || exit 1\n"
                      "trap 'printf %%s \"$QMP\" >" PIPE ".in' %d\n"
                      "QMP='{\"execute\":\"qmp_capabilities\"}{\"execute\":\"system_powerdown\"}'\n"
                      "\"$@\" & while wait $!; r=$?; kill -0 $! 2>/dev/null; do :; done; exit $r",
                      sig));
    qemu_put(l, "qemu");
}

static int
command_line(struct line *l, struct err *e)
{
    const struct value *config = l->in->config;
    struct str_list args = l->s->args;
    const char *program = mem_printf(l->s, PROGRAMS "%s", qemu_emulator(config));
    bool graceful = driver_bool(config, "graceful_shutdown", false);
    l->s->args = (struct str_list){0};
    l->s->command = program;
    if (graceful) {
        put_shell(l);
        qemu_put(l, program);
    }
    put_machine(l);
    put_image(l);
    if (graceful) {
        qemu_put2(l, "-chardev", "pipe,id=qmp,path=" PIPE);
        qemu_put2(l, "-mon", "chardev=qmp,mode=control");
    }
    if (driver_bool(config, "guest_agent", false)) {
        qemu_put2(l, "-chardev", "socket,path=/qa.sock,server=on,wait=off,id=qga0");
        qemu_put2(l, "-device", "virtio-serial");
        qemu_put2(l, "-device", "virtserialport,chardev=qga0,name=org.qemu.guest_agent.0");
    }
    for (size_t i = 0; i < args.n; i++)
        qemu_put(l, args.v[i]);
    return put_network(l, e);
}

static int
qemu_spec(const void *ctx, const struct driver_input *in, struct launch_spec **ret, struct err *e)
{
    const struct allocated_memory_resources *m = in->resources ? in->resources->memory : NULL;
    int r = qemu_check(in->config, e);
    r = r < 0 ? r : check_allowed(in, e);
    if (r == 0 && (!m || m->memory_mb < MEMORY_MB_MIN || m->memory_mb > MEMORY_MB_MAX))
        r = err_set(e, -ERR_INVALID, "resources: memory of a machine is from %d to %d MB",
                    MEMORY_MB_MIN, MEMORY_MB_MAX);
    struct launch_spec *s = NULL;
    r = r < 0 ? r : box_spec(ctx, &driver_qemu, in, &s, e);
    if (r < 0)
        return r;
    if (s->limits->memory_max > 0)
        s->limits->memory_max += (int64_t)OVERHEAD_MB << 20;
    r = command_line(&(struct line){s, in}, e);
    if (r < 0)
        talloc_free(s);
    else
        *ret = s;
    return r;
}

const struct driver driver_qemu = {
    .can = &drivers_can[DRIVER_qemu],
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = SIGINT,
    .check = qemu_check,
    .fingerprint = qemu_fingerprint,
    .spec = qemu_spec,
};
