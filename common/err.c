/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int code;
    const char *text;
    int http;
} codes[] = {
#define ERR_ROW(name, code, text, http) {code, text, http},
    ERR_CODES(ERR_ROW)
#undef ERR_ROW
};

int
err_set(struct err *e, int code, const char *fmt, ...)
{
    if (!e || e->code)
        return code;
    e->code = code;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    return code;
}

int
err_errno(struct err *e, int errnum, const char *fmt, ...)
{
    if (!e || e->code)
        return -errnum;
    e->code = -errnum;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    size_t n = strlen(e->text);
    (void)snprintf(e->text + n, sizeof(e->text) - n, ": %s", err_name(errnum));
    return -errnum;
}

int
err_prefix(struct err *e, const char *fmt, ...)
{
    if (!e)
        return -EIO;
    char old[ERR_TEXT_MAX];
    memcpy(old, e->text, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    size_t n = strlen(e->text);
    (void)snprintf(e->text + n, sizeof(e->text) - n, ": %s", old);
    return e->code;
}

void
err_clear(struct err *e)
{
    e->code = 0;
    e->text[0] = 0;
}

const char *
err_name(int code)
{
    if (code < 0)
        code = -code;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].code == code)
            return codes[i].text;
    const char *s = strerrordesc_np(code);
    return s ? s : "unknown error";
}

int
err_http_status(int code)
{
    if (code < 0)
        code = -code;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].code == code)
            return codes[i].http;
    switch (code) {
    case EINVAL:
        return 400;
    case ENOENT:
        return 404;
    case EACCES:
    case EPERM:
        return 403;
    case ENOSPC:
    case EDQUOT:
        return 507;
    default:
        return 500;
    }
}
