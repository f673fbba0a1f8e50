/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as text and from text, and where numbers come from. In this order: integers, floats and
 * booleans; durations and sizes; times (RFC 3339); clocks; chance and UUIDs; CRC32C, in software
 * and by the instruction of the processor.
 *
 * Durations are read as fixed-point numbers, so that no text loses a nanosecond. A parser looks at
 * the whole string, and leaves *ret untouched when it fails.
 */
#include "common/num.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/civil.h"
#include "common/mem.h"

int
num_parse_u64(const char *s, uint64_t *ret)
{
    uint64_t v = 0;
    if (!*s)
        return -EINVAL;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return -EINVAL;
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return -ERANGE;
    }
    *ret = v;
    return 0;
}

int
num_parse_i64(const char *s, int64_t *ret)
{
    bool neg = *s == '-';
    uint64_t v;
    int r = num_parse_u64(s + (neg || *s == '+'), &v);
    if (r < 0)
        return r;
    if (v > (uint64_t)INT64_MAX + (neg ? 1u : 0u))
        return -ERANGE;
    *ret = neg ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

int
num_parse_f64(const char *s, double *ret)
{
    /* strtod accepts more than numbers: hex, inf, nan, blanks. */
    if (!*s || strspn(s, "+-0123456789.eE") != strlen(s))
        return -EINVAL;
    char *end;
    errno = 0;
    double v = strtod(s, &end); /* the agent never calls setlocale */
    if (*end || end == s)
        return -EINVAL;
    if (errno == ERANGE && !isfinite(v))
        return -ERANGE;
    *ret = v;
    return 0;
}

int
num_parse_bool(const char *s, bool *ret)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (strcmp(s, yes[i]) == 0) {
            *ret = true;
            return 0;
        }
        if (strcmp(s, no[i]) == 0) {
            *ret = false;
            return 0;
        }
    }
    return -EINVAL;
}

/* "12.5" at *s as a fixed-point number: whole part, and fraction in units of 1e-15. */
static int
parse_decimal(const char **s, uint64_t *ret_whole, uint64_t *ret_frac)
{
    const char *p = *s;
    uint64_t whole = 0, frac = 0, unit = UINT64_C(100000000000000);
    bool digits = false;
    for (; *p >= '0' && *p <= '9'; p++, digits = true)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
            return -ERANGE;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits = true) {
            frac += (uint64_t)(*p - '0') * unit;
            unit /= 10;
        }
    if (!digits)
        return -EINVAL;
    *s = p;
    *ret_whole = whole;
    *ret_frac = frac;
    return 0;
}

int
duration_parse(const char *s, int64_t *ret_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        {"ns", 1},
        {"us", 1000},
        {"\xc2\xb5s", 1000}, /* micro sign */
        {"\xce\xbcs", 1000}, /* Greek mu */
        {"ms", 1000000},
        {"s", 1000000000},
        {"m", UINT64_C(60000000000)},
        {"h", UINT64_C(3600000000000)},
    };
    bool neg = *s == '-';
    if (neg || *s == '+')
        s++;
    if (strcmp(s, "0") == 0) {
        *ret_ns = 0;
        return 0;
    }
    if (!*s)
        return -EINVAL;
    uint64_t total = 0;
    while (*s) {
        uint64_t whole, frac;
        int r = parse_decimal(&s, &whole, &frac);
        if (r < 0)
            return r;
        size_t n = 0;
        while (s[n] && s[n] != '.' && (s[n] < '0' || s[n] > '9'))
            n++;
        uint64_t unit = 0;
        for (size_t i = 0; i < ARRAY_LEN(units) && !unit; i++)
            if (strlen(units[i].name) == n && memcmp(units[i].name, s, n) == 0)
                unit = units[i].ns;
        if (!unit)
            return -EINVAL;
        s += n;
        uint64_t part;
        if (__builtin_mul_overflow(whole, unit, &part) ||
            __builtin_add_overflow(part, (uint64_t)((__uint128_t)frac * unit / 1000000000000000u),
                                   &part) ||
            __builtin_add_overflow(total, part, &total) || total > INT64_MAX)
            return -ERANGE;
    }
    *ret_ns = neg ? -(int64_t)total : (int64_t)total;
    return 0;
}

