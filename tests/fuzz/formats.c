/*
 * Formats from memory. The first byte of an input selects options that change
 * how bytes are read; the rest is one object, or several files (FUZZ_FILES):
 * objects of a data set, or, with a name that starts with '+', a file next to
 * the first object ("+.fai") or one that an option names ("+bed", "+genes").
 * format_driver.h aborts if a format violates its contract; sanitizers detect
 * the rest.
 */
#include "fuzz.h"

#include <unistd.h>

#include "format_driver.h"

#define MOST_SAMPLES 48u
#define LARGEST ((size_t)4 << 20) /* of a row; damaged shapes declare more */
#define SIDES 4u

static struct drv d;
static struct fuzz_part sides[SIDES];
static unsigned nsides;

static const struct fuzz_part *side(const char *name)
{
	for (unsigned i = 0; i < nsides; i++)
		if (strcmp(sides[i].name + 1, name) == 0)
			return &sides[i];
	return NULL;
}

static int read_side(struct pen_peek *pk, const char *suffix, uint64_t limit,
		     struct pen_buf *out, struct pen_err *err)
{
	const struct fuzz_part *s = side(suffix);

	if (!s)
		return pen__fail(err, P_NOT_FOUND, pk->name, "none");
	if (s->n > limit)
		return pen__fail(err, P_DAMAGED, pk->name, "too large");
	pen__buf_put(out, s->p, s->n);
	return out->bad ? pen__fail_nomem(err, pk->name, s->n) : 0;
}

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

static void add(const struct fuzz_part *f, const struct pen_format_ops *ops)
{
	struct drv_object *o = &d.obj[d.ix.nobjects];

	drv_add(&d, f->p, f->n);
	memcpy(o->name, f->name, sizeof(o->name));
	o->pk.object = (uint32_t)d.ix.nobjects - 1;
	o->pk.read_side = read_side;
	if (ops->markers) {
		o->pk.find = find;
		o->pk.dirs = dirs;
		o->pk.read_of = read_of;
	}
}

/* Adds key=value if the format knows both: formats use a word for different
 * things. */
static void option(const struct pen_format_ops *ops, struct pen_opts_kv *kv,
		   size_t *n, const char *key, const char *value)
{
	const struct pen_opt *o = pen__opt_find(ops->opts, key);
	bool ok = o && o->type != PEN_OPT_ENUM;

	if (o && (o->type == PEN_OPT_SIZE || o->type == PEN_OPT_COUNT))
		ok = value[0] >= '0' && value[0] <= '9';
	if (o && o->type == PEN_OPT_BOOL)
		ok = strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
	for (size_t i = 0; o && o->type == PEN_OPT_ENUM && o->choices[i]; i++)
		ok |= strcmp(o->choices[i], value) == 0;
	if (ok)
		kv[(*n)++] = (struct pen_opts_kv){ key, value };
}

static size_t options(const struct pen_format_ops *ops, unsigned pick,
		      struct pen_opts_kv *kv)
{
	static const char *const samples[] = { "auto", "file", "first",
					       "last" };
	size_t n = 0;

	/* zarr: as plain arrays, or as cells */
	const bool cells = pen__opt_find(ops->opts, "matrix"),
		   plain = pick & 32;

	if (!cells || plain)
		option(ops, kv, &n, "samples", samples[pick % 4]);
	option(ops, kv, &n, "crc", pick & 8 ? "false" : "true");
	option(ops, kv, &n, "trailing", pick & 8 ? "ignore" : "error");
	option(ops, kv, &n, "shape", pick & 1 ? "2x3" : "5");
	option(ops, kv, &n, "dtype", pick & 2 ? "int16" : "uint8");
	option(ops, kv, &n, "big_endian", pick & 4 ? "true" : "false");
	option(ops, kv, &n, "partial", pick & 8 ? "drop" : "error");
	option(ops, kv, &n, "decode", pick & 4 ? "false" : "true");
	option(ops, kv, &n, "scan", pick & 2 ? "full" : "auto");
	option(ops, kv, &n, "strict", pick & 4 ? "false" : "true");
	option(ops, kv, &n, "color", pick & 2 ? "rgb" : "auto");
	option(ops, kv, &n, "max_pixels", "1M");
	option(ops, kv, &n, "header", pick & 4 ? "no" : "auto");
	if (!plain) {
		option(ops, kv, &n, "output", pick & 1 ? "csr" : "dense");
		option(ops, kv, &n, "obs",
		       pick & 64  ? "*"
		       : pick & 8 ? "kind"
				  : "");
		option(ops, kv, &n, "matrix", pick & 16 ? "." : "X");
	}
	if (pen__opt_find(ops->opts, "tokens"))
		option(ops, kv, &n, "fields", pick & 8 ? "all" : "");
	option(ops, kv, &n, "window", pick & 1 && !nsides ? "3" : "0");
	option(ops, kv, &n, "last", pick & 2 ? "back" : "keep");
	option(ops, kv, &n, "rc", pick & 4 ? "always" : "none");
	option(ops, kv, &n, "fai", pick & 16 ? "never" : "always");
	option(ops, kv, &n, "gzip_limit", "1MB");
	return n;
}

