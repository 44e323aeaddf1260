/*
 * The only malloc. Sizes are checked for overflow; tests can make the n-th
 * allocation fail. Batch memory is aligned, with huge-page advice, because page
 * faults, not copies, are the cost of fresh memory.
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
/* Are n bytes available now? For libraries that abort if not; other threads may
 * be faster, so ask for more than one of them needs. */
bool pen__can_alloc(size_t n);
char *pen__strdup(const char *s);
char *pen__strndup(const char *s, size_t n);

/*
 * A page-aligned block for batches and I/O buffers. Large ones are mapped with
 * huge-page advice.
 */
struct pen_block {
	void *p;
	size_t cap;
	bool mapped;
};
int pen__block_init(struct pen_block *b, size_t cap); /* 0 or PEN_ENOMEM */
uint64_t pen__block_cost(uint64_t cap); /* its real size, rounded up */
void pen__block_fini(struct pen_block *b);
/* Makes room for cap bytes; the content is lost if it has to grow. */
int pen__block_reserve(struct pen_block *b, size_t cap);
bool pen__block_lock(struct pen_block *b);

/*
 * Prefetches memory that will be read soon, as much as is worth it. Inlined by
 * force: GCC drops calls to functions that only prefetch.
 */
static inline __attribute__((always_inline)) void pen__ask_for(const void *p,
							       uint64_t n)
{
	for (uint64_t i = 0; p && i < n && i < 2048; i += 64)
		__builtin_prefetch((const uint8_t *)p + i);
}

/*
 * The same for a row that will only be copied: only its first lines, since the
 * CPU detects the pattern. Prefetching all lines of 1 KiB would keep the CPU's
 * few miss buffers from the copy in progress.
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

/* Fills a caller's struct of `size` bytes, which may have fewer members than
 * ours, or more: those become zero. */
void pen__give(void *out, size_t size, const void *ours, size_t have);

/*
 * For tests: fails allocation number n (1 = the next one) and, with
 * `from_then_on`, all later ones. n = 0 switches it off. Counts are
 * process-wide and atomic.
 */
void pen__mem_fail_nth(uint64_t n, bool from_then_on);
/* True if this allocation, made by a library for us, has to fail. */
bool pen__mem_tick(void);
uint64_t pen__mem_count(void); /* allocations since the call above */

#endif
