/*
 * The only malloc, so that sizes are checked for overflow in one place and
 * tests can make any allocation fail. Blocks for batches and I/O are
 * page-aligned; large ones are mapped with huge-page advice, because page
 * faults, not copies, are the cost of fresh memory. No arenas and no pools:
 * objects that are reused are kept by their owners.
 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "penstock.h"

#define PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)
#define MAP_FROM ((size_t)1 << 20)

/* fail_at = 0: off; the hot path then only counts. */
static atomic_uint_fast64_t fail_at, counted;
static atomic_bool fail_on;

void pen__mem_fail_nth(uint64_t n, bool from_then_on)
{
	atomic_store(&fail_at, 0);
	atomic_store(&counted, 0);
	atomic_store(&fail_on, from_then_on);
	atomic_store(&fail_at, n);
}

bool pen__mem_tick(void)
{
	const uint64_t i = 1 + atomic_fetch_add_explicit(&counted, 1,
							 memory_order_relaxed);
	const uint64_t at =
		atomic_load_explicit(&fail_at, memory_order_relaxed);

	if (!at)
		return false;
	return i == at || (i > at && atomic_load(&fail_on));
}

uint64_t pen__mem_count(void)
{
	return atomic_load(&counted);
}

void pen__give(void *out, size_t size, const void *ours, size_t have)
{
	const size_t n = size < have ? size : have;

	memcpy(out, ours, n);
	memset((char *)out + n, 0, size - n);
}

/* Bytes for n items, at least 1, so that an empty array has an address. */
static bool bytes_of(size_t n, size_t size, size_t *out)
{
	if (!pen__mul(n, size, out) || *out > PTRDIFF_MAX)
		return false;
	if (!*out)
		*out = 1;
	return true;
}

void *pen__alloc(size_t n, size_t size)
{
	size_t bytes;

	if (!bytes_of(n, size, &bytes) || pen__mem_tick())
		return NULL;
	return malloc(bytes);
}

void *pen__calloc(size_t n, size_t size)
{
	size_t bytes;

	if (!bytes_of(n, size, &bytes) || pen__mem_tick())
		return NULL;
	return calloc(1, bytes);
}

void *pen__realloc(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (!bytes_of(n, size, &bytes) || pen__mem_tick())
		return NULL;
	return realloc(p, bytes);
}

void pen__free(void *p)
{
	free(p);
}

bool pen__can_alloc(size_t n)
{
	/* volatile: otherwise the compiler removes malloc and free */
	void *volatile p = pen__alloc(n, 1);

	pen__free(p);
	return p != NULL;
}

char *pen__strndup(const char *s, size_t n)
{
	char *p;
	size_t cap;

	n = strnlen(s, n);
	if (!pen__add(n, 1, &cap))
		return NULL;
	p = pen__alloc(cap, 1);
	if (!p)
		return NULL;
	memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

char *pen__strdup(const char *s)
{
	return pen__strndup(s, SIZE_MAX);
}

static bool round_up(size_t n, size_t to, size_t *out)
{
	if (!pen__add(n, to - 1, out) || *out > PTRDIFF_MAX)
		return false;
	*out &= ~(to - 1);
	return true;
}

static int block_map(struct pen_block *b, size_t cap)
{
	uint8_t *p;
	size_t head;

	if (!round_up(cap, HUGE_PAGE, &cap))
		return PEN_ENOMEM;
	/*
	 * Only an aligned 2 MiB range can become a huge page, and mmap aligns
	 * to 4 KiB: map one more and unmap the excess.
	 */
	p = mmap(NULL, cap + HUGE_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return PEN_ENOMEM;
	head = -(uintptr_t)p & (HUGE_PAGE - 1);
	if (head)
		munmap(p, head);
	p += head;
	if (head < HUGE_PAGE)
		munmap(p + cap, HUGE_PAGE - head);
	/* only advice: works without huge pages too */
	(void)madvise(p, cap, MADV_HUGEPAGE);
	*b = (struct pen_block){ .p = p, .cap = cap, .mapped = true };
	return 0;
}

uint64_t pen__block_cost(uint64_t cap)
{
	const uint64_t page = cap >= MAP_FROM ? HUGE_PAGE : PAGE;

	return (cap + page - 1) / page * page;
}

int pen__block_init(struct pen_block *b, size_t cap)
{
	void *p;

	*b = (struct pen_block){ 0 };
	if (pen__mem_tick())
		return PEN_ENOMEM;
	if (cap >= MAP_FROM)
		return block_map(b, cap);
	if (!round_up(cap ? cap : 1, PAGE, &cap))
		return PEN_ENOMEM;
	if (posix_memalign(&p, PAGE, cap))
		return PEN_ENOMEM;
	*b = (struct pen_block){ .p = p, .cap = cap };
	return 0;
}

void pen__block_fini(struct pen_block *b)
{
	if (b->mapped)
		munmap(b->p, b->cap);
	else
		free(b->p);
	*b = (struct pen_block){ 0 };
}

int pen__block_reserve(struct pen_block *b, size_t cap)
{
	struct pen_block bigger;

	if (b->p && cap <= b->cap)
		return 0;
	/* the old block is freed first: the two need not fit together */
	if (!b->mapped)
		pen__block_fini(b);
	if (pen__block_init(&bigger, cap)) {
		pen__block_fini(b);
		return PEN_ENOMEM;
	}
	/*
	 * Existing pages are moved, because clearing new ones takes longer than
	 * most of the work done with them. The new range has no pages yet, so
	 * both together need no more than the new one.
	 */
	if (b->mapped &&
	    mremap(b->p, b->cap, b->cap, MREMAP_MAYMOVE | MREMAP_FIXED,
		   bigger.p) == MAP_FAILED)
		munmap(b->p, b->cap);
	*b = bigger;
	return 0;
}

bool pen__block_lock(struct pen_block *b)
{
	return b->p && mlock(b->p, b->cap) == 0;
}
