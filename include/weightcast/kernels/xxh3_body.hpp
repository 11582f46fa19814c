// SPDX-License-Identifier: Apache-2.0
#pragma once
// XXH3 with 64 bits of result and seed 0, written so that CPU and GPU run the same text; bit for
// bit what xxHash 0.8 computes (its specification:
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).

#include <weightcast/kernels/host_device.hpp>

namespace weightcast::kernels {

/// Running state of an input longer than 240 bytes.
struct xxh3_accumulators {
    unsigned long long lane[8];
};

namespace xxh3 {

using u32 = unsigned int;
using u64 = unsigned long long;
using bytes = unsigned char const*;

// Enumerators: constants of a namespace have no address on a device.
enum : u32 { prime32_1 = 0x9E3779B1U, prime32_2 = 0x85EBCA77U, prime32_3 = 0xC2B2AE3DU };
enum : u64 {
    prime64_1 = 0x9E3779B185EBCA87ULL,
    prime64_2 = 0xC2B2AE3D27D4EB4FULL,
    prime64_3 = 0x165667B19E3779F9ULL,
    prime64_4 = 0x85EBCA77C2B2AE63ULL,
    prime64_5 = 0x27D4EB2F165667C5ULL,
    prime_mix_1 = 0x165667919E3779F9ULL,
    prime_mix_2 = 0x9FB21C651E98DF25ULL
};
/// Bytes of a stripe, of a block (16 stripes), and up to where inputs take the short ways.
enum : u64 { stripe_bytes = 64, block_stripes = 16, block_bytes = 1024, short_bytes = 240 };

/// The default secret: 192 bytes.
WEIGHTCAST_HOST_DEVICE inline bytes secret() {
    alignas(64) static constexpr unsigned char table[192] = {
        0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad,
        0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3,
        0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc,
        0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
        0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65,
        0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
        0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9,
        0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
        0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb,
        0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0,
        0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d,
        0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
        0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};
    return table;
}

// Little-endian numbers at any address, in memory of any type.
struct __attribute__((packed, may_alias)) any_u32 {
    u32 value;
};
struct __attribute__((packed, may_alias)) any_u64 {
    u64 value;
};
WEIGHTCAST_HOST_DEVICE inline u32 read32(bytes p) {
    return reinterpret_cast<any_u32 const*>(p)->value;
}
WEIGHTCAST_HOST_DEVICE inline u64 read64(bytes p) {
    return reinterpret_cast<any_u64 const*>(p)->value;
}
WEIGHTCAST_HOST_DEVICE inline u32 swap32(u32 x) {
    return x << 24U | (x << 8U & 0x00FF0000U) | (x >> 8U & 0x0000FF00U) | x >> 24U;
}
WEIGHTCAST_HOST_DEVICE inline u64 swap64(u64 x) {
    return static_cast<u64>(swap32(static_cast<u32>(x))) << 32U |
           swap32(static_cast<u32>(x >> 32U));
}
WEIGHTCAST_HOST_DEVICE inline u64 rotate_left(u64 x, int bits) {
    return x << bits | x >> (64 - bits);
}

/// Low half xor high half of the 128-bit product.
WEIGHTCAST_HOST_DEVICE inline u64 multiply_fold(u64 a, u64 b) {
    u64 const low_low = (a & 0xFFFFFFFFU) * (b & 0xFFFFFFFFU);
    u64 const high_low = (a >> 32U) * (b & 0xFFFFFFFFU);
    u64 const low_high = (a & 0xFFFFFFFFU) * (b >> 32U);
    u64 const high_high = (a >> 32U) * (b >> 32U);
    u64 const cross = (low_low >> 32U) + (high_low & 0xFFFFFFFFU) + low_high;
    u64 const high = (high_low >> 32U) + (cross >> 32U) + high_high;
    u64 const low = cross << 32U | (low_low & 0xFFFFFFFFU);
    return low ^ high;
}
WEIGHTCAST_HOST_DEVICE inline u64 avalanche_64(u64 h) {
    h = (h ^ h >> 33U) * prime64_2;
    h = (h ^ h >> 29U) * prime64_3;
    return h ^ h >> 32U;
}
WEIGHTCAST_HOST_DEVICE inline u64 avalanche(u64 h) {
    h = (h ^ h >> 37U) * prime_mix_1;
    return h ^ h >> 32U;
}
WEIGHTCAST_HOST_DEVICE inline u64 mix_16(bytes in, bytes key) {
    return multiply_fold(read64(in) ^ read64(key), read64(in + 8) ^ read64(key + 8));
}

WEIGHTCAST_HOST_DEVICE inline u64 hash_0_to_3(bytes in, u64 n) {
    if (n == 0) return avalanche_64(read64(secret() + 56) ^ read64(secret() + 64));
    u64 const first = in[0];
    u64 const middle = in[n >> 1U];
    u64 const last = in[n - 1];
    u64 const combined = first << 16U | middle << 24U | last | n << 8U;
    return avalanche_64(combined ^ (read32(secret()) ^ read32(secret() + 4)));
}
WEIGHTCAST_HOST_DEVICE inline u64 hash_4_to_8(bytes in, u64 n) {
    u64 const joined = read32(in + n - 4) + (static_cast<u64>(read32(in)) << 32U);
    u64 h = joined ^ (read64(secret() + 8) ^ read64(secret() + 16));
    h ^= rotate_left(h, 49) ^ rotate_left(h, 24);
    h *= prime_mix_2;
    h ^= (h >> 35U) + n;
    h *= prime_mix_2;
    return h ^ h >> 28U;
}
WEIGHTCAST_HOST_DEVICE inline u64 hash_9_to_16(bytes in, u64 n) {
    u64 const low = read64(in) ^ (read64(secret() + 24) ^ read64(secret() + 32));
    u64 const high = read64(in + n - 8) ^ (read64(secret() + 40) ^ read64(secret() + 48));
    return avalanche(n + swap64(low) + high + multiply_fold(low, high));
}
WEIGHTCAST_HOST_DEVICE inline u64 hash_17_to_128(bytes in, u64 n) {
    u64 h = n * prime64_1;
    for (u64 i = (n - 1) / 32 + 1; i-- > 0;) {
        h += mix_16(in + 16 * i, secret() + 32 * i);
        h += mix_16(in + n - 16 * (i + 1), secret() + 32 * i + 16);
    }
    return avalanche(h);
}
WEIGHTCAST_HOST_DEVICE inline u64 hash_129_to_240(bytes in, u64 n) {
    u64 h = n * prime64_1;
    for (u64 i = 0; i < 8; ++i) h += mix_16(in + 16 * i, secret() + 16 * i);
    h = avalanche(h);
    for (u64 i = 8; i < n / 16; ++i) h += mix_16(in + 16 * i, secret() + 16 * (i - 8) + 3);
    return avalanche(h + mix_16(in + n - 16, secret() + 136 - 17));
}
WEIGHTCAST_HOST_DEVICE inline u64 hash_short(bytes in, u64 n) {
    if (n <= 3) return hash_0_to_3(in, n);
    if (n <= 8) return hash_4_to_8(in, n);
    if (n <= 16) return hash_9_to_16(in, n);
    if (n <= 128) return hash_17_to_128(in, n);
    return hash_129_to_240(in, n);
}

WEIGHTCAST_HOST_DEVICE inline xxh3_accumulators start() {
    return {
        {prime32_3, prime64_1, prime64_2, prime64_3, prime64_4, prime32_2, prime64_5, prime32_1}};
}
// Two lanes at a time: compilers make good code of it without vector types.
WEIGHTCAST_HOST_DEVICE inline void accumulate_pair(u64& even, u64& odd, bytes in, bytes key) {
    u64 const first = read64(in);
    u64 const second = read64(in + 8);
    u64 const first_key = first ^ read64(key);
    u64 const second_key = second ^ read64(key + 8);
    even += second + (first_key & 0xFFFFFFFFU) * (first_key >> 32U);
    odd += first + (second_key & 0xFFFFFFFFU) * (second_key >> 32U);
}
/// Takes that many stripes in, the first with the secret from `key` on.
WEIGHTCAST_HOST_DEVICE inline void accumulate(xxh3_accumulators& a, bytes in, u64 stripes,
                                              bytes key) {
    u64 l0 = a.lane[0], l1 = a.lane[1], l2 = a.lane[2], l3 = a.lane[3];
    u64 l4 = a.lane[4], l5 = a.lane[5], l6 = a.lane[6], l7 = a.lane[7];
    for (u64 i = 0; i < stripes; ++i, in += stripe_bytes, key += 8) {
        accumulate_pair(l0, l1, in, key);
        accumulate_pair(l2, l3, in + 16, key + 16);
        accumulate_pair(l4, l5, in + 32, key + 32);
        accumulate_pair(l6, l7, in + 48, key + 48);
    }
    a = {{l0, l1, l2, l3, l4, l5, l6, l7}};
}
/// Ends a block.
WEIGHTCAST_HOST_DEVICE inline void scramble(xxh3_accumulators& a) {
    for (int i = 0; i < 8; ++i) {
        u64 const mixed = a.lane[i] ^ a.lane[i] >> 47U ^ read64(secret() + 128 + 8 * i);
        a.lane[i] = mixed * prime32_1;
    }
}
/// The last 64 bytes of the whole input, then the result of n bytes.
WEIGHTCAST_HOST_DEVICE inline u64 finish(xxh3_accumulators a, bytes last_stripe, u64 n) {
    accumulate(a, last_stripe, 1, secret() + 121);
    u64 h = n * prime64_1;
    for (int i = 0; i < 4; ++i) {
        h += multiply_fold(a.lane[2 * i] ^ read64(secret() + 11 + 16 * i),
                           a.lane[2 * i + 1] ^ read64(secret() + 19 + 16 * i));
    }
    return avalanche(h);
}
WEIGHTCAST_HOST_DEVICE inline u64 hash_long(bytes in, u64 n) {
    xxh3_accumulators a = start();
    u64 const blocks = (n - 1) / block_bytes;
    for (u64 i = 0; i < blocks; ++i, in += block_bytes) {
        accumulate(a, in, block_stripes, secret());
        scramble(a);
    }
    u64 const rest = n - blocks * block_bytes;
    accumulate(a, in, (rest - 1) / stripe_bytes, secret());
    return finish(a, in + rest - stripe_bytes, n);
}

}  // namespace xxh3

/// XXH3_64bits of n bytes.
WEIGHTCAST_HOST_DEVICE inline unsigned long long xxh3_64_of(unsigned char const* in,
                                                            unsigned long long n) {
    return n <= xxh3::short_bytes ? xxh3::hash_short(in, n) : xxh3::hash_long(in, n);
}

}  // namespace weightcast::kernels
