/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: answers that last as long as their reader likes: events and logs of agents.
 */
#ifndef PADDOCK_AGENT_STREAM_STREAM_H
#define PADDOCK_AGENT_STREAM_STREAM_H

#include "agent/api/api.h"

void monitor_get(struct request *a);

#endif
