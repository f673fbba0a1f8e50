/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"

#include <pthread.h>
#include <time.h>

#include "common/civil.h"
#include "common/duration.h"
#include "common/mem.h"

static int64_t
clock_ns(clockid_t id)
{
    struct timespec ts;
    ASSERT(clock_gettime(id, &ts) == 0);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t
clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t
clock_boot_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

int64_t
clock_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

static pthread_mutex_t civil_lock = PTHREAD_MUTEX_INITIALIZER;
static struct civil civil; /* of this process */

int64_t
clock_civil_ns(void)
{
    pthread_mutex_lock(&civil_lock);
    int64_t now = civil_now(&civil, clock_boot_ns(), clock_wall_ns());
    pthread_mutex_unlock(&civil_lock);
    return now;
}

int64_t
clock_civil_of(int64_t wall_ns)
{
    return wall_ns - (clock_wall_ns() - clock_civil_ns());
}
