/* SPDX-License-Identifier: Apache-2.0
 *
 * config validate: whether an agent would start with these files, without one.
 */
#include "agent/config/config.h"
#include "cli/command.h"

int
cmd_config_validate(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    struct config_flags flags = {0};
    struct agent_config *config = NULL;
    struct str_list warnings = {0};
    const char *detail = NULL;
    struct err e = ERR_INIT;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.min = 1, .max = SIZE_MAX}, &rc))
        return rc;
    flags.config = (struct opt_list){c->args, c->n_args};
    if (config_load(c, &flags, &config, &warnings, &detail, &e) < 0)
        return cmd_fail(c, "%s", detail != NULL ? detail : e.text);
    for (size_t i = 0; i < warnings.n; i++)
        cmd_warn(c, "%s", warnings.v[i]);
    cmd_say(c, "Configuration is valid!");
    return 0;
}
