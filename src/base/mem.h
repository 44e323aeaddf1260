/*
 * The only malloc. Sizes are overflow-checked; tests can make the n-th
 * allocation fail. Batch memory comes aligned and huge-page advised, because
 * page faults, not copies, are what fresh memory costs.
 */
#ifndef PEN_BASE_MEM_H
#define PEN_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *pen__alloc(size_t n, size_t size); /* NULL: no memory or overflow */
void *pen__calloc(size_t n, size_t size);
/* Grows or shrinks; on failure returns NULL and p stays valid. */
void *pen__realloc(void *p, size_t n, size_t size);
void pen__free(void *p);
/* Are there n bytes now? For libraries that die when there are none; other
 * threads may be faster, so ask for more than one of them takes. */
bool pen__can_alloc(size_t n);
char *pen__strdup(const char *s);
char *pen__strndup(const char *s, size_t n);

/*
 * A page-aligned block for batches and I/O buffers. Big ones are mapped and
 * huge-page advised; `lock` asks for mlock, and *locked says whether it was.
 */
struct pen_block {
	void *p;
	size_t cap;
	bool mapped;
};
int pen__block_init(struct pen_block *b, size_t cap); /* 0 or PEN_ENOMEM */
uint64_t pen__block_cost(uint64_t cap); /* bytes it takes, rounded up */
void pen__block_fini(struct pen_block *b);
/* Makes room for cap bytes; content is lost when it has to grow. */
int pen__block_reserve(struct pen_block *b, size_t cap);
bool pen__block_lock(struct pen_block *b);

/*
 * Memory that will be read soon: as much of it as is worth asking for at once.
 * Copied in by force: GCC drops the call to what only prefetches.
 */
static inline __attribute__((always_inline)) void pen__ask_for(const void *p,
							       uint64_t n)
{
	for (uint64_t i = 0; p && i < n && i < 2048; i += 64)
		__builtin_prefetch((const uint8_t *)p + i);
}

/*
 * The same of a row that will only be copied: its first lines, and the CPU sees
 * how it goes on. To ask for all lines of 1 KiB keeps the CPU's few miss
 * buffers from the copy at hand.
 */
static inline __attribute__((always_inline)) void
pen__ask_for_copy(const void *p, uint64_t n)
{
	pen__ask_for(p, n < 256 ? n : 256);
}

/* a*b and a+b; false on overflow */
static inline bool pen__mul(size_t a, size_t b, size_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}
static inline bool pen__add(size_t a, size_t b, size_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}

/* Fills a caller's struct of `size` bytes, which may know fewer members than
 * ours, or more: those are zero. */
void pen__give(void *out, size_t size, const void *ours, size_t have);

/*
 * Tests: fail allocation number n (1 = the next one) and, when `from_then_on`,
 * all later ones. n = 0 switches it off. Counts are process-wide and atomic.
 */
void pen__mem_fail_nth(uint64_t n, bool from_then_on);
/* true when this allocation, made by a library for us, has to fail */
bool pen__mem_tick(void);
uint64_t pen__mem_count(void); /* allocations since the last call above */

#endif
