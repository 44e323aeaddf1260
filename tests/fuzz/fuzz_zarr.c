/*
 * Stores of zarr from memory, in directories, where no checksum of an archive
 * is in the way. The input is files, one after another: a byte with the length
 * of the name, two with that of the content, then both; the first byte of all
 * picks options: of cells, or of plain arrays. What the format promises is
 * checked by format_driver.h.
 *
 * Seeds: tests/data/make_zarr.py --seeds DIR
 */
#include "format_driver.h"

#define MOST_SAMPLES 32u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct drv d;

static bool find(struct pen_peek *pk, const char *path, uint32_t *object,
		 uint64_t *size)
{
	(void)pk;
	for (uint64_t i = 0; i < d.ix.nobjects; i++)
		if (strcmp(d.obj[i].name, path) == 0) {
			*object = (uint32_t)i;
			*size = d.obj[i].n;
			return true;
		}
	return false;
}

static int read_of(struct pen_peek *pk, uint32_t object, uint64_t off,
		   void *buf, size_t len, struct pen_err *err)
{
	(void)pk;
	DRV_MUST(object < d.ix.nobjects);
	return drv_peek(&d.obj[object].pk, off, buf, len, err);
}

static void dirs(struct pen_peek *pk, void (*see)(void *arg, const char *dir),
		 void *arg)
{
	char dir[sizeof(d.obj[0].name)];

	(void)pk;
	for (uint64_t i = 0; i < d.ix.nobjects; i++) {
		const char *slash = strrchr(d.obj[i].name, '/');
		const size_t n = slash ? (size_t)(slash - d.obj[i].name) : 0;

		memcpy(dir, d.obj[i].name, n);
		dir[n] = '\0';
		if (n)
			see(arg, dir);
	}
}

static void add_files(struct pen_bytes *b)
{
	while (pen__bytes_left(b) > 3 && d.ix.nobjects < DRV_MAX) {
		const size_t n = pen__take_u8(b), len = pen__take_u16(b);
		const uint8_t *name = pen__take(b, n);
		const size_t left = pen__bytes_left(b);
		const uint8_t *p = pen__take(b, len < left ? len : left);
		struct drv_object *o = &d.obj[d.ix.nobjects];

		if (!name || n >= sizeof(o->name))
			return;
		drv_add(&d, p, len < left ? len : left);
		memcpy(o->name, name, n);
		o->name[n] = '\0';
		o->pk.find = find;
		o->pk.dirs = dirs;
		o->pk.read_of = read_of;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const unsigned pick = size ? data[0] : 0;
	const struct pen_opts_kv cells[] = {
		{ "output", pick & 1 ? "csr" : "dense" },
		{ "matrix", pick & 2 ? "." : "X" },
		{ "obs", "kind" },
	};
	const struct pen_opts_kv plain[] = {
		{ "samples", pick & 1 ? "file" : "auto" },
		{ "fields", "x" },
	};
	const bool arrays = pick & 8;
	struct pen_bytes b = pen__bytes(data, size);
	struct drv_rows rows = { 0 };
	struct pen_err err;

	pen__take_u8(&b);
	if (drv_start(&d, pen__format_find("zarr"), arrays ? plain : cells,
		      arrays ? (pick & 2 ? 2 : 1) : (pick & 4 ? 2 : 3),
		      &err) < 0)
		return 0;
	add_files(&b);
	if (drv_bind(&d, 0, &err) >= 0)
		for (uint32_t o = 0; o < d.ix.nobjects; o++)
			for (uint64_t k = 0;
			     k < d.obj[o].nsamples && k < MOST_SAMPLES; k++) {
				(void)drv_sample(&d, o, k, &rows, NULL);
				drv_rows_free(&rows);
			}
	drv_close(&d);
	return 0;
}
