/*
 * Writes one file of a data set like the generators of DLIO: the same fields,
 * sample axis and format options. Its bytes are a function of the seed and the
 * number of the file.
 *
 * npy and npz files have the samples along the last axis. They are generated as
 * one array instead of samples to transpose: any bytes are equally random, and
 * nothing has to be kept in memory.
 *
 * Rejects compression that a format does not have, where DLIO writes files that
 * it cannot read or ignores the setting.
 */
#include "emulate/datafile.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static bool is(const struct pen_datafile *d, const char *format)
{
	return !strcmp(d->format, format);
}

/* ---- options ---- */

/* Values are far smaller than the buffer; one that does not fit is a bug in
 * this file, and the format would report a missing option. */
static void option(struct pen_datafile *d, const char *key, const char *fmt,
		   ...) __attribute__((format(printf, 3, 4)));
static void option(struct pen_datafile *d, const char *key, const char *fmt,
		   ...)
{
	char *to = d->text + d->ntext;
	const size_t room = sizeof(d->text) - d->ntext;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(to, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room || d->nkv == PEN_DATAFILE_OPTS)
		return;
	d->kv[d->nkv++] = (struct pen_opts_kv){ key, to };
	d->ntext += (size_t)n + 1;
}

static void list_option(struct pen_datafile *d, const char *key,
			const struct pen_opt_list *list)
{
	char text[24 * PEN_MAX_DIMS];
	size_t n = 0;

	for (size_t i = 0; i < list->n && n < sizeof(text) - 24; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%" PRId64,
				      i ? "x" : "", list->v[i]);
	if (list->n)
		option(d, key, "%s", text);
}

static void hdf5_options(struct pen_datafile *d)
{
	const struct pen_config *c = d->l->c;
	const int pack = c->dataset.compression;
	const uint64_t parts = c->dataset.hdf5_num_dset;
	char fields[20 * PEN_MAX_FIELDS];
	size_t n = 0;

	option(d, "samples", "first");
	option(d, "num_dset", "%" PRIu64, parts ? parts : 1);
	for (uint64_t i = 0; i < (parts ? parts : 1) && i < PEN_MAX_FIELDS; i++)
		n += (size_t)snprintf(fields + n, sizeof(fields) - n,
				      "records_%" PRIu64 ",", i);
	option(d, "fields", "%slabels", fields);
	list_option(d, "chunk", &c->dataset.hdf5_chunk_dims);
	list_option(d, "maxshape", &c->dataset.hdf5_max_shape);
	option(d, "compression", "%s",
	       pack == PEN_COMPRESS_GZIP  ? "gzip"
	       : pack == PEN_COMPRESS_LZF ? "lzf"
					  : "none");
	if (pack == PEN_COMPRESS_GZIP)
		option(d, "level", "%" PRId64, c->dataset.compression_level);
}

static int set_options(struct pen_datafile *d, struct pen_err *err)
{
	const struct pen_config *c = d->l->c;
	const int pack = c->dataset.compression;
	const bool fits = pack == PEN_COMPRESS_NONE ||
			  (is(d, "npz") && pack == PEN_COMPRESS_ZIP) ||
			  (is(d, "hdf5") && (pack == PEN_COMPRESS_GZIP ||
					     pack == PEN_COMPRESS_LZF));

	if (!fits)
		return pen__fail(err, P_CONFLICT, "dataset.compression",
				 "not available in %s files; use gzip or lzf "
				 "with hdf5, zip with npz",
				 d->format);
	d->packed = pack != PEN_COMPRESS_NONE;
	if (is(d, "npy") || is(d, "npz"))
		option(d, "samples", "file");
	if (is(d, "npz") && d->packed) {
		option(d, "compress", "true");
		if (c->dataset.compression_level > 0)
			option(d, "level", "%" PRId64,
			       c->dataset.compression_level);
	} else if (is(d, "hdf5")) {
		hdf5_options(d);
	} else if (is(d, "tfrecord")) {
		option(d, "style", "dlio");
		option(d, "index", "true");
	} else if (is(d, "csv")) {
		option(d, "header", "no");
	} else if (is(d, "png")) {
		option(d, "level",
		       "1"); /* noise does not compress any better */
		option(d, "filter", "false");
	}
	if (is(d, "png") || is(d, "jpeg"))
		option(d, "max_pixels", "4e9");
	return 0;
}

static int check_values(const struct pen_datafile *d, struct pen_err *err)
{
	const double share = d->l->c->dataset.compressibility;

	if (d->l->dtype == PEN_F80 || d->l->dtype == PEN_C160)
		return pen__fail(
			err, P_UNSUPPORTED_TYPE, "dataset.record_element_type",
			"cannot generate %s; use float64 or complex128",
			pen_dtype_name(d->l->dtype));
	if (!(share >= 0 && share < 1))
		return pen__fail(
			err, P_BAD_VALUE, "dataset.compressibility",
			"%g is out of range; use at least 0 and less than 1",
			share);
	if (!pen__format_writes(d->format))
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, "dataset.format",
			"%s is a read-only format and cannot be generated",
			d->format);
	return 0;
}

int pen__datafile_init(struct pen_datafile *d, const struct pen_data_layout *l,
		       struct pen_err *err)
{
	int rc;

