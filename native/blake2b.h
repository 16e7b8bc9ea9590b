/* BLAKE2b with a digest of 8 bytes and no key (RFC 7693), as in hashlib. It names the records. */
#ifndef BLAKE2B_H
#define BLAKE2B_H

#include <stdint.h>
#include <string.h>

static const uint64_t blake2b_start[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};

static const uint8_t blake2b_order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static uint64_t blake2b_turn(uint64_t word, int bits) { return word >> bits | word << (64 - bits); }

static void blake2b_mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y) {
    v[a] += v[b] + x;
    v[d] = blake2b_turn(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = blake2b_turn(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = blake2b_turn(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = blake2b_turn(v[b] ^ v[c], 63);
}

static void blake2b_block(uint64_t h[8], const uint8_t block[128], uint64_t count, int is_last) {
    uint64_t m[16] = {0}, v[16];
    for (int i = 0; i < 128; i++) m[i / 8] |= (uint64_t)block[i] << 8 * (i % 8);
    memcpy(v, h, 64);
    memcpy(v + 8, blake2b_start, 64);
    v[12] ^= count;
    if (is_last) v[14] = ~v[14];
    for (int round = 0; round < 12; round++) {
        const uint8_t *s = blake2b_order[round % 10];
        for (int i = 0; i < 4; i++)
            blake2b_mix(v, i, i + 4, i + 8, i + 12, m[s[2 * i]], m[s[2 * i + 1]]);
        for (int i = 0; i < 4; i++)
            blake2b_mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]],
                        m[s[9 + 2 * i]]);
    }
    for (int i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
}

/* Write the digest of a text as 16 hex digits and a NUL. */
static void blake2b_hex(const char *text, size_t size, char hex[17]) {
    uint64_t h[8];
    uint8_t block[128];
    size_t done = 0;
    memcpy(h, blake2b_start, 64);
    h[0] ^= 0x01010008u;
    for (; size - done > 128; done += 128) {
        memcpy(block, text + done, 128);
        blake2b_block(h, block, done + 128, 0);
    }
    memset(block, 0, 128);
    memcpy(block, text + done, size - done);
    blake2b_block(h, block, size, 1);
    for (int i = 0; i < 16; i++) hex[i] = "0123456789abcdef"[h[0] >> (8 * (i / 2) + (i % 2 ? 0 : 4)) & 15];
    hex[16] = 0;
}

#endif
