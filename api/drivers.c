/* SPDX-License-Identifier: Apache-2.0 */
#include "api/drivers.h"

#include "common/str.h"

const struct driver_can drivers_can[DRIVERS_N] = {
#define X(id, ...) [DRIVER_##id] = {.name = #id, __VA_ARGS__},
    DRIVERS(X)
#undef X
};

const struct driver_can *
driver_can(const char *name)
{
    for (size_t i = 0; i < DRIVERS_N; i++)
        if (str_eq(drivers_can[i].name, name))
            return &drivers_can[i];
    return NULL;
}

const char *
driver_nearest(const char *name)
{
    const char *names[DRIVERS_N];
    for (size_t i = 0; i < DRIVERS_N; i++)
        names[i] = drivers_can[i].name;
    return str_nearest(name, names, DRIVERS_N);
}

bool
driver_engine(const char *name)
{
    const struct driver_can *can = driver_can(name);
    return can && !can->launch;
}

bool
driver_unboxed(const char *name)
{
    const struct driver_can *can = driver_can(name);
    return can && !can->isolation;
}
