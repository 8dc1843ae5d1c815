// The hot path of neardup in C: ASCII text to the 128-slot signature of its 5-word shingles, format fast-2.
//
// bench_limit.py compiles it (gcc -O3 -march=native) and compares its signatures, byte for byte, and its speed with the
// kernels of neardup. It is not part of the package: it shows how much of a core the kernels leave unused.
#include <stdint.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint8_t u8;

enum { BLOCK = 64, SPAN = 32, SHORT = 16, MAX_SIZE = 64, MAX_SLOTS = 1024 };

static inline u64 load64(const u8 *at) {
    u64 value;
    memcpy(&value, at, 8);
    return value;
}

static inline u64 fold_multiply(u64 left, u64 right) {
    __uint128_t product = (__uint128_t)left * right;
    return (u64)product ^ (u64)(product >> 64);
}

static inline u64 first_bytes(long count) { return count >= 8 ? ~0ULL : (1ULL << (8 * count)) - 1; }

static inline u64 hash_word(const u8 *word, long width, const u64 *key) {
    const u64 *masks = key + SHORT + 1;
    if (__builtin_expect(width <= SHORT, 1)) {
        u64 head = load64(word) & first_bytes(width < 8 ? width : 8);
        u64 tail = load64(word + 8) & first_bytes(width > 8 ? width - 8 : 0);
        return fold_multiply(head ^ key[width], tail ^ masks[0]);
    }
    u64 hash = fold_multiply((u64)width ^ masks[1], masks[2]);
    const u8 *at = word, *last = word + width - 16;
    for (; at < last; at += 16) hash = fold_multiply(hash ^ load64(at) ^ masks[3], load64(at + 8) ^ masks[4]);
    return fold_multiply(hash ^ load64(last) ^ masks[3], load64(last + 8) ^ masks[4]);
}

// Write `length` bytes in lower case, padded to whole blocks, and one bit a byte: set inside words.
static void fold(const u8 *text, long length, u8 *folded, u64 *inside) {
    for (long block = 0; block * BLOCK < length; block++) {
        u8 *lower = folded + block * BLOCK;
        u8 is_word[BLOCK];
        for (int at = 0; at < BLOCK; at++) {
            u8 byte = text[block * BLOCK + at];
            lower[at] = (u8)(byte - 'A') < 26 ? byte | 32 : byte;
        }
        for (int at = 0; at < BLOCK; at++)
            is_word[at] = ((u8)(lower[at] - 'a') < 26) | ((u8)(lower[at] - '0') < 10);
        u64 bits = 0;
        for (int at = 0; at < BLOCK; at += 8) bits |= ((load64(is_word + at) * 0x0102040810204080ULL) >> 56) << at;
        long rest = length - block * BLOCK;
        inside[block] = rest < BLOCK ? bits & ((1ULL << rest) - 1) : bits;
    }
}

static inline u64 rotated(u64 value) { return value >> 32 | value << 32; }

