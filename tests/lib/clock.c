/* SPDX-License-Identifier: Apache-2.0
 *
 * Another time of day for whole programs, in LD_PRELOAD: the wall clock of clock_gettime() is off by
 * the nanoseconds in the file that PADDOCK_CLOCK names (8 bytes, of this machine's order), from the
 * moment at which a test writes them there. Shims, which call the kernel by themselves, see the
 * machine's own.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };
static int (*real)(clockid_t id, struct timespec *ts);
static const volatile int64_t *off; /* NULL: the programs of tasks are asked for nothing */

static __attribute__((constructor)) void
begin(void)
{
    const char *name = getenv("PADDOCK_CLOCK");
    int fd = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (fd < 0)
        return;
    void *p = mmap(NULL, sizeof(*off), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED) {
        perror("clock.so: PADDOCK_CLOCK");
        abort();
    }
    off = p;
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
    if (real == NULL) /* the constructor of another library asks first */
        begin();
    int r = real(id, ts);
    if (r != 0 || off == NULL || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return r;
    int64_t t = (int64_t)ts->tv_sec * NS_PER_S + ts->tv_nsec + *off;
    ts->tv_sec = (time_t)(t / NS_PER_S);
    ts->tv_nsec = (long)(t % NS_PER_S);
    return 0;
}
