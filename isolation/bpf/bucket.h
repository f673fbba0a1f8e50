/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Histograms of the programs: the place of a time among `n` buckets, up to 1, 2, 4 ... microseconds
 * and, in the last one, above. `n` is a constant.
 */
#ifndef PADDOCK_BPF_BUCKET_H
#define PADDOCK_BPF_BUCKET_H

static __always_inline __u32
bpf_bucket(__u64 ns, const int n)
{
    __u64 us = ns / 1000;
    __u32 i = 0;
#pragma unroll
    for (int k = 0; k < n - 1; k++)
        i += us >= (1ULL << k);
    return i;
}

#endif