/* v / 10^digits with trailing zeros removed: "1.5", "2" */
static size_t
put_fraction(char *out, size_t size, uint64_t v, unsigned digits)
{
    uint64_t scale = 1;
    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    int n = snprintf(out, size, "%" PRIu64, v / scale);
    if (v % scale) {
        n += snprintf(out + n, size - (size_t)n, ".%0*" PRIu64, (int)digits, v % scale);
        while (out[n - 1] == '0')
            out[--n] = 0;
    }
    return (size_t)n;
}

const char *
duration_format(int64_t ns, char out[DURATION_TEXT])
{
    char *p = out;
    uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    if (u == 0)
        return strcpy(out, "0s");
    if (ns < 0)
        *p++ = '-';
    size_t left = DURATION_TEXT - 1;
    if (u < 1000000000) {
        const char *unit = u < 1000 ? "ns" : u < 1000000 ? "\xc2\xb5s" : "ms";
        p += put_fraction(p, left, u, u < 1000 ? 0 : u < 1000000 ? 3 : 6);
        strcpy(p, unit);
        return out;
    }
    uint64_t h = u / UINT64_C(3600000000000), m = u / UINT64_C(60000000000) % 60;
    if (h)
        p += snprintf(p, left, "%" PRIu64 "h", h);
    if (h || m)
        p += snprintf(p, 4, "%" PRIu64 "m", m);
    p += put_fraction(p, 16, u % UINT64_C(60000000000), 9);
    strcpy(p, "s");
    return out;
}

const char *
size_format(uint64_t bytes, char out[SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1024 && u + 1 < ARRAY_LEN(units)) {
        v /= 1024;
        u++;
    }
    v = floor(v * 10 + 0.5) / 10;
    if (v >= 10 || u == 0)
        (void)snprintf(out, SIZE_TEXT, "%.0f %s", v, units[u]);
    else
        (void)snprintf(out, SIZE_TEXT, "%.1f %s", v, units[u]);
    return out;
}

const char *
time_format(int64_t ns, char out[TIME_TEXT])
{
    if (ns == 0)
        return strcpy(out, "0001-01-01T00:00:00Z");
    int64_t sec = ns / NS_PER_S, frac = ns % NS_PER_S;
    if (frac < 0) {
        frac += NS_PER_S;
        sec--;
    }
    struct tm tm;
    time_t t = (time_t)sec;
    if (!gmtime_r(&t, &tm))
        return strcpy(out, "0001-01-01T00:00:00Z");
    size_t n = strftime(out, TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
    if (frac) {
        n += (size_t)snprintf(out + n, TIME_TEXT - n, ".%09" PRId64, frac);
        while (out[n - 1] == '0')
            n--;
    }
    strcpy(out + n, "Z");
    return out;
}

static bool
num_digits(const char *s, size_t n, int *ret)
{
    int v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        v = v * 10 + (s[i] - '0');
    }
    *ret = v;
    return true;
}

