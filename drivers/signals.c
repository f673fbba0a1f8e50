/* SPDX-License-Identifier: Apache-2.0
 *
 * Signal names and numbers. Pure.
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "drivers/driver.h"

/* Sorted by name: os.signals is this list. */
#define SIGNALS(X)                                                                                \
    X(ABRT) X(ALRM) X(BUS) X(CHLD) X(CONT) X(FPE) X(HUP) X(ILL) X(INT) X(IO) X(IOT) X(KILL)       \
    X(PIPE) X(PROF) X(QUIT) X(SEGV) X(STOP) X(SYS) X(TERM) X(TRAP) X(TSTP) X(TTIN) X(TTOU)        \
    X(URG) X(USR1) X(USR2) X(VTALRM) X(WINCH) X(XCPU) X(XFSZ)

static const struct {
    const char *name; /* without SIG */
    int number;
} table[] = {
#define SIGNAL_ROW(n) {#n, SIG##n},
    SIGNALS(SIGNAL_ROW)
#undef SIGNAL_ROW
};

int
signal_parse(const char *s)
{
    int64_t n;
    if (str_empty(s))
        return -EINVAL;
    if (isdigit((unsigned char)s[0]))
        return num_parse_i64(s, &n) == 0 && n >= 1 && n <= SIGRTMAX ? (int)n : -EINVAL;
    const char *bare = strncasecmp(s, "SIG", 3) == 0 ? s + 3 : s;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcasecmp(bare, table[i].name) == 0)
            return table[i].number;
    return -EINVAL;
}

const char *
signal_name(int sig, char out[16])
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].number == sig) {
            snprintf(out, 16, "SIG%s", table[i].name);
            return out;
        }
    snprintf(out, 16, "SIG%d", sig);
    return out;
}

const char *
signal_names(void)
{
#define SIGNAL_NAME(n) ",SIG" #n
    static const char all[] = SIGNALS(SIGNAL_NAME);
#undef SIGNAL_NAME
    return all + 1;
}