static void load(void)
{
	struct drv_rows rows = { 0 };

	for (uint32_t i = 0; i < d.f->nfields; i++)
		if (d.f->field[i].max_bytes > LARGEST)
			return;
	for (uint32_t o = 0; o < d.ix.nobjects; o++) {
		const uint64_t n = d.obj[o].nsamples;

		for (uint64_t i = 0; i < n && i < MOST_SAMPLES; i++) {
			/* from both ends: bounds are at the end */
			const uint64_t k = i & 1 ? n - 1 - i / 2 : i / 2;

			(void)drv_sample(&d, o, k, &rows, NULL);
			drv_rows_free(&rows);
		}
	}
}

/* Opens the format for what is in sides[], with an option for files of it. */
static int start(const struct pen_format_ops *ops, unsigned pick)
{
	static const char *const files[] = { "bed", "genes" };
	struct fuzz_file file = { .fd = -1 };
	char at[40];
	struct pen_opts_kv kv[32];
	size_t n = options(ops, pick, kv);
	struct pen_err err;
	int rc;

	for (unsigned i = 0; i < 2 && file.fd < 0; i++) {
		const struct fuzz_part *s = side(files[i]);

		if (!s || !pen__opt_find(ops->opts, files[i]))
			continue;
		file = fuzz_file(s->p, s->n);
		snprintf(at, sizeof(at), "%s%s", i ? "@" : "", file.path);
		option(ops, kv, &n, files[i], at);
	}
	rc = drv_start(&d, ops, kv, n, &err);
	if (file.fd >= 0)
		close(file.fd);
	return rc;
}

void fuzz_format(const char *of, const uint8_t *p, size_t n)
{
	const struct pen_format_ops *ops = pen__format_find(of);
	struct fuzz_part f[DRV_MAX] = { { .name = "object-0" } };
	struct pen_bytes b = pen__bytes(p, n);
	const unsigned pick = pen__take_u8(&b);
	struct pen_err err;
	unsigned nf = 1;

	f[0].p = b.p;
	f[0].n = pen__bytes_left(&b);
	nsides = 0;
	for (nf = pick & FUZZ_FILES ? 0 : 1;
	     pick & FUZZ_FILES && nf < DRV_MAX && fuzz_part(&b, &f[nf]);)
		if (f[nf].name[0] != '+')
			nf++;
		else if (nsides < SIDES)
			sides[nsides++] = f[nf];
	if (!n || !nf)
		return;
	if (start(ops, pick) < 0) {
		drv_close(&d);
		return;
	}
	for (unsigned i = 0; i < nf; i++)
		add(&f[i], ops);
	if (!(pick & FUZZ_FILES)) /* halves of the object, instead of files */
		d.obj[0].pk.read_side = drv_peek_side;
	if (drv_bind(&d, pick & 4 ? 1 : nf > 1 ? 0 : 2, &err) >= 0)
		load();
	drv_close(&d);
}

/* A file next to a FASTA file: one byte of options, two of the length of the
 * object, the object, and the file. */
void fuzz_side(const char *of, const uint8_t *p, size_t n)
{
	uint8_t in[1 << 16] = { 0 };
	struct pen_bytes b = pen__bytes(p, n);
	const unsigned pick = pen__take_u8(&b);
	const size_t len = pen__take_u16(&b), head = strlen(of);
	const uint8_t *object = pen__take(&b, len);
	size_t k = 0;

	if (b.bad || !object || n > sizeof(in) / 2)
		return;
	in[k++] = (uint8_t)(pick | FUZZ_FILES);
	in[k++] = 1;
	memcpy(in + k, p + 1, 2);
	in[k + 2] = 'o';
	k += 3;
	memcpy(in + k, object, len);
	k += len;
	in[k++] = (uint8_t)head;
	in[k++] = (uint8_t)pen__bytes_left(&b);
	in[k++] = (uint8_t)(pen__bytes_left(&b) >> 8);
	memcpy(in + k, of, head);
	k += head;
	memcpy(in + k, b.p, pen__bytes_left(&b));
	k += pen__bytes_left(&b);
	fuzz_format("fasta", in, k);
}