	*d = (struct pen_datafile){
		.l = l,
		.format = l->c->dataset.format,
		.synth = { .seed = l->c->dataset.seed, .dtype = l->dtype },
	};
	rc = check_values(d, err);
	d->synth.zeros = pen__synth_zeros(l->c->dataset.compressibility);
	d->synth.unit = is(d, "csv"); /* text is not incompressible anyway */
	if (!rc)
		rc = set_options(d, err);
	if (!rc)
		rc = pen__maker_open(&d->maker, "posix", NULL, 0, err);
	if (!rc)
		rc = pen__maker_use(d->maker, d->format, d->kv, d->nkv, err);
	if (rc)
		pen__datafile_fini(d);
	return rc;
}

void pen__datafile_fini(struct pen_datafile *d)
{
	pen__maker_close(d->maker);
	d->maker = NULL;
}

/* ---- one file ---- */

/* CSV has no half precision: converts each value to float32 in place, starting
 * at the end. */
static void widen_halves(uint8_t *p, size_t n)
{
	while (n--) {
		uint16_t h;
		int e, m;
		float f;

		memcpy(&h, p + 2 * n, 2);
		e = h >> 10 & 31;
		m = h & 0x3ff;
		f = e ? ldexpf((float)(m | 0x400), e - 25)
		      : ldexpf((float)m, -24);
		f = h >> 15 ? -f : f;
		memcpy(p + 4 * n, &f, 4);
	}
}

struct made {
	const struct pen_datafile *d;
	uint64_t i;
};

/* Field 0 is noise; labels are zeros. */
static int make_part(const struct pen_table *t, uint32_t field, uint64_t off,
		     size_t n, void *to, struct pen_err *err)
{
	const struct made *m = t->arg;
	const struct pen_synth *s = &m->d->synth;

	(void)err;
	if (field) {
		memset(to, 0, n);
	} else if (t->field[0].dtype != s->dtype) {
		pen__synth_fill(s, m->i, off / 2, to, n / 2);
		widen_halves(to, n / 4);
	} else {
		pen__synth_fill(s, m->i, off, to, n);
	}
	return 0;
}

void pen__datafile_table(const struct pen_datafile *d, uint64_t i,
			 struct pen_field *field, struct pen_table *out)
{
	const struct pen_data_layout *l = d->l;
	const bool whole = is(d, "npy") || is(d, "npz");
	const int64_t n = (int64_t)l->nsamples;

	*out = (struct pen_table){ .nsamples = whole ? 1 : l->nsamples,
				   .nfields = is(d, "npz") ? 2 : 1,
				   .field = field,
				   .part = make_part };
	field[0] = (struct pen_field){ .name = "x", .dtype = l->dtype };
	field[1] = (struct pen_field){
		.name = "y", .dtype = PEN_I64, .ndim = 1, .shape = { n }
	};
	field[0].ndim = pen__layout_shape(l, i, field[0].shape);
	if (whole)
		field[0].shape[field[0].ndim++] = n;
	if (is(d, "csv") && l->dtype == PEN_F16)
		field[0].dtype = PEN_F32;
	/* a leading 1 of record_dims is not stored; the format does the same
	 * for parts of a record */
	if (is(d, "hdf5") && l->c->dataset.record_dims.n &&
	    l->c->dataset.hdf5_num_dset <= 1 && field[0].shape[0] == 1) {
		field[0].ndim--;
		memmove(field[0].shape, field[0].shape + 1,
			field[0].ndim * sizeof(*field[0].shape));
	}
}

/* A synthetic file contains its number, which is an option of the format. */
static int open_numbered(const struct pen_datafile *d, uint64_t i,
			 struct pen_maker **out, struct pen_err *err)
{
	char number[24];
	const struct pen_opts_kv kv = { "index", number };
	int rc = pen__maker_open(out, "posix", NULL, 0, err);

	snprintf(number, sizeof(number), "%" PRIu64, i);
	return rc ? rc : pen__maker_use(*out, d->format, &kv, 1, err);
}

int pen__datafile_write(const struct pen_datafile *d, uint64_t i,
			const struct pen_datafile_step *step,
			struct pen_err *err)
{
	struct made m = { d, i };
	struct pen_maker *numbered = NULL;
	struct pen_field field[2];
	struct pen_table t;
	char path[PEN_LAYOUT_PATH], index[PEN_LAYOUT_PATH];
	struct pen_made_file to = { .path = path,
				    .step = step->step,
				    .arg = step->arg };
	int rc = 0;

	pen__layout_path(d->l, i, path, sizeof(path));
	pen__layout_index_path(d->l, i, index, sizeof(index));
	to.side_path = index[0] ? index : NULL;
	pen__datafile_table(d, i, field, &t);
	t.arg = &m;
	if (is(d, "synthetic"))
		rc = open_numbered(d, i, &numbered, err);
	if (!rc)
		rc = pen__maker_write(numbered ? numbered : d->maker, &to, &t,
				      err);
	pen__maker_close(numbered);
	return rc;
}

/* Rounded up to blocks, as in most file systems. */
uint64_t pen__datafile_size(const struct pen_datafile *d, uint64_t i)
{
	const double share = d->l->c->dataset.compressibility;
	double n = (double)pen__layout_bytes(d->l, i);

	if (is(d, "synthetic"))
		n = 20;
	if (is(d, "jpeg"))
		n /= 4;
	if (d->packed || is(d, "png") || is(d, "jpeg"))
		n *= 0.95 - 0.95 * share;
	return ((uint64_t)n + 4095) & ~(uint64_t)4095;
}
