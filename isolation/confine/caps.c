/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/confine/caps.h"

#include <linux/capability.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/str.h"

static const char *const names[] = {
    [CAP_CHOWN] = "chown",
    [CAP_DAC_OVERRIDE] = "dac_override",
    [CAP_DAC_READ_SEARCH] = "dac_read_search",
    [CAP_FOWNER] = "fowner",
    [CAP_FSETID] = "fsetid",
    [CAP_KILL] = "kill",
    [CAP_SETGID] = "setgid",
    [CAP_SETUID] = "setuid",
    [CAP_SETPCAP] = "setpcap",
    [CAP_LINUX_IMMUTABLE] = "linux_immutable",
    [CAP_NET_BIND_SERVICE] = "net_bind_service",
    [CAP_NET_BROADCAST] = "net_broadcast",
    [CAP_NET_ADMIN] = "net_admin",
    [CAP_NET_RAW] = "net_raw",
    [CAP_IPC_LOCK] = "ipc_lock",
    [CAP_IPC_OWNER] = "ipc_owner",
    [CAP_SYS_MODULE] = "sys_module",
    [CAP_SYS_RAWIO] = "sys_rawio",
    [CAP_SYS_CHROOT] = "sys_chroot",
    [CAP_SYS_PTRACE] = "sys_ptrace",
    [CAP_SYS_PACCT] = "sys_pacct",
    [CAP_SYS_ADMIN] = "sys_admin",
    [CAP_SYS_BOOT] = "sys_boot",
    [CAP_SYS_NICE] = "sys_nice",
    [CAP_SYS_RESOURCE] = "sys_resource",
    [CAP_SYS_TIME] = "sys_time",
    [CAP_SYS_TTY_CONFIG] = "sys_tty_config",
    [CAP_MKNOD] = "mknod",
    [CAP_LEASE] = "lease",
    [CAP_AUDIT_WRITE] = "audit_write",
    [CAP_AUDIT_CONTROL] = "audit_control",
    [CAP_SETFCAP] = "setfcap",
    [CAP_MAC_OVERRIDE] = "mac_override",
    [CAP_MAC_ADMIN] = "mac_admin",
    [CAP_SYSLOG] = "syslog",
    [CAP_WAKE_ALARM] = "wake_alarm",
    [CAP_BLOCK_SUSPEND] = "block_suspend",
    [CAP_AUDIT_READ] = "audit_read",
    [CAP_PERFMON] = "perfmon",
    [CAP_BPF] = "bpf",
    [CAP_CHECKPOINT_RESTORE] = "checkpoint_restore",
};

static const char *
caps_bare(const char *name)
{
    return strncasecmp(name, "cap_", 4) == 0 ? name + 4 : name;
}

int
caps_from_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(caps_bare(name), names[i]) == 0)
            return (int)i;
    return -ERR_INVALID;
}

const char *
caps_name(unsigned bit)
{
    return bit < ARRAY_LEN(names) ? names[bit] : NULL;
}

static bool
is_allowed(int bit, const char *const *allowed, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(allowed[i], "all") == 0 || caps_from_name(allowed[i]) == bit)
            return true;
    return false;
}

bool
caps_need_host(uint64_t caps)
{
    static const uint64_t inside =
        UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER |
        UINT64_C(1) << CAP_FSETID | UINT64_C(1) << CAP_KILL | UINT64_C(1) << CAP_SETGID |
        UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETPCAP | UINT64_C(1) << CAP_SETFCAP |
        UINT64_C(1) << CAP_SYS_CHROOT | UINT64_C(1) << CAP_DAC_READ_SEARCH;
    return (caps & ~inside) != 0;
}

int
caps_plan(const char *const *add, size_t n_add, const char *const *allowed, size_t n_allowed,
          uint64_t *ret, struct err *e)
{
    uint64_t set = 0;
    for (size_t i = 0; i < n_add; i++) {
        if (strcasecmp(add[i], "all") == 0)
            return err_set(e, -ERR_POLICY,
                           "cap_add \"all\" is not supported: name each capability");
        int bit = caps_from_name(add[i]);
        if (bit < 0) {
            const char *near = str_nearest(caps_bare(add[i]), names, ARRAY_LEN(names));
            return err_set(e, -ERR_INVALID, "unknown capability \"%.64s\"%s%s%s", add[i],
                           near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        }
        if (!is_allowed(bit, allowed, n_allowed))
            return err_set(
                e, -ERR_POLICY,
                "capability \"%s\" is not in the operator's list of allowed capabilities "
                "(isolation.allowed_caps in the client's configuration)",
                names[bit]);
        set |= UINT64_C(1) << bit;
    }
    *ret = set;
    return 0;
}
