/*
 * Sets the checksums of mutated inputs. Where a parser finds its checksums only
 * by parsing (HDF5, zarr, packed), it is run with functions in place of the
 * checksums that say yes, and note what the bytes should be.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "codec/byte_shuffle.h"
#include "codec/crc32c.h"
#include "codec/deflate.h"
#include "codec/lookup3.h"

#define ROOM ((size_t)1 << 20)

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static void put32be(uint8_t *p, uint32_t v)
{
	put32(p, __builtin_bswap32(v));
}

/* --- by watching the parser --- */

/*
 * A copy of the input, mapped from the file "mutant" with its length before it:
 * if the parser crashes while it is watched, scripts/fuzz finds the input
 * there.
 */
static struct {
	uint8_t *p;
	size_t n;
	bool on;
} seen;

static uint8_t *mutant(void)
{
	static uint8_t *p;
	int fd;

	if (p)
		return p;
	fd = open("mutant", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	FUZZ_MUST(fd >= 0 && !ftruncate(fd, (off_t)ROOM));
	p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	FUZZ_MUST(p != MAP_FAILED);
	close(fd);
	return p;
}

/* The checksum `sum` of n bytes is to be at +-`step`: before or after them.
 * Returns what is there. */
static uint32_t settle(const void *bytes, size_t n, uint32_t sum, bool before)
{
	uint8_t *at;
	uint32_t old;

	if (!seen.on || !n)
		return sum;
	at = memmem(seen.p, seen.n, bytes, n);
	if (!at)
		return sum;
	if (before ? at < seen.p + 4 : (size_t)(seen.p + seen.n - at) < n + 4)
		return sum;
	at = before ? at - 4 : at + n;
	old = get32(at);
	put32(at, sum);
	return old;
}

/* A direct block of a heap has zeros in place of its checksum. */
static uint32_t settle_block(const uint8_t *b, size_t n, uint32_t sum)
{
	for (size_t at = 14; at < 22 && at + 4 < n; at++) {
		uint8_t *p = memmem(seen.p, seen.n, b, at);
		uint32_t old;

		if (get32(b + at) || !p || (size_t)(seen.p + seen.n - p) < n ||
		    memcmp(p + at + 4, b + at + 4, n - at - 4) != 0)
			continue;
		old = get32(p + at);
		put32(p + at, sum);
		return old;
	}
	return sum;
}

uint32_t __real_pen__lookup3(const void *p, size_t n);
uint32_t __wrap_pen__lookup3(const void *p, size_t n);
uint32_t __wrap_pen__lookup3(const void *p, size_t n)
{
	const uint32_t sum = __real_pen__lookup3(p, n);

	if (seen.on && n > 22 && !memcmp(p, "FHDB", 4))
		return settle_block(p, n, sum);
	return settle(p, n, sum, false);
}

static bool packed; /* the checksum is before its bytes */

uint32_t __real_pen__crc32c(uint32_t crc, const void *p, size_t n);
uint32_t __wrap_pen__crc32c(uint32_t crc, const void *p, size_t n);
uint32_t __wrap_pen__crc32c(uint32_t crc, const void *p, size_t n)
{
	return settle(p, n, __real_pen__crc32c(crc, p, n), packed);
}

bool __real_pen__fletcher32_ok(const uint8_t *, size_t, const uint8_t *);
bool __wrap_pen__fletcher32_ok(const uint8_t *, size_t, const uint8_t *);
bool __wrap_pen__fletcher32_ok(const uint8_t *p, size_t n, const uint8_t *sum)
{
	return __real_pen__fletcher32_ok(p, n, sum) || seen.on;
}

static void watch(const struct fuzz *f, uint8_t *p, size_t n)
{
	uint8_t *m = mutant(), *in;

	if (n > ROOM - 8)
		return;
	memcpy(m, &n, 8);
	memcpy(m + 8, p, n);
	in = malloc(n ? n : 1);
	memcpy(in, p, n);
	seen.p = m + 8;
	seen.n = n;
	seen.on = true;
	f->run(f->of, in, n);
	seen.on = false;
	memcpy(p, m + 8, n);
	memset(m, 0, 8);
	free(in);
}

/* --- by their layout --- */

static uint8_t *inflated(void)
{
	static uint8_t *p;

	if (!p)
		p = malloc(ROOM);
	return p;
}

/* Inflates raw deflate; returns the bytes used, 0 if it is not valid. */
static size_t inflate(const uint8_t *p, size_t n, size_t *got)
{
	static struct libdeflate_decompressor *d;
	size_t used;

	if (!d)
		d = libdeflate_alloc_decompressor();
	return libdeflate_deflate_decompress_ex(d, p, n, inflated(), ROOM,
						&used, got)
		       ? 0
		       : used;
}

static void gzip(uint8_t *p, size_t n)
{
	while (n > 18 && p[0] == 0x1f && p[1] == 0x8b) {
		size_t at = 10, got, used;

		if (p[3] & 4)
			at += 2u + p[10] + 256u * p[11];
		for (unsigned bit = 8; bit <= 16; bit *= 2)
			for (bool more = p[3] & bit; more && at < n; at++)
				more = p[at] != 0;
		used = at + 8 < n ? inflate(p + at, n - at - 8, &got) : 0;
		if (!used)
			return;
		at += used;
		put32(p + at, pen__crc32(0, inflated(), got));
		put32(p + at + 4, (uint32_t)got);
		at += 8;
		if (p[3] & 4 && p[12] == 'B' && p[13] == 'C') {
			p[16] = (uint8_t)(at - 1);
			p[17] = (uint8_t)((at - 1) >> 8);
		}
		p += at;
		n -= at;
	}
}

static void zlib(uint8_t *p, size_t n)
{
	size_t got, used = n > 6 ? inflate(p + 2, n - 6, &got) : 0;

	if (!used)
		return;
	p[0] = 0x78;
	p[1] = 0x9c;
	put32be(p + 2 + used, libdeflate_adler32(1, inflated(), got));
}

static void png(uint8_t *p, size_t n)
{
	for (size_t at = 8; at + 12 <= n;) {
		const uint32_t len = __builtin_bswap32(get32(p + at));

		if (len > n - at - 12)
			return;
		put32be(p + at + 8 + len, pen__crc32(0, p + at + 4, len + 4));
		at += 12 + len;
	}
}

static void tfrecord(uint8_t *p, size_t n)
{
	while (n >= 16) {
		uint64_t len;

		memcpy(&len, p, 8);
		if (len > n - 16) { /* ends with the file */
			len = n - 16;
			memcpy(p, &len, 8);
		}
		put32(p + 8, pen__crc32c_mask(pen__crc32c(0, p, 8)));
		put32(p + 12 + len,
		      pen__crc32c_mask(pen__crc32c(0, p + 12, len)));
		p += 16 + len;
		n -= 16 + len;
	}
}

/* The member of an entry of the directory: sizes and checksum, in both. */
static void zip_member(uint8_t *p, size_t n, uint8_t *entry)
{
	const uint32_t at = get32(entry + 42), csize = get32(entry + 20);
	uint8_t *local = p + at;
	size_t data, got = csize;
	const uint8_t *raw;

	if (at > n || n - at < 30 || memcmp(local, "PK\3\4", 4) != 0)
		return;
	data = 30u + local[26] + 256u * local[27] + local[28] +
	       256u * local[29];
	if (csize > n - at || data > n - at - csize)
		return;
	raw = local + data;
	if (entry[10] == 8) {
		if (!inflate(raw, csize, &got))
			return;
		raw = inflated();
	}
	put32(entry + 16, pen__crc32(0, raw, got));
	put32(entry + 24, (uint32_t)got);
	if (!(local[6] & 8))
		memcpy(local + 14, entry + 16, 12);
}

static void zip(uint8_t *p, size_t n)
{
	uint8_t *end = NULL;
	uint32_t at;

	for (size_t i = n > 21 ? n - 21 : 0; i-- > 0 && !end;)
		if (memcmp(p + i, "PK\5\6", 4) == 0)
			end = p + i;
	if (!end)
		return;
	at = get32(end + 16);
	while (at <= n && n - at >= 46 && !memcmp(p + at, "PK\1\2", 4)) {
		uint8_t *e = p + at;

		zip_member(p, n, e);
		at += 46u + e[28] + 256u * e[29] + e[30] + 256u * e[31] +
		      e[32] + 256u * e[33];
	}
}

/* The directory at the end; the pieces are found by watching. */
static void packed_foot(uint8_t *p, size_t n)
{
	uint64_t at, len;

	if (n < 96)
		return;
	memcpy(&at, p + n - 32, 8);
	memcpy(&len, p + n - 24, 8);
	if (at <= n - 32 && len <= n - 32 - at)
		put32(p + n - 16, pen__crc32c(0, p + at, len));
}

static void seal(uint8_t *p, size_t n)
{
	if (n > 22)
		put32(p + 18, pen__crc32c(0, p + 22, n - 22));
}

static void index_cache(uint8_t *p, size_t n)
{
	if (n < 160)
		return;
	put32(p + 152, pen__crc32(0, p + 160, n - 160));
	put32(p + 156, pen__crc32(0, p, 156));
}

/* The checksum of saved dictionaries, of multiples of 16 bytes. */
static uint64_t image_sum(const uint8_t *p, size_t n)
{
	uint64_t x[2] = { 1, 2 }, w;

	for (size_t i = 0; i + 16 <= n; i += 16)
		for (size_t k = 0; k < 2; k++) {
			memcpy(&w, p + i + 8 * k, 8);
			x[k] ^= w;
			x[k] = (x[k] << 29 | x[k] >> 35) * 0x9fb21c651e98df25u;
		}
	return pen__mix64(x[0] ^ pen__mix64(x[1] + 0x9e3779b97f4a7c15u));
}

static void image(uint8_t *p, size_t n)
{
	enum {
		SIZE = 32,
		DATA_AT = 64,
		TABLE_SUM = 72,
		DATA_SUM = 80,
		HEAD_SUM = 88,
		HEAD = 4096
	};
	uint8_t head[(HEAD_SUM + 15) & ~15] = { 0 };
	uint64_t at, sum;

	if (n <= HEAD)
		return;
	memcpy(p + SIZE, &n, 8);
	memcpy(&at, p + DATA_AT, 8);
	if (at >= HEAD && at <= n) {
		sum = image_sum(p + HEAD, at - HEAD);
		memcpy(p + TABLE_SUM, &sum, 8);
		sum = image_sum(p + at, n - at);
		memcpy(p + DATA_SUM, &sum, 8);
	}
	memcpy(head, p, HEAD_SUM);
	sum = image_sum(head, sizeof(head));
	memcpy(p + HEAD_SUM, &sum, 8);
}

/* --- which --- */

typedef void repair_fn(uint8_t *p, size_t n);

static const struct {
	const char *name;
	repair_fn *repair; /* of a file */
	size_t skip;	   /* bytes before it */
	bool watch;
} all[] = {
	{ "format_hdf5", NULL, 1, true },
	{ "format_h5ad", NULL, 1, true },
	{ "format_anndata", NULL, 1, true },
	{ "format_zarr", zip, 1, true },
	{ "format_packed", packed_foot, 1, true },
	{ "format_npz", zip, 1, false },
	{ "format_tfrecord", tfrecord, 1, false },
	{ "format_png", png, 1, false },
	{ "format_image", png, 1, false },
	{ "format_fasta", gzip, 1, false },
	{ "format_fastq", gzip, 1, false },
	{ "format_lines", gzip, 1, false },
	{ "gzi", gzip, 3, false },
	{ "decoder_png", png, 1, false },
	{ "codec_gzip", gzip, 2, false },
	{ "codec_zlib", zlib, 2, false },
	{ "torch_file", zip, 0, false },
	{ "cellpack", seal, 0, false },
	{ "index_cache", index_cache, 0, false },
	{ "snapshot", image, 0, false },
};

/* Each of several files. */
static void repair_parts(repair_fn *fn, uint8_t *p, size_t n)
{
	struct pen_bytes b = pen__bytes(p, n);
	struct fuzz_part f;

	while (fuzz_part(&b, &f))
		fn(p + (f.p - p), f.n);
}

void fuzz_repair(const struct fuzz *f, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const size_t skip = all[i].skip;

		if (strcmp(all[i].name, f->name) != 0 || n <= skip)
			continue;
		packed = strcmp(f->name, "format_packed") == 0;
		if (all[i].watch)
			watch(f, p, n);
		if (!all[i].repair)
			continue;
		if (skip == 1 && p[0] & FUZZ_FILES)
			repair_parts(all[i].repair, p + 1, n - 1);
		else
			all[i].repair(p + skip, n - skip);
	}
}