int
time_parse(const char *s, size_t len, int64_t *ret_ns)
{
    int y, mo, d, h, mi, sec, oh, om;
    if (len < 20 || !num_digits(s, 4, &y) || s[4] != '-' || !num_digits(s + 5, 2, &mo) ||
        s[7] != '-' || !num_digits(s + 8, 2, &d) || (s[10] | 0x20) != 't' ||
        !num_digits(s + 11, 2, &h) || s[13] != ':' || !num_digits(s + 14, 2, &mi) || s[16] != ':' ||
        !num_digits(s + 17, 2, &sec))
        return -EINVAL;
    if (mo < 1 || mo > 12 || d < 1 || d > 31 || h > 23 || mi > 59 || sec > 60)
        return -ERANGE;
    size_t i = 19;
    int64_t frac = 0, unit = 100000000;
    if (s[i] == '.')
        for (i++; i < len && s[i] >= '0' && s[i] <= '9'; i++, unit /= 10)
            frac += (s[i] - '0') * unit;
    int64_t off = 0;
    if (i + 1 == len && (s[i] | 0x20) == 'z')
        off = 0;
    else if (i + 6 == len && (s[i] == '+' || s[i] == '-') && num_digits(s + i + 1, 2, &oh) &&
             s[i + 3] == ':' && num_digits(s + i + 4, 2, &om) && oh < 24 && om < 60)
        off = (s[i] == '-' ? -1 : 1) * (oh * 3600 + om * 60);
    else
        return -EINVAL;
    if (y == 1 && mo == 1 && d == 1 && h == 0 && mi == 0 && sec == 0) {
        *ret_ns = 0; /* Go's zero time */
        return 0;
    }
    struct tm tm = {.tm_year = y - 1900, .tm_mon = mo - 1, .tm_mday = d, .tm_hour = h, .tm_min = mi,
                    .tm_sec = sec};
    int64_t t = (int64_t)timegm(&tm) - off, ns;
    if (__builtin_mul_overflow(t, NS_PER_S, &ns) || __builtin_add_overflow(ns, frac, &ns))
        return -ERANGE;
    *ret_ns = ns;
    return 0;
}

static int64_t
clock_ns(clockid_t id)
{
    struct timespec ts;
    ASSERT(clock_gettime(id, &ts) == 0);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t
clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t
clock_boot_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

int64_t
clock_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

static pthread_mutex_t civil_lock = PTHREAD_MUTEX_INITIALIZER;
static struct civil civil; /* of this process */

int64_t
clock_civil_ns(void)
{
    pthread_mutex_lock(&civil_lock);
    int64_t now = civil_now(&civil, clock_boot_ns(), clock_wall_ns());
    pthread_mutex_unlock(&civil_lock);
    return now;
}

int64_t
clock_civil_of(int64_t wall_ns)
{
    return wall_ns - (clock_wall_ns() - clock_civil_ns());
}

void
rand_bytes(void *p, size_t n)
{
    ssize_t r;
    do
        r = getrandom(p, n, 0);
    while (r < 0 && errno == EINTR);
    ASSERT(r == (ssize_t)n); /* up to 256 bytes are never cut short, random(4) */
}

uint64_t
rand_u64(void)
{
    uint64_t v;
    rand_bytes(&v, sizeof(v));
    return v;
}

const char *
uuid_make(char out[UUID_TEXT])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t b[16];
    rand_bytes(b, sizeof(b));
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    char *p = out;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[b[i] >> 4];
        *p++ = hex[b[i] & 15];
    }
    *p = 0;
    return out;
}

bool
uuid_valid(const char *s)
{
    for (size_t i = 0; i < UUID_TEXT - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f');
        if (dash ? s[i] != '-' : !hex)
            return false;
    }
    return s[UUID_TEXT - 1] == 0;
}

/* CRC32C, reflected polynomial 0x82f63b78 (RFC 3720, appendix B.4). */
static uint32_t
crc32c_soft(uint32_t crc, const uint8_t *p, size_t n)
{
    static uint32_t table[256];
    if (!table[1]) /* benign race: every thread writes the same values */
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++)
                c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
            __atomic_store_n(&table[i], c, __ATOMIC_RELAXED);
        }
    for (; n; n--, p++)
        crc = crc >> 8 ^ __atomic_load_n(&table[(crc ^ *p) & 255], __ATOMIC_RELAXED);
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
crc32c_sse(uint32_t crc, const uint8_t *p, size_t n)
{
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = __builtin_ia32_crc32di(c, v);
    }
    for (; n; n--, p++)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p);
    return (uint32_t)c;
}
#endif

uint32_t
crc32c(uint32_t crc, const void *p, size_t n)
{
    crc = ~crc;
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_sse(crc, p, n);
#endif
    return ~crc32c_soft(crc, p, n);
}
