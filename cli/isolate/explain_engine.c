/* SPDX-License-Identifier: Apache-2.0
 *
 * isolate explain of a task whose engine isolates it: the request to that engine, and what of
 * Paddock's protection holds there and does not.
 */
#include "cli/isolate/explain_engine.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* Options that a client takes only where its plugin block allows them. */
static const struct {
    const char *option;
    const char *harmless; /* a value that everybody may ask for; NULL: none */
} guarded[] = {
    {"privileged", NULL},       {"cap_add", NULL},       {"devices", NULL},
    {"pid_mode", NULL},         {"ipc_mode", "private"}, {"uts_mode", NULL},
    {"userns_mode", NULL},      {"userns", NULL},        {"security_opt", "no-new-privileges"},
    {"apparmor_profile", NULL}, {"runtime", NULL},       {"volume_driver", NULL}};

static bool
asks_for(const struct value *v, const char *harmless)
{
    if (!v || v->kind == VALUE_NULL)
        return false;
    if (v->kind == VALUE_BOOL)
        return v->b;
    if (v->kind == VALUE_STRING)
        return *v->str.s && !str_eq(v->str.s, "false") && !str_eq(v->str.s, harmless);
    if (v->kind != VALUE_LIST)
        return true;
    for (size_t i = 0; i < v->list.n; i++)
        if (asks_for(v->list.v[i], harmless))
            return true;
    return false;
}

/* Does a volume or mount name a path of the host, or a volume of the engine? */
static bool
names_host(const struct value *config)
{
    static const char *const names[] = {"volumes", "mount", "mounts"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct value *v = value_get(config, names[i]);
        for (size_t k = 0; v && v->kind == VALUE_LIST && k < v->list.n; k++) {
            const struct value *one = v->list.v[k], *source = value_get(one, "source");
            const char *path = one->kind == VALUE_STRING                ? one->str.s
                               : source && source->kind == VALUE_STRING ? source->str.s
                                                                        : "";
            const struct value *type = value_get(one, "type");
            bool own = type && type->kind == VALUE_STRING && !str_eq(type->str.s, "volume");
            if (*path == '/' || (one->kind == VALUE_MAP && *path && !own))
                return true;
        }
    }
    return false;
}

static void
explain_its_network(struct cmd *c, const struct task_group *g, const struct value *config)
{
    const struct value *v = value_get(config, "network_mode");
    const char *mode = v && v->kind == VALUE_STRING ? v->str.s : "";
    const char *group = g->networks.n > 0 ? str_or(g->networks.v[0]->mode, "") : "";
    if (str_eq(mode, "host"))
        cmd_say(c, "    is in the network of the machine, if the client allows that mode");
    else if (*mode)
        cmd_say(c, "    is in the engine's network \"%s\"", mode);
    else if (str_eq(group, "none"))
        cmd_say(
            c, "    has a loopback, which the containers of its group share, and no other network");
    else if (*group && !str_eq(group, "host"))
        cmd_say(c, "    is in a network of its group's behind the bridge of the engine, which a "
                   "container that does nothing holds");
    else
        cmd_say(c, "    is in the bridge of the engine, with the ports that it names");
}

void
explain_engine(struct cmd *c, const struct task_group *g, const struct task *t)
{
    const char *more = "";
    for (size_t i = 0; i < ARRAY_LEN(guarded); i++)
        if (asks_for(value_get(t->config, guarded[i].option), guarded[i].harmless))
            more = mem_printf(c, "%s%s%s", more, *more ? ", " : "", guarded[i].option);
    if (names_host(t->config))
        more = mem_printf(c, "%s%spaths of the host, or volumes", more, *more ? ", " : "");
    cmd_say(c,
            "    is a container: its engine isolates it, and root in it is root of the host behind "
            "namespaces, capabilities and filter of the engine's");
    cmd_say(c, "    is made by paddock-hand within the client's policy; the agent cannot speak to "
               "the engine");
    cmd_say(c, "    binds /alloc, /local and /secrets of its allocation");
    if (*more)
        cmd_say(c, "    asks for what a client gives only if its plugin block says so: %s", more);
    else
        cmd_say(c, "    asks for nothing that a client's plugin block would have to allow");
    explain_its_network(c, g, t->config);
    cmd_say(
        c,
        "    is not held by Paddock's box: no isolation block, no egress and bind rules, no closed "
        "metadata service");
}
