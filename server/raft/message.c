/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a message of another server makes sense: the library's own asserts are compiled out, so
 * no field of it reaches a step unchecked.
 */
#include <string.h>

#include "common/mem.h"
#include "server/raft/consensus.h"

static int
message_bad(struct err *e, const struct peer_msg *m, const char *why)
{
    return err_set(e, -ERR_INVALID, "raft message of type %d from server %llu: %s", (int)m->type,
                   (unsigned long long)m->peer, why);
}

static int
check_append(const struct peer_msg *m, bool leads, struct err *e)
{
    if ((m->index == 0) != (m->log_term == 0))
        return message_bad(e, m, "index and term of the entry before do not fit together");
    if (m->log_term > m->term)
        return message_bad(e, m, "the entry before is of a later term");
    if (m->n > CONSENSUS_INFLIGHT_MAX || m->index > UINT64_MAX / 2)
        return message_bad(e, m, "too many entries");
    if (m->n > 0 && m->entries == NULL)
        return message_bad(e, m, "the entries are missing");
    if (leads)
        return message_bad(e, m, "it claims to lead the term that we lead");
    uint64_t term = m->log_term;
    for (size_t i = 0; i < m->n; i++) {
        const struct record *r = &m->entries[i];
        if (r->type != RECORD_COMMAND && r->type != RECORD_BARRIER && r->type != RECORD_CONFIG)
            return message_bad(e, m, "an entry of unknown type");
        if (r->term == 0 || r->term < term || r->term > m->term)
            return message_bad(e, m, "terms of entries are out of order");
        if (r->n > RECORD_DATA_MAX || (r->n > 0 && r->data == NULL))
            return message_bad(e, m, "an entry is too large");
        term = r->term;
        auto_mem void *tmp = mem_ctx("check config");
        struct peer_list l;
        if (r->type == RECORD_CONFIG && consensus_conf_decode(tmp, r->data, r->n, &l) < 0)
            return message_bad(e, m, "a configuration that does not decode");
    }
    return 0;
}

int
consensus_msg_check(uint64_t id, uint64_t lead_term, const struct peer_msg *m, struct err *e)
{
    if (m->peer == 0 || m->peer == id)
        return message_bad(e, m, "not another server");
    if (m->addr == NULL || strlen(m->addr) > CONSENSUS_ADDR_MAX)
        return message_bad(e, m, "no address, or one too long");
    if (m->term == 0 || m->term > UINT64_MAX / 2)
        return message_bad(e, m, "no term, or one out of range");
    bool leads = lead_term != 0 && m->term == lead_term;
    switch (m->type) {
    case MSG_APPEND:
        return check_append(m, leads, e);
    case MSG_APPEND_RESULT:
        return m->last > UINT64_MAX / 2 ? message_bad(e, m, "an index out of range") : 0;
    case MSG_VOTE:
        if ((m->index == 0) != (m->log_term == 0) || m->log_term > m->term)
            return message_bad(e, m, "index and term of the last entry do not fit together");
        return 0;
    case MSG_VOTE_RESULT:
        return 0;
    case MSG_SNAPSHOT:
        if (m->index == 0 || m->index > UINT64_MAX / 2 || m->log_term == 0 ||
            m->log_term > m->term || m->conf_index == 0 || m->conf_index > m->index)
            return message_bad(e, m, "indexes and terms do not fit together");
        if (!consensus_conf_valid(&m->conf))
            return message_bad(e, m, "its configuration is invalid");
        return leads ? message_bad(e, m, "it claims to lead the term that we lead") : 0;
    case MSG_TIMEOUT_NOW:
        return m->log_term > m->term ? message_bad(e, m, "the last entry is of a later term") : 0;
    }
    return message_bad(e, m, "unknown type");
}
