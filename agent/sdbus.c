/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sdbus.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#define SDBUS_LIBRARY "libsystemd.so.0" /* its interface is stable by promise of the project */

const struct sdbus *
sdbus_load(struct err *e)
{
    static struct sdbus bus;
    static void *library;
    if (library)
        return &bus;
    if (access("/run/systemd/system", F_OK) < 0) {
        (void)err_set(e, -ERR_UNAVAILABLE, "systemd does not run here");
        return NULL;
    }
    void *so = dlopen(SDBUS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        (void)err_set(e, -ERR_NOT_FOUND, "cannot load " SDBUS_LIBRARY " (package libsystemd0): %s",
                      dlerror());
        return NULL;
    }
#define SDBUS_LOAD(name)                                                                           \
    void *at_##name = dlsym(so, "sd_bus_" #name);                                                  \
    if (!at_##name) {                                                                              \
        (void)err_set(e, -ERR_UNSUPPORTED, SDBUS_LIBRARY " has no function sd_bus_" #name);        \
        (void)dlclose(so);                                                                         \
        return NULL;                                                                               \
    }                                                                                              \
    memcpy(&bus.name, &at_##name, sizeof(at_##name)); /* ISO C knows no cast to a function */
    SDBUS_FUNCTIONS(SDBUS_LOAD)
#undef SDBUS_LOAD
    library = so;
    return &bus;
}
