/*
 * The limits of formats with checksums or decoding: reads a list of ranges in
 * files in random order and applies one function of a library. Files with many
 * records are opened once; images are opened one by one.
 */
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)256 << 10)

/* State that a thread keeps between samples. */
struct desk {
	char *raw;
	size_t cap;
	struct libdeflate_decompressor *inflate;
	void *jpeg;
};
static _Thread_local struct desk desk;

static char *raw_of(size_t n)
{
	if (n > desk.cap) {
		free(desk.raw);
		desk.raw = need(1, n);
		desk.cap = n;
	}
	return desk.raw;
}

/* Reads a file in pieces that fit into the cache; bytes beyond the row are read
 * and dropped. */
static void take_pieces(const struct item *it, char *to, size_t row, bool crc)
{
	const int fd = open(it->path, O_RDONLY | O_CLOEXEC);
	char *rest = raw_of(PIECE);
	uint32_t sum = 0;
	size_t n;

	if (fd < 0)
		die("%s: %s", it->path, strerror(errno));
	for (size_t at = 0; at < it->len; at += n) {
		char *p = at + PIECE <= row ? to + at : rest;

		n = it->len - at < PIECE ? it->len - at : PIECE;
		if (pread(fd, p, n, (off_t)(it->offset + at)) != (ssize_t)n)
			die("%s: read failed", it->path);
		if (crc)
			sum = libdeflate_crc32(sum, p, n);
		if (p == rest && at < row)
			memcpy(to + at, p, n < row - at ? n : row - at);
	}
	close(fd);
	if (crc && sum != it->crc)
		die("%s: wrong checksum", it->path);
}

static void take_crc32(const struct item *it, char *to, size_t row)
{
	take_pieces(it, to, row, true);
}

static void take_plain(const struct item *it, char *to, size_t row)
{
	take_pieces(it, to, row, false);
}

/* Small files stay mapped, which avoids system calls. */
static void take_mapped(const struct item *it, char *to, size_t row)
{
	memcpy(to, it->map, it->len < row ? it->len : row);
}

static void take_crc32c(const struct item *it, char *to, size_t row)
{
	(void)row;
	if (copy_crc32c(it->map, it->len, to) != it->crc)
		die("%s: wrong checksum", it->path);
}

static void take_zlib(const struct item *it, char *to, size_t row)
{
	if (!desk.inflate)
		desk.inflate = libdeflate_alloc_decompressor();
	if (!desk.inflate || libdeflate_zlib_decompress(desk.inflate, it->map,
							it->len, to, row, NULL))
		die("%s: cannot decompress the range", it->path);
}

/* Letters of a FASTA file with one sequence to numbers, from the page cache:
 * its lines have equal length, so that offsets are computed, as with an index.
 */
static struct {
	size_t start, width;
} fasta;

static void take_letters(const struct item *it, char *to, size_t row)
{
	static const uint8_t codes[16] = { ['A' & 15] = 7,
					   ['C' & 15] = 8,
					   ['G' & 15] = 9,
					   ['T' & 15] = 10,
					   ['N' & 15] = 11 };
	const size_t in = (it->offset - fasta.start) % (fasta.width + 1);
	const struct lines l = { .p = (const uint8_t *)it->map,
				 .first = fasta.width - in,
				 .width = fasta.width,
				 .n = row };

	translate(codes, &l, (uint8_t *)to);
}

/* Checks the output letter by letter. */
static void check_letters(const struct item *it, const char *found, size_t row)
{
	static const char known[] = "ACGTN";
	size_t n = 0;

	for (size_t i = 0; i < it->len; i++) {
		const char *c = strchr(known, it->map[i]);

		if (it->map[i] == '\n')
			continue;
		if (n == row || !c || found[n++] != 7 + (c - known))
			die("%s: a letter is wrong", it->path);
	}
	if (n != row)
		die("%s: a window has %zu letters", it->path, n);
}

static void prepare_letters(const struct item *it)
{
	const char *file = it->map - it->offset;
	const char *line = memchr(file, '\n', it->offset + it->len);
	const char *end = line ? memchr(line + 1, '\n', it->len) : NULL;

	if (!end)
		die("%s: no lines", it->path);
	fasta.start = (size_t)(line + 1 - file);
	fasta.width = (size_t)(end - line - 1);
}

