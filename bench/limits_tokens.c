/*
 * What sequences can be turned into numbers at, by loops that do nothing else:
 * lines found in a mapped file, then copied, looked up in a table, counted, or
 * made into the four tensors of paragraph vectors (int32, 4 letters a word, 3
 * words on each side, 5 of noise).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits.h"

enum { K = 4, SIDE = 3, NOISE = 5, LETTERS = 7, WORDS = 7 * 7 * 7 * 7 };
#define MOST 1024u /* letters of a line */
#define PIECE ((size_t)256 << 10)

static uint8_t table[256];
static int32_t word_id[WORDS];
static uint32_t nwords, keep[WORDS], other[WORDS];

static const uint8_t *line(const struct loop *l, uint32_t id, size_t *n)
{
	*n = l->items[id].len;
	return (const uint8_t *)l->map + l->items[id].offset;
}

static uint64_t copy_body(struct loop *l, const uint32_t *ids, uint32_t n,
			  char *batch)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t m;
		const uint8_t *s = line(l, ids[i], &m);

		memcpy(batch, s, m);
		sum += first_word(batch);
		batch += m;
	}
	return sum;
}

static uint64_t chars_body(struct loop *l, const uint32_t *ids, uint32_t n,
			   char *batch)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t m;
		const uint8_t *s = line(l, ids[i], &m);

		for (size_t j = 0; j < m; j++)
			batch[j] = (char)table[s[j]];
		sum += first_word(batch);
		batch += m;
	}
	return sum;
}

/* Words at every place of a line with its padding; how many. */
static size_t words_of(const uint8_t *s, size_t n, int32_t *id)
{
	uint8_t c[MOST + 2 * K * SIDE];
	const size_t all = n + 2 * K * SIDE;

	memset(c, LETTERS - 2, K * SIDE);
	for (size_t i = 0; i < n; i++)
		c[K * SIDE + i] = table[s[i]];
	memset(c + K * SIDE + n, LETTERS - 1, K * SIDE);
	for (size_t i = 0; i + K <= all; i++)
		id[i] = word_id[((c[i] * LETTERS + c[i + 1]) * LETTERS +
				 c[i + 2]) *
					LETTERS +
				c[i + 3]];
	return all - K + 1;
}

static int32_t draw(uint64_t *state)
{
	uint64_t x = *state;
	uint32_t at;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	at = (uint32_t)(((x >> 32) * nwords) >> 32);
	return (int32_t)((uint32_t)x < keep[at] ? at : other[at]);
}

static char *dm_line(const uint8_t *s, size_t n, int32_t doc, char *to)
{
	const size_t m = n - K + 1;
	int32_t id[MOST + 2 * K * SIDE], *docs = (void *)to;
	int32_t *target = docs + m, *context = target + m;
	int32_t *noise = context + m * 2 * SIDE;
	const size_t all = words_of(s, n, id);
	uint64_t state = (uint64_t)doc * 0x9e3779b97f4a7c15u + 1;

	for (size_t frame = 0; frame < K; frame++)
		for (size_t i = frame + K * SIDE; i + K * SIDE < all; i += K) {
			*docs++ = doc;
			*target++ = id[i];
			*noise++ = id[i];
			for (size_t j = SIDE; j > 0; j--)
				*context++ = id[i - j * K];
			for (size_t j = 1; j <= SIDE; j++)
				*context++ = id[i + j * K];
			for (size_t j = 0; j < NOISE; j++)
				*noise++ = draw(&state);
		}
	return (char *)noise;
}

static uint64_t dm_body(struct loop *l, const uint32_t *ids, uint32_t n,
			char *batch)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t m;
		const uint8_t *s = line(l, ids[i], &m);
		char *next = dm_line(s, m, (int32_t)ids[i], batch);

		sum += first_word(batch);
		batch = next;
	}
	return sum;
}

/* Equal weights but for some: which ones they are costs nothing. */
static void make_tables(void)
{
	memset(table, 7, sizeof(table));
	for (unsigned i = 0; i < 5; i++)
		table[(uint8_t) "ACGTU"[i]] = (uint8_t)i;
	for (int32_t i = 0; i < WORDS; i++)
		word_id[i] = i % 743;
	nwords = 431;
	for (uint32_t i = 0; i < nwords; i++) {
		keep[i] = UINT32_MAX / 2 + i * 1000;
		other[i] = (i * 7) % nwords;
	}
}

