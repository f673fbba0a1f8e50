/* SPDX-License-Identifier: Apache-2.0
 *
 * The escape character of a terminal session.
 */
#include "cli/escape.h"

void
escape_init(struct escape *x, char ch)
{
    *x = (struct escape){.ch = ch, .at_start = true};
}

/* False: the session is to end. */
static bool
escape_feed_byte(struct escape *x, char c, struct buf *out)
{
    if (x->seen) {
        x->seen = false;
        if (c == '.')
            return false;
        if (c != x->ch)
            buf_putc(out, x->ch);
    } else if (x->at_start && c == x->ch) {
        x->seen = true;
        x->at_start = false;
        return true;
    }
    buf_putc(out, c);
    x->at_start = c == '\r' || c == '\n';
    return true;
}

bool
escape_feed(struct escape *x, const char *p, size_t n, struct buf *out)
{
    if (!x->ch)
        buf_put(out, p, n);
    for (size_t i = 0; x->ch && i < n; i++)
        if (!escape_feed_byte(x, p[i], out))
            return false;
    return true;
}