#ifdef BENCH_JPEG
#include <turbojpeg.h>

static void take_jpeg(const struct item *it, char *to, size_t row)
{
	unsigned char *raw = (unsigned char *)raw_of(it->len);
	int w, h, sub, space, format;

	if (!desk.jpeg)
		desk.jpeg = tjInitDecompress();
	read_item(it, (char *)raw);
	if (!desk.jpeg ||
	    tjDecompressHeader3(desk.jpeg, raw, it->len, &w, &h, &sub, &space))
		die("%s: not a jpeg", it->path);
	format = space == TJCS_GRAY ? TJPF_GRAY : TJPF_RGB;
	if ((size_t)w * (size_t)h * (size_t)tjPixelSize[format] > row ||
	    tjDecompress2(desk.jpeg, raw, it->len, (unsigned char *)to, w, 0, h,
			  format, 0))
		die("%s: cannot decode the image", it->path);
}
#else
static void take_jpeg(const struct item *it, char *to, size_t row)
{
	(void)it;
	(void)to;
	(void)row;
	die("built without libturbojpeg");
}
#endif

static void prepare_crc(const struct item *it)
{
	(void)it;
	prepare_crc32c();
}

static const struct kind {
	const char *name;
	bool mapped; /* else opened, read and closed for each sample */
	void (*prepare)(const struct item *first);
	void (*take)(const struct item *, char *to, size_t row);
	/* compares a sample with its source, if take() does not check it */
	void (*check)(const struct item *, const char *found, size_t row);
} kinds[] = {
	{ .name = "plain", .take = take_plain },
	{ .name = "mapped", .mapped = true, .take = take_mapped },
	{ .name = "crc32", .take = take_crc32 },
	{ .name = "jpeg", .take = take_jpeg },
	{ .name = "zlib", .mapped = true, .take = take_zlib },
	{ .name = "crc32c",
	  .mapped = true,
	  .prepare = prepare_crc,
	  .take = take_crc32c },
	{ .name = "letters",
	  .mapped = true,
	  .prepare = prepare_letters,
	  .take = take_letters,
	  .check = check_letters },
};
static const struct kind *kind;

/* Prefetches the first lines of the next sample while decoding one. */
static uint64_t decode_body(struct loop *l, const uint32_t *ids, uint32_t n,
			    char *batch)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (kind->mapped && i + 1 < n)
			prefetch(l->items[ids[i + 1]].map,
				 l->items[ids[i + 1]].len);
		kind->take(&l->items[ids[i]], batch + i * l->row, l->row);
		sum += first_word(batch + i * l->row);
	}
	return sum;
}

/* Ranges of one file are adjacent in the list. */
static void map_files(struct item *items, uint32_t n)
{
	const char *map = NULL;
	size_t size;

	for (uint32_t i = 0; i < n; i++) {
		if (!i || strcmp(items[i].path, items[i - 1].path))
			map = map_file(items[i].path, MAP_POPULATE, &size);
		items[i].map = map + items[i].offset;
	}
}

/* KIND LIST ROW BATCH THREADS SECONDS */
void cmd_decode(char **arg)
{
	struct loop l = { .body = decode_body };
	struct item *items;
	size_t most;
	char *one;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, arg[0]))
			kind = &kinds[i];
	if (!kind)
		die("unknown decoder '%s'", arg[0]);
	items = read_list(arg[1], &l.nsamples, &most);
	if (kind->mapped)
		map_files(items, l.nsamples);
	if (kind->prepare)
		kind->prepare(items);
	l.items = items;
	l.row = number(arg[2]);
	l.batch = (uint32_t)number(arg[3]);
	l.nthreads = (unsigned)number(arg[4]);
	l.order = shuffled(l.nsamples);
	one = need(1, l.row);
	for (uint32_t i = 0; i < l.nsamples; i++) {
		kind->take(&items[i], one, l.row);
		if (kind->check && i % CHECKED == 0)
			kind->check(&items[i], one, l.row);
		l.expect += first_word(one);
	}
	run_loop(&l, decimal(arg[5]));
}
