/* SPDX-License-Identifier: Apache-2.0 */
#include "net/splice.h"

#include "common/mem.h"
#include "net/limits.h"

struct splice {
    struct side {
        struct splice *both;
        struct side *other;
        struct stream *stream; /* NULL: it has gone */
        bool finishing;
    } side[2];
    loop_fn *done;
    void *arg;
};

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct side *from = arg, *to = from->other;
    struct buf b = BUF_INIT(SIZE_MAX);

    if (to->stream == NULL)
        return;
    buf_put(&b, p, n);
    stream_write(to->stream, &b, 1);
    if (stream_queued(to->stream) >= STREAM_LOW_WATER)
        stream_read(from->stream, false); /* until on_drain */
}

static void
on_drain(void *arg)
{
    struct side *from = ((struct side *)arg)->other;

    if (from->stream != NULL)
        stream_read(from->stream, true);
}

static void
on_eof(void *arg)
{
    struct side *to = ((struct side *)arg)->other;

    to->finishing = true;
    if (to->stream != NULL)
        stream_finish(to->stream, 0);
}

static void
on_close(void *arg, int code)
{
    struct side *s = arg, *other = s->other;
    struct splice *both = s->both;

    (void)code;
    s->stream = NULL;
    if (other->stream == NULL) {
        both->done(both->arg);
        talloc_free(both);
    } else if (!other->finishing) {
        stream_close(other->stream);
    }
}

static const struct stream_ops ops = {
    .on_data = on_data, .on_eof = on_eof, .on_drain = on_drain, .on_close = on_close};

void
splice(struct stream *a, struct stream *b, loop_fn *done, void *arg)
{
    struct splice *both = mem_new(NULL, struct splice);

    *both = (struct splice){
        .side = {{both, &both->side[1], a, false}, {both, &both->side[0], b, false}},
        .done = done,
        .arg = arg};
    stream_accept(a, &ops, &both->side[0]);
    stream_accept(b, &ops, &both->side[1]);
}
