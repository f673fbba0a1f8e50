/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration of the agent: files and directories (HCL1 habits or JSON), merged in order, then
 * flags, then defaults, then checks. The struct is struct agent_config of api/schema/config.schema.
 */
#ifndef PADDOCK_AGENT_CONFIG_CONFIG_H
#define PADDOCK_AGENT_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"
#include "common/opt.h"

struct flags_more;

/* The options of the command line. Zero or NULL: not given. Strings point into argv. */
struct config_flags {
    struct opt_list config; /* -config, files or directories in order */
    const char
        *run_dir; /* where config_files_install() left them: read those. NULL: read the above */
    bool dev;
    bool server, client;
    const char *bind, *region, *encrypt, *dc, *data_dir, *plugin_dir, *node, *log_level;
    bool log_json;
    int64_t bootstrap_expect, raft_protocol, retry_max, retry_interval_ns, network_speed;
    bool rejoin;
    struct opt_list join, retry_join, meta;
    const char *state_dir, *alloc_dir, *alloc_mounts_dir, *host_volumes_dir, *node_class,
        *node_pool;
    const char *servers; /* comma list */
    const char *network_interface, *preferred_address_family;
    bool acl_enabled;
    const char *acl_replication_token;
    struct flags_more *more; /* known flags that are refused */
};

/* The option table of `paddock agent` that fills `f`; owned by ctx, ended by a NULL name. */
const struct opt *config_options(const void *ctx, struct config_flags *f);

/* Reads, merges, defaults and checks. *ret and texts are owned by ctx. On failure e->text holds the
 * first line and *ret_detail (if not NULL) the full text with source lines and all errors.
 * `warnings` may be NULL. Call again for SIGHUP. */
int config_load(const void *ctx, const struct config_flags *f, struct agent_config **ret,
                struct str_list *warnings, const char **ret_detail, struct err *e);

/* Says what the agent would refuse in `c`, which was decoded from one file and is changed: for a
 * look (migrate check), not for a start. What other files may say need not be there, and interfaces
 * are those of another machine. Complaints are added, at most one of each part but plugins; texts
 * are owned by ctx. */
void config_judge(const void *ctx, struct agent_config *c, struct str_list *errors,
                  struct str_list *warnings);

/* Reads the files as the caller may, and leaves them in p->run_dir for the agent, whose user may
 * not: root's 0600 stays so. Parses nothing. Before each start of the agent, and before SIGHUP. */
int config_files_install(const struct config_flags *f, const struct policy *p, struct err *e);

/* The files of the tls block: certificates and keys, without those that are not said. */
struct str_list config_tls_files(const void *ctx, const struct agent_config *c);
/* The text of one of them as root read it; NULL: it is not said. */
const char *config_tls_text(const struct agent_config *c, const char *path);

/* Adds the keys in which two configurations differ, as files spell them ("client.meta",
 * "plugin.docker"); owned by ctx. */
void config_changes(const void *ctx, const struct agent_config *a, const struct agent_config *b,
                    struct str_list *ret);

/* The configuration as text for /v1/agent/self: secrets hidden. */
struct value *config_value(const void *ctx, const struct agent_config *c);

/* host:port that a role binds: addresses.X or bind_addr, ports.X. Owned by c. */
const char *config_http_addr(const struct agent_config *c);
const char *config_rpc_addr(const struct agent_config *c);
const char *config_serf_addr(const struct agent_config *c);
/* "127.0.0.1:4648" and the like. */
bool config_is_loopback(const char *addr);
/* Strangers on the network of servers read and change nothing: all is encrypted. Or the operator
 * says that there are none (plain_rpc). */
bool config_rpc_guarded(const struct agent_config *c);
/* The error of a server of which that is not so. */
int config_refuse_plain(const struct agent_config *c, struct err *e);

/* Reads what client.drain_on_shutdown asks for; false: nothing (-dev ends its tasks instead). */
bool config_drain(const struct agent_config *c, struct drain_spec *ret);
/* How much longer the agent may take to stop because of it, ns: 0 to INT64_MAX. */
int64_t config_drain_ns(const struct agent_config *c);

#endif
