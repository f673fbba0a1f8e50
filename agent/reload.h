/* SPDX-License-Identifier: Apache-2.0
 *
 * Reloading of the configuration while the agent runs: a table of what can be changed so, and who
 * is told. The rest keeps its value until the agent is started again, and stays in `cfg` as it is
 * in force.
 *
 * The files belong to root. SIGHUP comes after somebody who may read them has left them anew for
 * the agent (config_files_install): systemd's units, or the supervisor. The HTTP API asks for it by
 * a word in the file RUNDIR/reload, and is answered when the signal has come.
 */
#ifndef PADDOCK_AGENT_RELOAD_H
#define PADDOCK_AGENT_RELOAD_H

#include "agent/api/api.h"
#include "common/err.h"

struct reload_host {
    struct loop *loop;
    const char *run_dir;
    struct agent_config *cfg; /* in force: changed in place */
    struct tls *tls;      /* NULL: all is plain */
    struct roles **roles;     /* NULL before they are started */
    int (*load)(void *arg, const void *ctx, struct agent_config **ret, struct err *e);
    void *arg;
};

struct reload *reload_new(const void *ctx, const struct reload_host *host);
/* At SIGHUP: reads, compares, applies and logs; those who asked are answered. */
void reload_now(struct reload *r);
/* struct api has these. */
reload_ask_fn reload_ask;
void reload_forget(void *arg, void *done_arg);
/* Answers all who wait: the agent stops. */
void reload_stop(struct reload *r);

#endif
