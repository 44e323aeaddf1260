/* Shared by limits.c (the loop and the command), limits_io.c (files),
 * limits_decode.c (decoding) and limits_cells.c (a separate loop). */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKED 61u /* one in this many samples is compared with its source */

/* A range of a file. */
struct item {
	char *path;
	uint64_t offset;
	size_t len;
	uint32_t crc;	 /* of the range, if checked */
	const char *map; /* the range in memory, if the file is mapped */
};

struct loop {
	/* Delivers n samples into batch; returns the sum of their first
	 * words. Runs on all threads concurrently. */
	uint64_t (*body)(struct loop *, const uint32_t *ids, uint32_t n,
			 char *batch);
	const char *map; /* the samples in memory */
	const struct item *items;
	uint64_t offset; /* of the first sample in the file */
	size_t row;	 /* bytes of one sample */
	size_t lead;	 /* bytes of a later sample to prefetch; 0: fixed */
	uint32_t nsamples, batch;
	unsigned nthreads;
	uint32_t *order;
	uint64_t expect; /* the sum over one pass */
	uint64_t npasses;
	atomic_uint_fast64_t next; /* the next batch */
};

double now(void);     /* seconds */
double cpu_now(void); /* CPU seconds of all threads */
void run_loop(struct loop *l, double seconds);
void *need(size_t n, size_t size);	/* touched memory; exits on failure */
void *need_huge(size_t n, size_t size); /* untouched, in huge pages */
uint32_t *shuffled(uint32_t n);
uint64_t first_word(const void *p);
/* The n-th number of a random sequence, from 0; the next number. */
uint64_t random_at(uint64_t seed, uint64_t n);
uint64_t next_random(uint64_t *state);

/* Prefetches the first cache lines of a later sample. */
static inline void prefetch(const char *p, size_t n)
{
	n = n < 1024 ? n : 1024;
	for (size_t k = 0; k < n; k += 64)
		__builtin_prefetch(p + k);
}

uint64_t number(const char *s);
double decimal(const char *s);
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Maps a file read-only; flags of mmap(). */
const char *map_file(const char *path, int flags, size_t *size);
void read_item(const struct item *, char *to); /* opens and closes it */
/* Lines of a list: OFFSET LENGTH CRC PATH; most: the maximum length. */
struct item *read_list(const char *path, uint32_t *n, size_t *most);

/* n letters in lines of `width`; the first line has `first` letters left. */
struct lines {
	const uint8_t *p;
	size_t first, width, n;
};
/* Looks up each letter by its lower four bits. */
void translate(const uint8_t table[16], const struct lines *, uint8_t *to);
/* Copies and returns the checksum; prepare once. */
void prepare_crc32c(void);
uint32_t copy_crc32c(const char *p, size_t n, char *to);
bool has_hw(void); /* AVX2 and SSE 4.2 */

void cmd_rows(char **arg);
void cmd_decode(char **arg);
void cmd_cells(char **arg);
void cmd_tokens(char **arg);
void cmd_direct(char **arg);
void cmd_place(char **arg);
void cmd_warm(char **arg);
void cmd_scan(char **arg);
void cmd_make_tiny(char **arg);
void cmd_make_random(char **arg);

#endif
