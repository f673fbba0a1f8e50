/* SPDX-License-Identifier: Apache-2.0
 *
 * The judgement of autopilot: see pilot.h.
 */
#include "server/peer/pilot.h"

static bool
pilot_well(const struct pilot_rules *r, const struct pilot_server *s)
{
    if (s->leader)
        return true;
    return s->alive && s->silent_ms != INT64_MAX && s->silent_ms - PILOT_BEAT_MS <= r->contact_ms &&
           s->behind <= r->behind_max;
}

size_t
pilot_judge(const struct pilot_rules *r, struct pilot_server *v, size_t n)
{
    size_t voters = 0, well = 0;

    for (size_t i = 0; i < n; i++) {
        v[i].well = pilot_well(r, &v[i]);
        voters += v[i].voter;
        well += v[i].voter && v[i].well;
    }
    return well > voters / 2 + 1 ? well - (voters / 2 + 1) : 0;
}

const struct pilot_server *
pilot_dead(const struct pilot_rules *r, const struct pilot_server *v, size_t n)
{
    const struct pilot_server *dead = NULL;
    size_t voters = 0, alive = 0;
    uint64_t least = r->voters_min > PILOT_VOTERS_MIN ? r->voters_min : PILOT_VOTERS_MIN;

    for (size_t i = 0; i < n; i++) {
        const struct pilot_server *s = &v[i];
        voters += s->voter;
        alive += s->voter && (s->alive || s->leader);
        if (s->alive || s->leader || s->dead_ms == 0 || s->dead_ms < r->dead_ms)
            continue;
        if (dead == NULL || s->dead_ms > dead->dead_ms)
            dead = s;
    }
    if (!r->cleanup || dead == NULL || alive <= voters / 2)
        return NULL;
    return !dead->voter || voters > least ? dead : NULL;
}
