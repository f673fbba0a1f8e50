/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/supervisor.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#define WARDEN_NAME "paddock-warden"

static bool
has_warden(const char *dir)
{
    auto_mem void *ctx = mem_ctx("helpers");
    return access(mem_printf(ctx, "%s/" WARDEN_NAME, dir), X_OK) == 0;
}

int
supervisor_helpers(char *ret, unsigned long size, struct err *e)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash != NULL)
            *slash = '\0';
        if (has_warden(self) && str_copy(ret, size, self))
            return 0;
    } else {
        str_copy(self, sizeof(self), "?");
    }
    if (has_warden(PKGLIBEXECDIR) && str_copy(ret, size, PKGLIBEXECDIR))
        return 0;
    return err_set(e, -ERR_NOT_FOUND, WARDEN_NAME " is neither in \"%s\" nor in \"%s\"", self,
                   PKGLIBEXECDIR);
}
