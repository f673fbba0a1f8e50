/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock top: the terminal, by the escape sequences that all of them know (ECMA-48): no library.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/top/top.h"

enum { PICTURE_MAX = 4 << 20, ESCAPE_MS = 30 };

static struct termios saved;
static volatile sig_atomic_t resized, ended;

static void
on_resize(int sig)
{
    (void)sig;
    resized = 1;
}

static void
on_end(int sig)
{
    (void)sig;
    ended = 1;
}

static void
screen_write(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t r = write(STDOUT_FILENO, p, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0) {
            ended = 1;
            return;
        }
        p += r;
        n -= (size_t)r;
    }
}

void
screen_size(struct screen *s)
{
    struct winsize w;

    s->rows = 24;
    s->columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0) {
        s->rows = w.ws_row;
        s->columns = w.ws_col;
    }
}

bool
screen_open(struct screen *s)
{
    static const char begin[] = "\033[?1049h\033[?25l\033[2J";
    struct sigaction resize = {.sa_handler = on_resize}, end = {.sa_handler = on_end};
    struct termios t;

    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &saved) < 0)
        return false;
    t = saved;
    cfmakeraw(&t);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &t) < 0)
        return false;
    (void)sigaction(SIGWINCH, &resize, NULL);
    (void)sigaction(SIGTERM, &end, NULL);
    (void)sigaction(SIGHUP, &end, NULL);
    (void)sigaction(SIGINT, &end, NULL);
    buf_init(&s->out, PICTURE_MAX);
    screen_size(s);
    screen_write(begin, sizeof(begin) - 1);
    return true;
}

void
screen_close(struct screen *s)
{
    static const char end[] = "\033[0m\033[?25h\033[?1049l";

    screen_write(end, sizeof(end) - 1);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
    buf_done(&s->out);
}

static int
key_byte(int64_t wait_ms)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char ch;

    if (resized || ended)
        return KEY_NONE;
    if (poll(&p, 1, (int)wait_ms) <= 0)
        return KEY_NONE;
    ssize_t n = read(STDIN_FILENO, &ch, 1);
    if (n == 0 || (n < 0 && errno != EINTR))
        return KEY_GONE;
    return n == 1 ? ch : KEY_NONE;
}

/* The rest of a sequence that ESC began: "[A", "OA", "[5~". */
static int
key_sequence(void)
{
    int ch = key_byte(ESCAPE_MS);

    if (ch != '[' && ch != 'O')
        return KEY_ESCAPE;
    ch = key_byte(ESCAPE_MS);
    int last = ch;
    for (int i = 0; i < 8 && ((last >= '0' && last <= '9') || last == ';'); i++)
        last = key_byte(ESCAPE_MS);
    switch (last == '~' ? ch : last) {
    case 'A':
        return KEY_UP;
    case 'B':
        return KEY_DOWN;
    case '5':
        return KEY_PAGE_UP;
    case '6':
        return KEY_PAGE_DOWN;
    case 'H':
    case '1':
        return KEY_HOME;
    case 'F':
    case '4':
        return KEY_END;
    case 'D':
        return KEY_ESCAPE;
    case 'C':
        return '\r';
    default:
        return KEY_NONE;
    }
}

int
screen_key(int64_t wait_ms)
{
    int ch = key_byte(wait_ms);

    if (ended)
        return KEY_GONE;
    if (resized) {
        resized = 0;
        return KEY_RESIZE;
    }
    return ch == '\033' ? key_sequence() : ch;
}

void
screen_begin(struct screen *s)
{
    buf_reset(&s->out);
    buf_puts(&s->out, "\033[H");
}

/* Cells of a character: none for what is put onto the one before, two for those of East Asia. */
static unsigned
cells_of(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } wide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                {0xf900, 0xfaff}, {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

    if ((c >= 0x300 && c <= 0x36f) || (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0x200b && c <= 0x200d))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(wide); i++)
        if (c >= wide[i].from && c <= wide[i].to)
            return 2;
    return 1;
}

/* The first character of valid UTF-8, and its bytes. */
static uint32_t
first_char(const char *p, size_t *ret_len)
{
    unsigned char c = (unsigned char)*p;
    size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    uint32_t v = n == 1 ? c : c & (0x7fU >> n);

    for (size_t i = 1; i < n; i++)
        v = v << 6 | ((unsigned char)p[i] & 0x3f);
    *ret_len = n;
    return v;
}

static void
put_blanks(struct screen *s, unsigned n)
{
    while (n-- > 0)
        buf_putc(&s->out, ' ');
}

unsigned
screen_put(struct screen *s, const char *text, unsigned width, bool right)
{
    char tame[1024];
    size_t n = utf8_cut(str_or(text, ""), sizeof(tame) - 1), len;
    unsigned cells = 0, most = width > 0 ? width : UINT32_MAX;

    memcpy(tame, str_or(text, ""), n);
    tame[n] = '\0';
    str_tame(tame, false);
    const char *p = tame;
    while (*p) {
        unsigned w = cells_of(first_char(p, &len));
        if (cells + w > most)
            break;
        cells += w;
        p += len;
    }
    if (right && width > cells)
        put_blanks(s, width - cells);
    buf_put(&s->out, tame, (size_t)(p - tame));
    if (!right && width > cells)
        put_blanks(s, width - cells);
    return width > cells ? width : cells;
}

void
screen_tone(struct screen *s, enum top_tone t, bool marked)
{
    static const char *const codes[] = {"", ";32", ";33", ";31", ";2"};

    buf_printf(&s->out, "\033[0%s%sm", s->color ? codes[t] : "", marked ? ";7" : "");
}

void
screen_end_line(struct screen *s)
{
    buf_puts(&s->out, "\033[0m\033[K\r\n");
}

void
screen_end(struct screen *s)
{
    /* the last line has no end, which would scroll */
    if (s->out.len >= 2 && s->out.data[s->out.len - 1] == '\n')
        s->out.len -= 2;
    buf_puts(&s->out, "\033[J");
    if (buf_error(&s->out) == 0)
        screen_write((const char *)s->out.data, s->out.len);
}
