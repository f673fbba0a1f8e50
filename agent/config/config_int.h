/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the parts of the configuration loader: flags, merging, checks. Not for other rooms.
 */
#ifndef PADDOCK_AGENT_CONFIG_CONFIG_INT_H
#define PADDOCK_AGENT_CONFIG_CONFIG_INT_H

#include "agent/config/config.h"

/* The files of the configuration with their texts, in order. */
int config_files_read(const void *ctx, const struct config_flags *f, struct config_files **ret,
                      struct err *e);

/* Lays `from` over `into` by the rules of paddock.hcl(5); memory of `from` is shared. */
void config_merge(const void *ctx, struct agent_config *into, const struct agent_config *from);

/* Makes the sub-blocks that the rest of the agent may rely on to exist. */
void config_blocks(const void *ctx, struct agent_config *c);

int config_apply_flags(const void *ctx, struct agent_config *c, const struct config_flags *f,
                       struct err *e);

/* Puts an address in place of "{{ GetPrivateIP }}" and the like. */
int config_expand_addr(const void *ctx, const char *key, const char **addr, struct err *e);

/* Adds all that is wrong in a plugin block to `errors`; texts are owned by ctx. */
void config_plugin(const void *ctx, const struct agent_plugin *p, struct str_list *errors);

/* Takes the texts of the tls block's files from those that root read. */
void config_tls_fill(const void *ctx, struct agent_config *c, const struct config_files *given);
/* Checks the tls block, but for what is in its files. */
int config_tls_check(struct agent_config *c, struct str_list *warnings, struct err *e);

/* Checks the block audit; NULL: there is none. */
int config_audit_check(const struct agent_audit *a, struct err *e);
/* Checks the block ui; NULL: there is none. */
int config_ui_check(const struct agent_ui *ui, struct err *e);

/* Checks the values of a server that bind jobs. */
int config_jobs_check(const struct agent_server *s, struct err *e);
int config_check(const void *ctx, struct agent_config *c, struct str_list *warnings, struct err *e);

#endif
