/*
 * Undoes HDF5's filter pipeline, the last filter first. A filter either checks
 * the bytes (fletcher32) or converts them; conversions use at most two working
 * buffers, and the last one writes to the destination of the chunk. The codecs
 * of zarr are filters, too, with IDs that HDF5 does not use if their encoding
 * differs. Rejects by name what is not implemented: szip, nbit, scaleoffset and
 * rare plug-ins.
 */
#include "format/chunked/filters.h"

#include <stdio.h>

#include "codec/codec.h"
#include "codec/crc32c.h"
#include "codec/byte_shuffle.h"

enum {
	DEFLATE = 1,
	SHUFFLE = 2,
	FLETCHER32 = 3,
	LZF = 32000,
	BLOSC = 32001,
	LZ4 = 32004,
	ZSTD = 32015,
	/* our own IDs */
	GZIP = 40000,
	INFLATE,
	LZ4_SIZED, /* a 4-byte size, then a block */
	CRC32C,
};

static const struct filter {
	uint16_t id;
	const char *name;
	const char *codec; /* NULL: not a codec, or not supported */
	const char *zarr;  /* name in zarr; NULL: not in zarr */
} filters[] = {
	{ DEFLATE, "deflate", "zlib", "zlib" },
	{ SHUFFLE, "shuffle", NULL, "shuffle" },
	{ FLETCHER32, "fletcher32", NULL, NULL },
	{ 4, "szip", NULL, NULL },
	{ 5, "nbit", NULL, NULL },
	{ 6, "scaleoffset", NULL, NULL },
	{ 305, "lzo", NULL, NULL },
	{ 307, "bzip2", NULL, NULL },
	{ LZF, "lzf", "lzf", NULL },
	{ BLOSC, "blosc", "blosc", "blosc" },
	{ LZ4, "lz4", "lz4", NULL },
	{ 32008, "bitshuffle", NULL, NULL },
	{ 32013, "zfp", NULL, NULL },
	{ ZSTD, "zstd", "zstd", "zstd" },
	{ 32017, "sz", NULL, NULL },
	{ 32024, "sz3", NULL, NULL },
	{ 32026, "blosc2", NULL, NULL },
	{ GZIP, "gzip", "gzip", "gzip" },
	{ INFLATE, "inflate", "inflate", "inflate" },
	{ LZ4_SIZED, "lz4", "lz4", "lz4" },
	{ CRC32C, "crc32c", NULL, "crc32c" },
};

static const struct filter *find_zarr(const char *name)
{
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (filters[i].zarr && strcmp(filters[i].zarr, name) == 0)
			return &filters[i];
	return NULL;
}

static const struct filter *find(unsigned id)
{
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (filters[i].id == id)
			return &filters[i];
	return NULL;
}

static bool converts(unsigned id)
{
	return id != FLETCHER32 && id != CRC32C;
}

static int refuse(const struct filter *f, unsigned id, const char *where,
		  struct pen_err *err)
{
	const char *library = f && f->codec ? pen__codec_absent(f->codec)
					    : NULL;

	if (library)
		return pen__fail(err, P_NOT_IN_BUILD, where,
				 "the chunks are compressed with %s, which is "
				 "not in this build: %s was not found",
				 f->name, library);
	return pen__fail(err, P_UNSUPPORTED_FEATURE, where,
			 "HDF5 filter %u (%s) is not supported; use deflate, "
			 "zstd, lz4, lzf, blosc, shuffle or fletcher32",
			 id, f ? f->name : "unknown");
}

int pen__filters_known(const struct pen_filters *p, const char *where,
		       struct pen_err *err)
{
	for (uint32_t i = 0; i < p->n; i++) {
		const unsigned id = p->f[i].id;
		const struct filter *f = find(id);

		if (id == SHUFFLE || id == FLETCHER32)
			continue;
		if (!f || !f->codec || !pen__codec_find(f->codec))
			return refuse(f, id, where, err);
	}
	return 0;
}

