/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc exec, job action: a command in a running task, over a WebSocket to the agent. The terminal
 * (raw while the session lasts); what goes to the task: input, sizes of the window, signs of life;
 * what comes from it: output and the exit code; and the commands, which run one loop until the
 * session is over.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/alloc/alloc.h"
#include "cli/api.h"
#include "cli/escape.h"
#include "net/http/ws.h"

enum {
    CHUNK = 16 << 10,         /* bytes of input in a message */
    HEARTBEAT_MS = 10 * 1000, /* a sign of life, for what watches idle connections on the way */
    MESSAGE_MEMORY = 4 << 20  /* of a decoded message */
};

struct session {
    struct cmd *c;
    struct loop *loop;
    struct ws *ws; /* NULL: over */
    bool tty, input_open;
    struct escape escape;
    struct watch *in;       /* of standard input; NULL: a file, which is always ready */
    struct timer *in_later; /* reads from such a file */
    struct timer *heartbeat;
    struct termios saved; /* of the terminal, when `raw` */
    bool raw;
    int code; /* exit code */
};

/* --- the terminal --- */

static void
make_raw(struct session *s)
{
    struct termios t;

    if (!s->tty || tcgetattr(STDIN_FILENO, &s->saved) < 0)
        return; /* input is no terminal: nothing to change */
    t = s->saved;
    cfmakeraw(&t);
    s->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
}

static void
exec_restore(struct session *s)
{
    if (s->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->saved);
    s->raw = false;
}

/* --- to the task --- */

static void
send_input(struct session *s, const struct exec_input *in)
{
    struct buf b = BUF_INIT(WS_MESSAGE_MAX);
    json_encode(&b, &type_exec_input, in, 0);
    ws_send(s->ws, b.data, b.len);
    buf_done(&b);
}

static void
send_size(struct session *s)
{
    struct winsize w;

    if (!s->ws || !s->tty ||
        (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &w) < 0))
        return;
    struct exec_terminal t = {.height = w.ws_row, .width = w.ws_col};
    send_input(s, &(struct exec_input){.tty_size = &t});
}

static void
stop_input(struct session *s)
{
    watch_stop(TAKE(s->in));
    timer_stop(TAKE(s->in_later));
    s->input_open = false;
}

/* The end of the session, from either side; the loop ends with it. */
static void
exec_finish(struct session *s, int code)
{
    s->code = code;
    stop_input(s);
    timer_stop(TAKE(s->heartbeat));
    ws_close(TAKE(s->ws), WS_NORMAL, "");
    loop_stop(s->loop);
}

static void
heartbeat_cb(void *arg)
{
    struct session *s = arg;
    s->heartbeat = timer_start(s->loop, HEARTBEAT_MS, heartbeat_cb, s);
    ws_send(s->ws, "{}", 2);
}

static void in_later(void *arg);

/* One piece of standard input. */
static void
read_input(struct session *s)
{
    char block[CHUNK];
    auto_buf struct buf out = BUF_INIT(2 * CHUNK);
    ssize_t n = read(STDIN_FILENO, block, sizeof(block));

    if (n > 0 && !escape_feed(&s->escape, block, (size_t)n, &out)) {
        exec_finish(s, 1); /* "~.": as if the connection had been cut */
        return;
    }
    if (out.len > 0)
        send_input(
            s, &(struct exec_input){.stdin = &(struct exec_stream){.data = {out.data, out.len}}});
    if (n <= 0) {
        stop_input(s);
        send_input(s, &(struct exec_input){.stdin = &(struct exec_stream){.close = true}});
        return;
    }
    bool full = ws_queued(s->ws) >= STREAM_LOW_WATER; /* until on_drain */
    if (s->in)
        watch_set(s->in, full ? 0 : WATCH_READ);
    else if (!full && !s->in_later)
        s->in_later = timer_start(s->loop, 0, in_later, s);
}

static void
in_later(void *arg)
{
    struct session *s = arg;
    s->in_later = NULL;
    read_input(s);
}

static void
in_ready(void *arg, int fd, unsigned events)
{
    (void)fd, (void)events;
    read_input(arg);
}

static void
on_drain(void *arg)
{
    struct session *s = arg;
    if (!s->input_open)
        return;
    if (s->in)
        watch_set(s->in, WATCH_READ);
    else if (!s->in_later)
        s->in_later = timer_start(s->loop, 0, in_later, s);
}

