/* Shared by limits.c (the loop and the command), limits_io.c (what the loops do
 * with files), limits_decode.c (what they do with bytes) and limits_cells.c
 * (a loop of its own). */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of a file. */
struct item {
	char *path;
	uint64_t offset;
	size_t len;
	uint32_t crc; /* of the range, where it is checked */
	int fd;	      /* -1: to be opened for each read */
};

struct loop {
	/* Delivers n samples into batch; returns the sum of their first
	 * words. Runs on all threads at once. */
	uint64_t (*body)(struct loop *, const uint32_t *ids, uint32_t n,
			 char *batch);
	const char *map; /* the samples in memory */
	const struct item *items;
	int fd;
	uint64_t offset; /* of the first sample in the file */
	size_t row;	 /* bytes of one sample */
	uint32_t nsamples, batch;
	unsigned nthreads;
	uint32_t *order;
	uint64_t expect; /* the sum over one pass */
	uint64_t npasses;
	atomic_uint_fast64_t next; /* the batch to take */
};

double now(void); /* seconds */
void run_loop(struct loop *l, double seconds);
void *need(size_t n, size_t size); /* touched memory, or the end */
uint32_t *shuffled(uint32_t n);
uint64_t first_word(const void *p);
uint64_t next_random(uint64_t *state);
uint64_t number(const char *s);
double decimal(const char *s);
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

void read_item(const struct item *, char *to);
/* A list's lines: OFFSET LENGTH CRC PATH; most: the greatest length. */
struct item *read_list(const char *path, uint32_t *n, size_t *most);

void cmd_mmap(char **arg);
void cmd_mmap_prefetch(char **arg);
void cmd_pread(char **arg);
void cmd_files(char **arg);
void cmd_decode(char **arg);
void cmd_cells(char **arg);
void cmd_tokens(char **arg);
void cmd_place(char **arg);
void cmd_warm(char **arg);
void cmd_scan(char **arg);
void cmd_make_tiny(char **arg);
void cmd_make_random(char **arg);

#endif