int pen__filters_add(struct pen_filters *p, const char *name, uint32_t item,
		     const char *where, struct pen_err *err)
{
	const struct filter *f = find_zarr(name);

	if (!f)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, where,
			"the codec '%.40s' is not supported; use blosc, zstd, "
			"gzip, zlib, lz4, shuffle or crc32c "
			"(anndata.read_zarr(this).write_zarr(that) uses blosc)",
			name);
	if (p->n == PEN_FILTERS)
		return pen__fail(err, P_OVER_LIMIT, where,
				 "more than %d filters are not supported",
				 PEN_FILTERS);
	if (f->id == SHUFFLE && !item)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, where,
				 "a shuffle of 0-byte elements is not "
				 "supported");
	if (f->codec && !pen__codec_find(f->codec))
		return refuse(f, f->id, where, err);
	p->f[p->n].id = f->id;
	p->f[p->n].item = item;
	p->n++;
	return 0;
}

bool pen__filters_are(const struct pen_filters *p, const char *name)
{
	return p->n == 1 && find_zarr(name)->id == p->f[0].id;
}

uint64_t pen__filters_ratio(const struct pen_filters *p)
{
	uint64_t most = 1;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct filter *f = find(p->f[i].id);

		if (f && f->codec && most < UINT32_MAX)
			most *= pen__codec_find(f->codec)->ratio;
	}
	return most;
}

/* Between filters a chunk can be a little larger than its final size. */
static uint64_t between(uint64_t size)
{
	return size + size / 8 + 1024;
}

bool pen__filters_fit(const struct pen_filters *p, uint32_t mask,
		      uint64_t stored, uint64_t size)
{
	uint64_t most = 1;
	bool packed = false;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct filter *f = find(p->f[i].id);

		if (mask >> i & 1)
			continue;
		if (!converts(p->f[i].id) && !packed)
			size += 4;
		if (!f || !f->codec)
			continue;
		packed = true;
		if (most < UINT32_MAX)
			most *= pen__codec_find(f->codec)->ratio;
	}
	if (!packed)
		return stored == size;
	/* small chunks may consist of a header and a few bytes */
	return size <= 64 || size / most <= stored;
}

/* A checksum that another filter follows makes the output of that filter 4
 * bytes longer than the chunk, so it does not fit into the destination
 * (netCDF-4: fletcher32, then deflate). */
size_t pen__filters_room(const struct pen_filters *p, uint64_t size)
{
	bool sum = false, beneath = false;
	unsigned n = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const bool t = converts(p->f[i].id);

		n += t;
		sum |= !t;
		beneath |= t && sum;
	}
	n += beneath;
	return n < 2 ? 0 : (size_t)between(size) * (n < 3 ? 1 : 2);
}

void pen__filters_text(const struct pen_filters *p, char *buf, size_t cap)
{
	size_t n = 0;

	snprintf(buf, cap, "none");
	for (uint32_t i = 0; i < p->n && n < cap; i++) {
		const struct filter *f = find(p->f[i].id);

		n += (size_t)snprintf(buf + n, cap - n, "%s%s", i ? ", " : "",
				      f ? f->name : "unknown");
	}
}

/* The framing of the lz4 filter: sizes, then blocks with their sizes. */
static int unpack_lz4(const struct pen_codec *c, struct pen_scratch *s,
		      struct pen_span in, uint8_t *out, size_t cap, size_t *got)
{
	struct pen_bytes b = pen__bytes(in.p, in.n);
	const uint64_t total = pen__take_be(&b, 8);
	const uint64_t block = pen__take_be(&b, 4);

	if (b.bad || total > cap || (!block && total))
		return PEN_EDATA;
	for (*got = 0; *got < total;) {
		const size_t want = total - *got < block
					    ? (size_t)(total - *got)
					    : (size_t)block;
		const uint64_t n = pen__take_be(&b, 4);
		const uint8_t *p = pen__take(&b, n);
		size_t k = want;

		if (!p)
			return PEN_EDATA;
		if (n == want) /* stored because it did not compress */
			memcpy(out + *got, p, want);
		else if (c->unpack(s, p, (size_t)n, out + *got, want, &k) < 0 ||
			 k != want)
			return PEN_EDATA;
		*got += want;
	}
	return 0;
}

