/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of the agent's log (see logfile.h). The descriptor is the same over its life: a line
 * that is written meanwhile goes to the old file or the new one.
 */
#include "agent/logfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/str.h"

enum { PATH_BYTES = 4096 };

static pthread_mutex_t rotating = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static char path[PATH_BYTES], dir[PATH_BYTES];
static const char *name, *ext; /* in path: its last part, and where that has its extension */
static int64_t bytes_max, every_ns, files_max;
static atomic_int_fast64_t size, begun_ns;

static int
file_begin(void)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

static bool
file_is_over(void)
{
    return (bytes_max > 0 && size >= bytes_max) ||
           (every_ns > 0 && clock_mono_ns() - begun_ns >= every_ns);
}

/* Says whether it is a file of before: the name, a hyphen, digits, the extension. */
static bool
file_is_old(const char *s)
{
    size_t stem = (size_t)(ext - name), n;

    if (strncmp(s, name, stem) != 0 || s[stem] != '-')
        return false;
    s += stem + 1;
    n = strspn(s, "0123456789");
    return n > 0 && str_eq(s + n, ext);
}

/* Removes the oldest until there are `files_max`; the names are in the order of time. */
static void
files_prune(void)
{
    for (int64_t n = files_max + 1; files_max > 0 && n > files_max;) {
        char oldest[NAME_MAX + 1] = "";
        DIR *d = opendir(dir);
        n = 0;
        for (const struct dirent *x; d != NULL && (x = readdir(d)) != NULL;)
            if (file_is_old(x->d_name)) {
                n++;
                if (oldest[0] == '\0' || strcmp(x->d_name, oldest) < 0)
                    (void)str_copy(oldest, sizeof(oldest), x->d_name);
            }
        if (n > files_max && (d == NULL || unlinkat(dirfd(d), oldest, 0) < 0))
            n = 0; /* somebody else's: the next rotation tries again */
        if (d != NULL)
            closedir(d);
    }
}

/* Tries again, where it fails, when the next file is over. */
static void
file_rotate(void)
{
    char old[PATH_BYTES];
    int n = snprintf(old, sizeof(old), "%.*s-%lld%s", (int)(ext - path), path,
                     (long long)clock_wall_ns(), ext);

    size = 0;
    begun_ns = clock_mono_ns();
    if (n < 0 || n >= (int)sizeof(old) || rename(path, old) < 0)
        return;
    auto_fd int fd = file_begin();
    if (fd < 0) {
        (void)rename(old, path);
        return;
    }
    (void)dup3(fd, log_fd, O_CLOEXEC);
    if (files_max < 0)
        (void)unlink(old);
    files_prune();
}

static void
file_written(size_t n)
{
    size += (int64_t)n;
    if (!file_is_over() || pthread_mutex_trylock(&rotating) != 0)
        return;
    if (file_is_over())
        file_rotate();
    pthread_mutex_unlock(&rotating);
}

int
logfile_open(const struct agent_config *cfg)
{
    struct stat st;
    const char *slash;

    if (!str_copy(path, sizeof(path), cfg->log_file))
        return -ENAMETOOLONG;
    slash = strrchr(path, '/');
    name = slash != NULL ? slash + 1 : path;
    ext = strrchr(name, '.');
    if (ext == NULL || ext == name)
        ext = name + strlen(name);
    snprintf(dir, sizeof(dir), "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    bytes_max = cfg->log_rotate_bytes;
    every_ns = cfg->log_rotate_duration;
    files_max = cfg->log_rotate_max_files;
    log_fd = file_begin();
    if (log_fd < 0)
        return -errno;
    size = fstat(log_fd, &st) == 0 ? st.st_size : 0;
    begun_ns = clock_mono_ns();
    log_on_written(file_written);
    return log_fd;
}