static void
on_open(void *arg)
{
    struct session *s = arg;

    make_raw(s);
    send_size(s);
    s->heartbeat = timer_start(s->loop, HEARTBEAT_MS, heartbeat_cb, s);
    if (!s->input_open) {
        send_input(s, &(struct exec_input){.stdin = &(struct exec_stream){.close = true}});
        return;
    }
    s->in = watch_fd(s->loop, STDIN_FILENO, WATCH_READ, in_ready, s);
    if (!s->in)
        s->in_later = timer_start(s->loop, 0, in_later, s);
}

/* --- from the task --- */

static bool
exec_put(FILE *f, const struct exec_stream *x)
{
    return !x || x->data.n == 0 ||
           (fwrite(x->data.v, 1, x->data.n, f) == x->data.n && fflush(f) == 0);
}

static void
on_message(void *arg, const void *p, size_t n)
{
    struct session *s = arg;
    auto_mem void *ctx = mem_ctx("exec message");
    struct err e = ERR_INIT;
    void *obj = NULL;

    if (json_decode(ctx, &type_exec_output, SLICE(p, n), BUDGET(MESSAGE_MEMORY), &obj, &e) < 0) {
        exec_restore(s);
        exec_finish(s, cmd_fail(s->c, "failed to exec into task: %s", e.text));
        return;
    }
    const struct exec_output *o = obj;
    if (o && (!exec_put(s->c->out, o->stdout) || !exec_put(s->c->err, o->stderr))) {
        exec_restore(s);
        exec_finish(s, cmd_fail(s->c, "failed to exec into task: writing the output failed"));
    } else if (o && o->exited) {
        exec_finish(s, o->result ? (int)(o->result->exit_code & 0xff) : 0);
    }
}

static void
on_close(void *arg, unsigned code, const char *why)
{
    struct session *s = arg;

    s->ws = NULL;
    exec_restore(s);
    if (*why)
        exec_finish(s, cmd_fail(s->c, "failed to exec into task: %s", why));
    else
        exec_finish(s, cmd_fail(s->c, "failed to exec into task: closed with code %u", code));
}

static const struct ws_ops session_ops = {
    .on_open = on_open, .on_message = on_message, .on_drain = on_drain, .on_close = on_close};

static void
on_signal(void *arg, int sig)
{
    struct session *s = arg;
    if (sig == SIGWINCH)
        send_size(s);
    else if (s->ws)
        exec_finish(s, 1);
}

static int
exec_run(struct session *s, const char *target)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    struct err e = ERR_INIT;

    s->loop = loop_new();
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        loop_on_signal(s->loop, signals[i], on_signal, s);
    s->ws = ws_connect(s->loop, s->c->address, api_ask(s->c, "GET", target), &session_ops, s, &e);
    if (s->ws)
        loop_run(s->loop);
    else
        s->code = cmd_fail(s->c, "failed to exec into task: %s", e.text);
    exec_restore(s);
    loop_free(s->loop);
    return s->code;
}

/* --- the command --- */

static char *
command_json(struct cmd *c)
{
    auto_buf struct buf b = BUF_INIT(HTTP_HEADER_BYTES_MAX);
    for (size_t i = 1; i < c->n_args; i++) {
        buf_putc(&b, i == 1 ? '[' : ',');
        json_put_string(&b, c->args[i], strlen(c->args[i]));
    }
    buf_putc(&b, ']');
    return buf_error(&b) ? NULL : mem_strdup(c, buf_str(&b));
}

struct exec_opts {
    bool in, tty, tty_given, job;
    const char *escape, *task, *group;
};

static int
exec_start(struct cmd *c, const struct exec_opts *o)
{
    struct session s = {.c = c, .tty = o->tty, .input_open = o->in};
    const struct allocation *a =
        o->job ? alloc_of_job(c, c->args[0], o->group) : alloc_find(c, c->args[0]);
    const char *task = a ? alloc_task(c, a, o->task) : NULL;
    char *command = command_json(c);

    if (!task)
        return 1;
    if (!command)
        return cmd_fail(c, "The command is too long: at most %d bytes", HTTP_HEADER_BYTES_MAX);
    escape_init(&s.escape, o->tty && !str_eq(o->escape, "none") ? o->escape[0] : 0);
    return exec_run(&s, api_target(c, "/v1/client/allocation/%/exec", a->id, "task", task,
                                   "command", command, "tty", o->tty ? "true" : "false", NULL));
}