/* numcodecs' lz4: the size, then a block. */
static int unpack_sized(const struct pen_codec *c, struct pen_scratch *s,
			struct pen_span in, uint8_t *out, size_t cap,
			size_t *got)
{
	struct pen_bytes b = pen__bytes(in.p, in.n);
	const uint64_t size = pen__take_u32(&b);

	if (b.bad || size > cap ||
	    c->unpack(s, b.p, pen__bytes_left(&b), out, (size_t)size, got) < 0)
		return PEN_EDATA;
	return *got == size ? 0 : PEN_EDATA;
}

static int convert(const struct pen_filter_run *r, uint32_t i,
		   struct pen_span in, uint8_t *out, size_t cap, size_t *got)
{
	const unsigned id = r->filters->f[i].id;
	const struct pen_codec *c;

	if (id == SHUFFLE) {
		if (in.n > cap)
			return PEN_EDATA;
		pen__unshuffle(r->filters->f[i].item, in.p, in.n, out);
		*got = in.n;
		return 0;
	}
	c = pen__codec_find(find(id)->codec);
	if (id == LZ4_SIZED)
		return unpack_sized(c, r->scratch, in, out, cap, got);
	if (id == LZ4)
		return unpack_lz4(c, r->scratch, in, out, cap, got);
	return c->unpack(r->scratch, in.p, in.n, out, cap, got);
}

static bool applied(const struct pen_filter_run *r, uint32_t i)
{
	return !(r->mask >> i & 1);
}

/* The bytes without their checksum; empty if it is wrong. */
static struct pen_span check(unsigned id, struct pen_span s)
{
	struct pen_bytes sum;

	if (s.n < 4)
		return (struct pen_span){ NULL, 0 };
	sum = pen__bytes(s.p + s.n - 4, 4);
	if (id == CRC32C ? pen__crc32c(0, s.p, s.n - 4) != pen__take_u32(&sum)
			 : !pen__fletcher32_ok(s.p, s.n - 4, sum.p))
		return (struct pen_span){ NULL, 0 };
	return (struct pen_span){ s.p, s.n - 4 };
}

int pen__filters_run_upto(const struct pen_filter_run *r, struct pen_span raw,
			  void *out, size_t cap, size_t *total,
			  const char **why)
{
	const size_t room = (size_t)between(cap);
	struct pen_span s = raw;
	unsigned left = 0, which = 0;
	size_t got;
	int rc;

	*why = "damaged: a chunk cannot be unpacked";
	for (uint32_t i = 0; i < r->filters->n; i++)
		left += applied(r, i);
	for (uint32_t i = r->filters->n; i-- > 0;) {
		uint8_t *to;

		if (!applied(r, i))
			continue;
		left--;
		if (!converts(r->filters->f[i].id)) {
			*why = "damaged: the checksum of a chunk differs";
			s = check(r->filters->f[i].id, s);
			if (!s.p)
				return PEN_EDATA;
			*why = "damaged: a chunk cannot be unpacked";
			continue;
		}
		to = left ? r->room + which * room : out;
		which ^= left > 0;
		rc = convert(r, i, s, to, left ? room : cap, &got);
		if (rc < 0)
			return rc;
		s = (struct pen_span){ to, got };
	}
	*total = s.n;
	if (s.n > cap)
		return PEN_EDATA;
	if (s.p != out && s.n)
		memcpy(out, s.p, s.n);
	return 0;
}

int pen__filters_run(const struct pen_filter_run *r, struct pen_span raw,
		     void *out, size_t size, const char **why)
{
	size_t got = 0;
	int rc = pen__filters_run_upto(r, raw, out, size, &got, why);

	if (got == size || (rc < 0 && !got))
		return rc;
	*why = "damaged: a chunk unpacks to an unexpected size";
	return PEN_EDATA;
}
