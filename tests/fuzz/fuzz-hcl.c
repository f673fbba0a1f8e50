/* SPDX-License-Identifier: Apache-2.0
 *
 * The job language. The first byte chooses: a job file, agent configuration in its two forms, or a
 * variable file. Oracles: an error comes with a diagnostic and success without one; a decoded job
 * survives the way through JSON; parsing twice gives the same job; its canonical form is canonical;
 * laid out anew only blanks change.
 */
#include <stddef.h>
#include <stdint.h>

#include "api/canonical.h"
#include "api/validate.h"
#include "common/buf.h"
#include "jobspec/jobspec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct job *
parse(const void *ctx, const char *s, size_t n)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct jobspec_input in = {.name = "fuzz.hcl", .s = s, .n = n};
    struct job *job = NULL;
    int r = jobspec_parse(ctx, &in, &job, &d);
    ASSERT((r == 0) == (d.errors == 0) && (r == 0) == (job != NULL));
    ASSERT(r == 0 || hcl_diags_text(ctx, &d, false)[0] != '\0');
    return job;
}

/* The next byte that is no blank. */
static size_t
next(const char *s, size_t n, size_t i)
{
    while (i < n && (s[i] == ' ' || s[i] == '\t'))
        i++;
    return i;
}

/* Laid out, it is a file as before, and of other bytes than blanks nothing changed. */
static void
layout(const void *ctx, const char *s, size_t n)
{
    auto_buf struct buf b = BUF_INIT(16 << 20);
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body;
    int r = hcl_format(ctx, "fuzz.hcl", s, n, &b, &d);
    ASSERT(r == -ERR_LIMIT || (r < 0) == (d.errors > 0));
    if (r < 0)
        return;
    ASSERT(hcl_parse(ctx, "again.hcl", SLICE(b.data, b.len), 0, &body, &d) == 0);
    size_t i = 0, k = 0;
    for (;; i++, k++) {
        i = next(s, n, i);
        k = next((const char *)b.data, b.len, k);
        if (i == n || k == b.len)
            break;
        ASSERT(s[i] == ((const char *)b.data)[k]);
    }
    ASSERT(i == n && k == b.len);
}

static void
job_file(const void *ctx, const char *s, size_t n)
{
    layout(ctx, s, n);
    struct job *a = parse(ctx, s, n);
    if (a == NULL)
        return;
    ASSERT(codec_equal(&type_job, a, parse(ctx, s, n), 0));
    auto_buf struct buf b = BUF_INIT(64 << 20);
    struct err e = ERR_INIT;
    struct job *back = NULL;
    json_encode(&b, &type_job, a, 0);
    ASSERT(buf_error(&b) == 0);
    int r = jobspec_parse_json(ctx, (const char *)b.data, b.len, &back, &e);
    if (r == -ERR_LIMIT)
        return;
    /* an empty label is no ID */
    ASSERT(r == 0 || a->id == NULL || a->id[0] == '\0');
    ASSERT(r < 0 || codec_equal(&type_job, a, back, 0));
    if (r < 0)
        return;
    struct str_list errors = {NULL, 0}, warnings = {NULL, 0};
    job_canonicalize(back, back);
    job_imply_constraints(back, back);
    struct job *again = codec_clone(ctx, &type_job, back);
    job_canonicalize(again, again);
    job_imply_constraints(again, again);
    ASSERT(codec_equal(&type_job, back, again, 0));
    ASSERT((job_validate(ctx, back, NULL, &errors, &warnings) < 0) == (errors.n > 0));
}

/* A job as the API takes it. */
static void
json_job(const void *ctx, const char *s, size_t n)
{
    struct job *job = NULL, *again = NULL;
    struct err e = ERR_INIT;
    int r = jobspec_parse_json(ctx, s, n, &job, &e);
    ASSERT((r == 0) == (job != NULL) && (r == 0 || e.text[0] != '\0'));
    if (r < 0)
        return;
    struct str_list errors = {NULL, 0}, warnings = {NULL, 0};
    job_canonicalize(job, job);
    job_imply_constraints(job, job);
    again = codec_clone(ctx, &type_job, job);
    job_canonicalize(again, again);
    job_imply_constraints(again, again);
    ASSERT(codec_equal(&type_job, job, again, 0));
    ASSERT((job_validate(ctx, job, NULL, &errors, &warnings) < 0) == (errors.n > 0));
}

static void
configuration(const void *ctx, const char *s, size_t n, unsigned flags)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body = NULL;
    void *obj = NULL;
    int r = hcl_parse(ctx, "fuzz", SLICE(s, n), flags, &body, &d);
    if (r == 0)
        r = hcl_decode(ctx, body, &type_agent_config, flags, &obj, &d);
    ASSERT((r == 0) == (d.errors == 0) && (r == 0) == (obj != NULL));
}

static void
variables(const void *ctx, const char *s, size_t n)
{
    static const char text[] = "variable \"a\" { default = \"\" }\n"
                               "variable \"l\" {\n type = list(map(number))\n default = []\n}\n"
                               "job \"j\" { meta { x = jsonencode([var.a, var.l]) } }\n";
    struct jobspec_file file = {"v", s, n};
    struct jobspec_input in = {
        .name = "j", .s = text, .n = sizeof(text) - 1, .var_files = &file, .n_var_files = 1};
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct job *job = NULL;
    int r = jobspec_parse(ctx, &in, &job, &d);
    ASSERT((r == 0) == (d.errors == 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    auto_mem void *ctx = mem_ctx("fuzz");
    if (n == 0)
        return 0;
    const char *s = (const char *)data + 1;
    switch (data[0] % 8) {
    case 0:
        configuration(ctx, s, n - 1, HCL_LITERAL | HCL_LOOSE);
        break;
    case 1:
        configuration(ctx, s, n - 1, HCL_LITERAL | HCL_JSON);
        break;
    case 2:
        variables(ctx, s, n - 1);
        break;
    case 3:
        json_job(ctx, s, n - 1);
        break;
    default:
        job_file(ctx, s, n - 1);
        break;
    }
    return 0;
}
