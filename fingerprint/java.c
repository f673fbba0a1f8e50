/* SPDX-License-Identifier: Apache-2.0
 *
 * The JVM of this host. The agent starts no programs, so nobody is asked for `java -version`: the
 * file "release" of the JVM's directory says what that is made of (JDK 9 and later; the 8 has the
 * version alone).
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"

enum { RELEASE_MAX = 64 << 10 }; /* bytes of it: it lists all modules */

/* driver.java.version, .runtime, .vm. */
static void
java_parse(const void *ctx, const char *text, struct str_map *ret)
{
    char version[64] = "", build[128] = "", kind[32] = "";
    if (!fingerprint_parse_os_release(text, "JAVA_VERSION", version, sizeof(version)))
        return;
    str_map_set(ctx, ret, "driver.java.version", version);
    if (!fingerprint_parse_os_release(text, "JAVA_RUNTIME_VERSION", build, sizeof(build)))
        return;
    (void)fingerprint_parse_os_release(text, "BUILD_TYPE", kind, sizeof(kind));
    bool sold = str_eq(kind, "commercial"); /* by Oracle, under names of its own */
    str_map_set(ctx, ret, "driver.java.runtime",
                mem_printf(ctx, "%s Runtime Environment (build %s)",
                           sold ? "Java(TM) SE" : "OpenJDK", build));
    str_map_set(ctx, ret, "driver.java.vm",
                mem_printf(ctx, "%s 64-Bit Server VM (build %s)",
                           sold ? "Java HotSpot(TM)" : "OpenJDK", build));
}

bool
fingerprint_java(const void *ctx, const char *program, struct str_map *ret)
{
    auto_mem void *tmp = mem_ctx("java");
    char real[PATH_MAX];
    if (!realpath(program, real))
        return false;
    char *bin = strrchr(real, '/');
    *bin = 0; /* .../bin */
    char *home = strrchr(real, '/');
    char *text = NULL;
    if (home)
        *home = 0;
    const char *release = mem_printf(tmp, "%s/release", real);
    if (file_read(tmp, AT_FDCWD, release, RELEASE_MAX, &text, NULL) == 0)
        java_parse(ctx, text, ret);
    return true;
}