// Write the hashes of every run of `size` words of a folded document; return how many.
static long shingle(const u8 *folded, const u64 *inside, long length, int size, const u64 *key, u64 *shingles) {
    const u64 *last = key + SHORT + 1 + 5;
    u64 edges[SPAN * BLOCK + 16], words[MAX_SIZE + SPAN * BLOCK / 2 + 1] = {0};
    u64 base = last[2], swapped_base = last[3], power = 1, swapped_power = 1;
    for (int at = 0; at < size; at++) power *= base, swapped_power *= swapped_base;
    u64 rolling = 0, swapped = 0, in_word = 0;
    long num_blocks = (length + BLOCK - 1) / BLOCK, num_edges = 0, num_all = 0;
    for (long block = 0; block < num_blocks; block += SPAN) {
        long stop = block + SPAN < num_blocks ? block + SPAN : num_blocks;
        for (long at = block; at < stop; at++) {
            u64 turns = inside[at] ^ (inside[at] << 1 | in_word);
            u64 *to = edges + num_edges;
            in_word = inside[at] >> 63;
            num_edges += __builtin_popcountll(turns);
            for (; turns; to += 8)
                for (int step = 0; step < 8; step++, turns &= turns - 1) to[step] = at * BLOCK + __builtin_ctzll(turns | 1ULL << 63);
        }
        if (stop == num_blocks && in_word) edges[num_edges++] = length;
        long num_words = num_edges / 2;
        for (long at = 0; at < num_words; at++) {
            u64 word = hash_word(folded + edges[2 * at], edges[2 * at + 1] - edges[2 * at], key), oldest = words[at];
            words[at + size] = word;
            rolling = rolling * base + (word - oldest * power);
            swapped = swapped * swapped_base + (rotated(word) - rotated(oldest) * swapped_power);
            u64 mixed = fold_multiply(rolling ^ last[0], swapped ^ last[1]);
            long place = num_all + at - (size - 1);
            shingles[place < 0 ? 0 : place] = mixed ? mixed : 1;
        }
        num_all += num_words;
        memmove(words, words + num_words, size * sizeof *words);
        if (num_edges & 1) edges[0] = edges[num_edges - 1];
        num_edges &= 1;
    }
    return num_all >= size ? num_all - size + 1 : num_all > 0;
}

static void sketch(const u64 *shingles, long count, int log_slots, const u32 *multipliers, const u32 *addends, u32 *slots) {
    int num_slots = 1 << log_slots;
    memset(slots, 0xFF, num_slots * sizeof *slots);
    if (!count) return;
    for (long at = 0; at < count; at++) {
        u64 hash = shingles[at];
        u32 value = (u32)(hash << log_slots >> 33), *slot = slots + (hash >> (64 - log_slots));
        *slot = value < *slot ? value : *slot;
    }
    u32 empty[MAX_SLOTS], a[MAX_SLOTS], b[MAX_SLOTS], least[MAX_SLOTS], num_empty = 0;
    for (int slot = 0; slot < num_slots; slot++) {
        empty[num_empty] = slot;
        num_empty += slots[slot] == ~0u;
    }
    u32 padded = (num_empty + 15) & ~15u;
    for (u32 at = 0; at < padded; at++) {
        u32 slot = at < num_empty ? empty[at] : 0;
        a[at] = multipliers[slot], b[at] = addends[slot];
    }
    for (u32 first = 0; first < padded; first += 16) {
        u32 best[16];
        for (int lane = 0; lane < 16; lane++) best[lane] = ~0u;
        for (long at = 0; at < count; at++) {
            u32 low = (u32)shingles[at];
            for (int lane = 0; lane < 16; lane++) {
                u32 line = a[first + lane] * low + b[first + lane];
                best[lane] = line < best[lane] ? line : best[lane];
            }
        }
        memcpy(least + first, best, sizeof best);
    }
    for (u32 at = 0; at < num_empty; at++) slots[empty[at]] = least[at] >> 1 | 0x80000000u;
}

// Write one signature a document. `folded`, `inside` and `shingles` have room for the longest one; the bytes behind the
// last document can be read. `depth` stops early: 1 folds, 2 shingles too, 3 sketches too. Returns a sum of the work.
long signatures(const u8 *texts, const int64_t *offsets, long num_docs, int size, const u64 *key, int log_slots,
                const u32 *multipliers, const u32 *addends, u8 *folded, u64 *inside, u64 *shingles, u32 *out, int depth) {
    long sum = 0;
    for (long doc = 0; doc < num_docs; doc++) {
        long length = offsets[doc + 1] - offsets[doc];
        fold(texts + offsets[doc], length, folded, inside);
        if (depth < 2) continue;
        long count = shingle(folded, inside, length, size, key, shingles);
        sum += count;
        if (depth < 3) continue;
        sketch(shingles, count, log_slots, multipliers, addends, out + (doc << log_slots));
    }
    return sum;
}
