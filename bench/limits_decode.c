/*
 * The limits of formats whose bytes are checked or decoded: a list of ranges in
 * files is read in random order and goes through one function of a library.
 * Files are opened once, as who reads many records of a file does, except for
 * images, which are files of their own.
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

#ifdef __x86_64__
#include <nmmintrin.h>
#include <tmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c(const char *p,
							 size_t n)
{
	uint64_t crc = 0xffffffff;

	for (; n >= 8; n -= 8, p += 8)
		crc = _mm_crc32_u64(crc, first_word(p));
	for (; n; n--, p++)
		crc = _mm_crc32_u8((uint32_t)crc, (uint8_t)*p);
	return ~(uint32_t)crc;
}
#else
static uint32_t crc32c(const char *p, size_t n)
{
	(void)p;
	(void)n;
	die("CRC-32C is only measured on x86-64");
}
#endif

/* What a thread keeps between samples. */
struct desk {
	char *raw;
	size_t cap;
	struct libdeflate_decompressor *inflate;
	void *jpeg;
	const char *map;
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

static void take_crc32(const struct item *it, char *to, size_t row)
{
	(void)row;
	read_item(it, to);
	if (libdeflate_crc32(0, to, it->len) != it->crc)
		die("%s: wrong checksum", it->path);
}

static void take_crc32c(const struct item *it, char *to, size_t row)
{
	(void)row;
	read_item(it, to);
	if (crc32c(to, it->len) != it->crc)
		die("%s: wrong checksum", it->path);
}

static void take_zlib(const struct item *it, char *to, size_t row)
{
	char *raw = raw_of(it->len);

	if (!desk.inflate)
		desk.inflate = libdeflate_alloc_decompressor();
	read_item(it, raw);
	if (!desk.inflate || libdeflate_zlib_decompress(desk.inflate, raw,
							it->len, to, row, NULL))
		die("%s: cannot be unpacked", it->path);
}

/* The file in memory; all ranges are of one. */
static const char *map_of(const struct item *it)
{
	struct stat sb;
	void *p;

	if (desk.map)
		return desk.map;
	if (fstat(it->fd, &sb))
		die("%s: %s", it->path, strerror(errno));
	p = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE,
		 it->fd, 0);
	if (p == MAP_FAILED)
		die("%s: %s", it->path, strerror(errno));
	desk.map = p;
	return p;
}

/* ACGTN to 7 .. 11, by the low four bits of each letter. */
#ifdef __x86_64__
__attribute__((target("ssse3"))) static void codes_of(const char *p, size_t n,
						      char *to)
{
	const __m128i table =
		_mm_setr_epi8(0, 7, 0, 8, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 11, 0);
	size_t i = 0;

	for (; n - i >= 16; i += 16) {
		const __m128i v = _mm_loadu_si128((const void *)(p + i));

		_mm_storeu_si128(
			(void *)(to + i),
			_mm_shuffle_epi8(table,
					 _mm_and_si128(v, _mm_set1_epi8(15))));
	}
	for (; i < n; i++)
		to[i] = "\0\7\0\10\12\0\0\11\0\0\0\0\0\0\13\0"[p[i] & 15];
}
#else
static void codes_of(const char *p, size_t n, char *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] = "\0\7\0\10\12\0\0\11\0\0\0\0\0\0\13\0"[p[i] & 15];
}
#endif

/* Letters of FASTA's lines to numbers, out of the page cache. */
static void take_letters(const struct item *it, char *to, size_t row)
{
	const char *p = map_of(it) + it->offset, *end = p + it->len;
	char *to_end = to + row;

	for (const char *nl; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		nl = nl ? nl : end;
		if (nl - p > to_end - to)
			die("%s: a window is too long", it->path);
		codes_of(p, (size_t)(nl - p), to);
		to += nl - p;
	}
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
		die("%s: no jpeg", it->path);
	format = space == TJCS_GRAY ? TJPF_GRAY : TJPF_RGB;
	if ((size_t)w * (size_t)h * (size_t)tjPixelSize[format] > row ||
	    tjDecompress2(desk.jpeg, raw, it->len, (unsigned char *)to, w, 0, h,
			  format, 0))
		die("%s: cannot be decoded", it->path);
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

static const struct {
	const char *name;
	bool keep_open;
	void (*take)(const struct item *, char *to, size_t row);
} kinds[] = {
	{ "crc32", false, take_crc32 },	   { "crc32c", true, take_crc32c },
	{ "zlib", true, take_zlib },	   { "jpeg", false, take_jpeg },
	{ "letters", true, take_letters },
};
static void (*take)(const struct item *, char *to, size_t row);

static uint64_t decode_body(struct loop *l, const uint32_t *ids, uint32_t n,
			    char *batch)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		take(&l->items[ids[i]], batch + i * l->row, l->row);
		sum += first_word(batch + i * l->row);
	}
	return sum;
}

/* Ranges of one file follow one another in the list. */
static void open_files(struct item *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		items[i].fd =
			i && !strcmp(items[i].path, items[i - 1].path)
				? items[i - 1].fd
				: open(items[i].path, O_RDONLY | O_CLOEXEC);
		if (items[i].fd < 0)
			die("%s: %s", items[i].path, strerror(errno));
	}
}

/* KIND LIST ROW BATCH THREADS SECONDS */
void cmd_decode(char **arg)
{
	struct loop l = { .body = decode_body };
	size_t most, kind = 0;
	struct item *items;
	char *one;

	while (kind < sizeof(kinds) / sizeof(kinds[0]) &&
	       strcmp(kinds[kind].name, arg[0]))
		kind++;
	if (kind == sizeof(kinds) / sizeof(kinds[0]))
		die("no decoder '%s'", arg[0]);
	take = kinds[kind].take;
	items = read_list(arg[1], &l.nsamples, &most);
	if (kinds[kind].keep_open)
		open_files(items, l.nsamples);
	l.items = items;
	l.row = number(arg[2]);
	l.batch = (uint32_t)number(arg[3]);
	l.nthreads = (unsigned)number(arg[4]);
	l.order = shuffled(l.nsamples);
	one = need(1, l.row);
	for (uint32_t i = 0; i < l.nsamples; i++) {
		take(&items[i], one, l.row);
		l.expect += first_word(one);
	}
	run_loop(&l, decimal(arg[5]));
}
