/* SPDX-License-Identifier: Apache-2.0 */
#include "common/civil.h"

#define S INT64_C(1000000000) /* ns */
#define STEP_NS (5 * S)
#define DOUBT_NS (600 * S) /* at least */
enum { DOUBT_PART = 6 };
#define SET_NS (1577836800 * S) /* 2020-01-01 */

static int64_t
civil_apart(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

static int64_t
doubt_ns(int64_t jump_ns)
{
    int64_t part = jump_ns / DOUBT_PART;
    return part > DOUBT_NS ? part : DOUBT_NS;
}

int64_t
civil_now(struct civil *c, int64_t boot_ns, int64_t wall_ns)
{
    int64_t offset = wall_ns - boot_ns, jump = civil_apart(offset, c->offset_ns);
    bool first_set = boot_ns + c->offset_ns < SET_NS && wall_ns >= SET_NS;
    if (!c->known || jump <= STEP_NS || first_set) {
        *c = (struct civil){.known = true, .offset_ns = offset};
    } else if (!c->doubting || civil_apart(offset, c->doubted_ns) > STEP_NS) {
        c->doubting = true;
        c->doubted_ns = offset;
        c->since_ns = boot_ns;
    } else if (boot_ns - c->since_ns >= doubt_ns(jump)) {
        *c = (struct civil){.known = true, .offset_ns = offset};
    }
    return boot_ns + c->offset_ns;
}
