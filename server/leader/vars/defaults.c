/* SPDX-License-Identifier: Apache-2.0
 *
 * The first configuration of the scheduler, as server { default_scheduler_config } has it: whoever
 * leads writes it while there is none. Later ones are written by people, and stay.
 */
#include "common/mem.h"
#include "server/leader/leader_int.h"

static struct scheduler_configuration *
defaults_of(const void *ctx, const struct agent_scheduler_config *c)
{
    struct scheduler_configuration *ret = type_new(ctx, &type_scheduler_configuration);
    const struct agent_preemption *p = c->preemption_config;

    codec_defaults(ret, &type_scheduler_configuration, ret);
    ret->scheduler_algorithm = c->scheduler_algorithm;
    ret->memory_oversubscription_enabled = c->memory_oversubscription_enabled;
    ret->reject_job_registration = c->reject_job_registration;
    ret->pause_eval_broker = c->pause_eval_broker;
    ret->node_limit_for_feasibility_checks = (uint64_t)c->node_limit_for_feasibility_checks;
    if (p == NULL)
        return ret;
    ret->preemption_config = mem_new(ret, struct preemption_config);
    ret->preemption_config->system_scheduler_enabled = true;
    if (p->system_scheduler_enabled.set)
        ret->preemption_config->system_scheduler_enabled = p->system_scheduler_enabled.v;
    ret->preemption_config->sys_batch_scheduler_enabled = p->sys_batch_scheduler_enabled;
    ret->preemption_config->batch_scheduler_enabled = p->batch_scheduler_enabled;
    ret->preemption_config->service_scheduler_enabled = p->service_scheduler_enabled;
    return ret;
}

static void
row_on_leader(struct leader *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("defaults");
    const struct agent_server *a = server_cfg(l->s)->agent;
    const struct scheduler_configuration *now = state_scheduler_config(t, tmp);

    if (a == NULL || a->default_scheduler_config == NULL || now->modify_index != 0)
        return;
    struct intent_scheduler_cas cas = {defaults_of(tmp, a->default_scheduler_config), 0};
    struct intent in = {.scheduler_cas = &cas};
    if (!codec_equal(&type_scheduler_configuration, cas.scheduler_config, now, 0))
        leader_owe(l, &in);
}

const struct controller defaults_row = {.on_leader = row_on_leader};