/* Settles whether there is a terminal. False: an option is wrong, which was said. */
static bool
exec_terminal(struct cmd *c, struct exec_opts *o, int *rc)
{
    if (!o->tty_given)
        o->tty = o->in && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    *rc = 0;
    if (o->tty && !o->in)
        *rc = cmd_fail(c, "-i must be enabled if running with tty");
    else if (!str_eq(o->escape, "none") && strlen(o->escape) != 1)
        *rc = cmd_fail(c, "-e requires 'none' or a single character");
    return *rc == 0;
}

int
cmd_alloc_exec(struct cmd *c)
{
    struct exec_opts o = {.in = true, .escape = "~"};
    const struct opt opts[] = {
        {"i", OPT_BOOL, &o.in, NULL, "Pass standard input on (the default); -i=false gives none."},
        {"t", OPT_BOOL, &o.tty, NULL,
         "Give the command a terminal; default: when input and output are terminals.",
         &o.tty_given},
        {"e", OPT_STRING, &o.escape, "<char>",
         "The escape character of a terminal session (default ~), or none. At the beginning of a "
         "line it "
         "ends the session when a dot follows."},
        {"task", OPT_STRING, &o.task, "<task>", "The task."},
        {"job", OPT_BOOL, &o.job, NULL, "The argument is a job; one of its allocations is used."},
        {"group", OPT_STRING, &o.group, "<group>", "With -job: the group."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts,
                   &(struct cmd_args){.client = true, .min = 2, .max = SIZE_MAX, .verbatim = true},
                   &rc))
        return rc;
    return exec_terminal(c, &o, &rc) ? exec_start(c, &o) : rc;
}

/* --- an action of a job --- */

/* Returns the one action of that name, in the group and the task where these are given; NULL: said.
 */
static const struct job_action *
action_find(struct cmd *c, const char *job, const char *name, const struct exec_opts *o)
{
    struct object_list l = {NULL, 0};
    const struct job_action *found = NULL;

    if (!api_read_list(c, api_target(c, "/v1/job/%/actions", job, NULL), &type_job_action, &l,
                       "Error retrieving actions"))
        return NULL;
    for (size_t i = 0; i < l.n; i++) {
        const struct job_action *x = l.v[i];
        if (!str_eq(x->name, name) || (!str_empty(o->task) && !str_eq(x->task_name, o->task)) ||
            (!str_empty(o->group) && !str_eq(x->task_group_name, o->group)))
            continue;
        if (found != NULL) {
            cmd_fail(c, "Several tasks have an action \"%s\": say which by -group and -task", name);
            return NULL;
        }
        found = x;
    }
    if (found == NULL)
        cmd_fail(c, "Job \"%s\" has no action \"%s\" there", job, name);
    return found;
}

int
cmd_job_action(struct cmd *c)
{
    struct exec_opts o = {.in = true, .escape = "~"};
    const char *job = NULL, *alloc = NULL;
    const struct opt opts[] = {
        {"job", OPT_STRING, &job, "<job>", "The job."},
        {"alloc", OPT_STRING, &alloc, "<allocation>", "The allocation; default: a running one."},
        {"group", OPT_STRING, &o.group, "<group>", "The group that has the action."},
        {"task", OPT_STRING, &o.task, "<task>", "The task that has the action."},
        {"i", OPT_BOOL, &o.in, NULL, "Pass standard input on (the default); -i=false gives none."},
        {"t", OPT_BOOL, &o.tty, NULL,
         "Give the command a terminal; default: when input and output are terminals.",
         &o.tty_given},
        {"e", OPT_STRING, &o.escape, "<char>",
         "The escape character of a terminal session (default ~), or none."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc) ||
        !exec_terminal(c, &o, &rc))
        return rc;
    if (str_empty(job))
        return cmd_fail(c, "A job ID is required: -job");
    const struct job_action *x = action_find(c, job, c->args[0], &o);
    if (x == NULL)
        return 1;
    const struct allocation *a =
        str_empty(alloc) ? alloc_of_job(c, job, x->task_group_name) : alloc_find(c, alloc);
    if (a == NULL)
        return 1;
    struct session s = {.c = c, .tty = o.tty, .input_open = o.in};
    escape_init(&s.escape, o.tty && !str_eq(o.escape, "none") ? o.escape[0] : 0);
    return exec_run(&s, api_target(c, "/v1/job/%/action", job, "action", x->name, "allocID", a->id,
                                   "task", x->task_name, "group", x->task_group_name, "tty",
                                   o.tty ? "true" : "false", NULL));
}