static void map_lines(struct loop *l, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	struct item *items;
	const char *p, *end;

	if (fd < 0 || fstat(fd, &st))
		die("%s cannot be opened", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("%s cannot be mapped", path);
	l->map = p;
	items = need((size_t)st.st_size / 32 + 1, sizeof(*items));
	for (end = p + st.st_size; p < end;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop =
			comma ? memchr(comma, '\n', (size_t)(end - comma))
			      : NULL;

		if (!stop || comma - p > MOST || comma - p < 64)
			die("%s: not lines as they were made", path);
		items[l->nsamples].offset = (uint64_t)(p - l->map);
		items[l->nsamples++].len = (size_t)(comma - p);
		p = stop + 1;
	}
	l->items = items;
}

/* A thread's part of the file, and what it counts there. */
struct part {
	pthread_t thread;
	const uint8_t *p, *end;
	uint64_t lines, words, count[8 * 8 * 8 * 8];
};

/* Letters up to the comma, as they come. */
static void *count_part(void *arg)
{
	struct part *t = arg;
	const uint8_t *p = t->p;

	while (p < t->end) {
		uint32_t code = 0, run = 0;

		for (; p < t->end && *p != ','; p++) {
			code = (code << 3 | table[*p]) & 0xfff;
			if (++run >= K)
				t->count[code]++;
		}
		p = memchr(p, '\n', (size_t)(t->end - p));
		if (!p)
			die("not lines as they were made");
		p++;
		t->lines++;
	}
	for (size_t i = 0; i < sizeof(t->count) / sizeof(t->count[0]); i++)
		t->words += t->count[i];
	return NULL;
}

/* The whole file once, as a program of its own would: mapped, cut into a part
 * for each thread at a line's end, counted. */
static uint64_t count_pass(const char *path, struct part *t, unsigned n,
			   uint64_t *words)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const uint8_t *all, *at;
	uint64_t lines = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		die("%s cannot be opened", path);
	all = at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (all == MAP_FAILED)
		die("%s cannot be mapped", path);
	memset(t, 0, n * sizeof(*t));
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *end = all + (uint64_t)st.st_size * (i + 1) / n;

		while (end > at && end[-1] != '\n')
			end--;
		t[i].p = at;
		t[i].end = at = end;
		if (pthread_create(&t[i].thread, NULL, count_part, &t[i]))
			die("pthread_create failed");
	}
	*words = 0;
	for (unsigned i = 0; i < n; i++) {
		pthread_join(t[i].thread, NULL);
		lines += t[i].lines;
		*words += t[i].words;
	}
	munmap((void *)(uintptr_t)all, (size_t)st.st_size);
	close(fd);
	return lines;
}

static void count_passes(const char *path, unsigned n, double seconds)
{
	struct part *t = need(n, sizeof(*t));
	uint64_t words, again, lines = count_pass(path, t, n, &words), all = 0;
	const double start = now();

	while (now() - start < seconds) {
		all += count_pass(path, t, n, &again);
		if (again != words || all % lines)
			die("the content sum is wrong");
	}
	printf("{\"samples\": %llu, \"seconds\": %.6f}\n",
	       (unsigned long long)all, now() - start);
}

/* tokens copy|chars|vocab|dm FILE BATCH THREADS SECONDS */
void cmd_tokens(char **arg)
{
	static const struct {
		const char *name;
		uint64_t (*body)(struct loop *, const uint32_t *, uint32_t,
				 char *);
		size_t row;
	} kinds[] = {
		{ "copy", copy_body, MOST },
		{ "chars", chars_body, MOST },
		{ "dm", dm_body,
		  (MOST - K + 1) * (2 + 2 * SIDE + 1 + NOISE) *
			  sizeof(int32_t) },
	};
	struct loop l = { 0 };
	char *once;

	make_tables();
	if (!strcmp(arg[0], "vocab")) {
		count_passes(arg[1], (unsigned)number(arg[3]), decimal(arg[4]));
		return;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, arg[0])) {
			l.body = kinds[i].body;
			l.row = kinds[i].row;
		}
	if (!l.body)
		die("no kind '%s'", arg[0]);
	map_lines(&l, arg[1]);
	l.batch = (uint32_t)number(arg[2]);
	l.nthreads = (unsigned)number(arg[3]);
	l.order = shuffled(l.nsamples);
	once = need(1, l.row);
	for (uint32_t i = 0; i < l.nsamples; i++)
		l.expect += l.body(&l, &l.order[i], 1, once);
	run_loop(&l, decimal(arg[4]));
}

/* Reads a part of the file in pieces and copies each to its place. */
static void place_part(int fd, uint64_t at, uint64_t end, char *to)
{
	char *piece = need(1, PIECE);

	while (at < end) {
		const size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;

		if (pread(fd, piece, n, (off_t)at) != (ssize_t)n)
			_exit(1);
		memcpy(to + at, piece, n);
		at += n;
	}
}

static void place_once(int fd, uint64_t size, unsigned n)
{
	char *to = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	if (to == MAP_FAILED)
		die("no memory");
	for (unsigned i = 0; i < n; i++) {
		const pid_t pid = fork();

		if (pid < 0)
			die("fork failed");
		if (pid == 0) {
			place_part(fd, size * i / n, size * (i + 1) / n, to);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (wait(&status) < 0 || status)
			die("a process failed");
	munmap(to, size);
}

/* place FILE PROCESSES SECONDS: a file into memory that processes share, each
 * a part of it, as often as there is time for. */
void cmd_place(char **arg)
{
	const int fd = open(arg[0], O_RDONLY | O_CLOEXEC);
	const double start = now();
	struct stat st;
	unsigned times = 0;

	if (fd < 0 || fstat(fd, &st))
		die("%s cannot be opened", arg[0]);
	do {
		place_once(fd, (uint64_t)st.st_size, (unsigned)number(arg[1]));
		times++;
	} while (now() - start < decimal(arg[2]));
	printf("{\"samples\": %u, \"seconds\": %.6f}\n", times, now() - start);
}
