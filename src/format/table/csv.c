/*
 * Comma-separated numbers: a row is a sample, its values are the only field x.
 * Quoted values, CRLF, empty lines, a header and a missing final newline are
 * accepted (RFC 4180 and common practice). Short rows are fetched in runs,
 * since a read for each would cost more than its bytes.
 *
 * A value that is not a number is an error that names its position. csv_index.c
 * checks entire files.
 */
#include "format/table/csv.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/array.h"
#include "format/value.h"

#define RUN_BYTES (256u << 10)
#define LONG_ROW (64u << 10) /* rows of this size are fetched separately */

static const char *const headers[] = { "auto", "yes", "no", NULL };
static const char *const missings[] = { "error", "nan", NULL };

#define OFF(x) offsetof(struct pen_csv, x)
static const struct pen_opt csv_opts[] = {
	{ .name = "header",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(header),
	  .dflt = "auto",
	  .choices = headers,
	  .help = "whether the first row contains names (auto: if a value in "
		  "it is not a number)" },
	{ .name = "delimiter",
	  .type = PEN_OPT_STR,
	  .off = OFF(delimiter),
	  .dflt = ",",
	  .help = "separator of values: one byte, or tab" },
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = OFF(dtype),
	  .dflt = "float32",
	  .help = "data type of the values: an integer, float32 or float64" },
	{ .name = "columns",
	  .type = PEN_OPT_STR,
	  .off = OFF(columns),
	  .help = "columns to read, in order: names of the header, or numbers "
		  "from 0 (default: all)" },
	{ .name = "missing",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(missing),
	  .dflt = "error",
	  .choices = missings,
	  .help = "how to treat an empty value" },
	{ .name = "ragged",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(ragged),
	  .dflt = "false",
	  .help = "allow files with different numbers of columns" },
	{ .name = NULL },
};

static int csv_open(struct pen_format *f, struct pen_err *err)
{
	struct pen_csv *p = f->priv;
	const char *d = p->delimiter ? p->delimiter : ",";
	int rc = pen__parse_dtype(p->dtype ? p->dtype : "float32", &p->type,
				  err);

	if (rc)
		return rc;
	if (p->type == PEN_BOOL || p->type == PEN_F16 || p->type > PEN_F64)
		return pen__fail(err, P_BAD_VALUE, "dtype",
				 "%s cannot be read from text; use an integer, "
				 "float32 or float64",
				 pen_dtype_name(p->type));
	if (p->missing == PEN_CSV_MISSING_NAN && p->type < PEN_F32)
		return pen__fail(err, P_CONFLICT, "missing",
				 "%s has no NaN; use float32 or float64",
				 pen_dtype_name(p->type));
	if (p->ragged && p->columns)
		return pen__fail(err, P_CONFLICT, "format.ragged",
				 "cannot be combined with format.columns=, "
				 "which gives all rows one length");
	p->delim = !strcmp(d, "tab") || !strcmp(d, "\\t") ? '\t' : d[0];
	if ((d[1] && p->delim != '\t') || strchr("\"\r\n.+-", p->delim) ||
	    (p->delim >= '0' && p->delim <= '9'))
		return pen__fail(err, P_BAD_VALUE, "delimiter",
				 "'%s' is not a valid delimiter", d);
	p->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	return p->c ? 0 : pen__fail_nomem(err, "csv", 0);
}

static void drop_parts(struct pen_format *f)
{
	struct pen_csv *p = f->priv;

	for (uint64_t i = 0; p->part && i < f->ix->nblobs; i++)
		pen__free(p->part[i].place);
	pen__free(p->part);
	p->part = NULL;
}

static void csv_close(struct pen_format *f)
{
	struct pen_csv *p = f->priv;

	drop_parts(f);
	if (p->c)
		freelocale(p->c);
	p->c = (locale_t)0;
}

/* ---- bind ---- */

static uint64_t start_of(const struct pen_csv_part *t, uint64_t k)
{
	return k >= t->n ? t->end
	       : t->off	 ? pen__u64_at(t->off, k)
			 : t->first + k * t->step;
}

static bool take_rows(struct pen_bytes *b, struct pen_csv_part *t)
{
	uint64_t mean;

	t->n = pen__take_u64(b);
	t->end = pen__take_u64(b);
	if (pen__take_u8(b)) {
		t->first = pen__take_u64(b);
		t->step = pen__take_u64(b);
	} else {
		if (t->n > pen__bytes_left(b) / 8)
			return false;
		t->off = pen__take(b, t->n * 8);
	}
	if (b->bad || !t->n)
		return !b->bad;
	mean = (t->end - start_of(t, 0)) / t->n + 1;
	t->run = mean < LONG_ROW ? RUN_BYTES / mean : 1;
	return true;
}

/* Position of each column in the row. PEN_EDATA: not a valid blob. */
static int take_columns(struct pen_bytes *b, struct pen_csv_part *t,
			struct pen_err *err)
{
	uint32_t n;

	t->ncolumns = pen__take_u32(b);
	n = pen__take_u32(b);
	t->nchosen = n ? n : t->ncolumns;
	if (b->bad || n > pen__bytes_left(b) / 4)
		return PEN_EDATA;
	if (!n)
		return 0;
	t->place = pen__alloc(t->ncolumns, sizeof(*t->place));
	if (!t->place)
		return pen__fail_nomem(err, "csv", t->ncolumns * 4);
	memset(t->place, 0xff, t->ncolumns * sizeof(*t->place));
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t c = pen__take_u32(b);

		if (c >= t->ncolumns)
			return PEN_EDATA;
		if (t->place[c] != UINT32_MAX)
			return pen__fail(err, P_BAD_VALUE, "columns",
					 "column %" PRIu32 " is listed twice",
					 c);
		t->place[c] = i;
	}
	return 0;
}

static int misfit(const struct pen_index *ix, uint64_t blob, uint32_t has,
		  uint32_t others, struct pen_err *err)
{
	char name[256];

	pen__blob_name(ix, blob, name, sizeof(name));
	return pen__fail(err, P_FILES_DISAGREE, name,
			 "the file has %" PRIu32
			 " columns, but earlier files have %" PRIu32
			 "; list the columns to read with format.columns=, or "
			 "set format.ragged=true",
			 has, others);
}

static int csv_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	struct pen_csv *p = f->priv;
	uint32_t ncolumns = 0, most = 0;
	bool varies = false;
	int rc;

	drop_parts(f);
	f->ix = ix;
	p->part = pen__calloc((size_t)ix->nblobs, sizeof(*p->part));
	if (!p->part)
		return pen__fail_nomem(err, "csv", ix->nblobs);
	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_span s = ix->blob(ix, i);
		struct pen_bytes b = pen__bytes(s.p, s.n);
		struct pen_csv_part *t = &p->part[i];

		if (!s.n) /* excluded by on_error=skip */
			continue;
		rc = take_rows(&b, t) ? 0 : PEN_EDATA;
		if (!rc && t->n)
			rc = take_columns(&b, t, err);
		if (rc == PEN_EDATA)
			return pen__fail(err, P_BAD_INDEX, "csv",
					 "the index entry is damaged");
		if (rc)
			return rc;
		if (!t->n)
			continue;
		varies |= ncolumns && t->nchosen != ncolumns;
		if (varies && !p->ragged)
			return misfit(ix, i, t->nchosen, ncolumns, err);
		ncolumns = t->nchosen;
		most = ncolumns > most ? ncolumns : most;
	}
	if (!ncolumns)
		return pen__fail(err, P_NO_SAMPLES, "csv", "no rows found");
	f->field[0] = (struct pen_field){
		.name = "x",
		.dtype = p->type,
		.layout = varies ? PEN_PADDED : PEN_DENSE,
		.ndim = 1,
		.shape = { varies ? -1 : (int64_t)ncolumns },
		.max_bytes = most * pen_dtype_size(p->type),
	};
	f->nfields = f->units_per_sample = 1;
	f->all_plain = f->uniform = false;
	f->decodes = true;
	return 0;
}

/* ---- reading ---- */

static const struct pen_csv_part *part_of(const struct pen_format *f,
					  uint32_t object)
{
	const struct pen_csv *p = f->priv;

	return &p->part[f->ix->blob_of(f->ix, object)];
}

static void csv_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	(void)k;
	(void)field;
	shape[0] = part_of(f, object)->nchosen;
}

static void csv_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *u)
{
	const struct pen_csv_part *t = part_of(f, object);
	const uint64_t n = f->apart ? 1 : t->run, run = n > 1 ? k / n : k;
	const uint64_t from = start_of(t, run * n);

	*u = (struct pen_unit){
		.offset = from,
		.len = start_of(t, (run + 1) * n) - from,
		.id = (uint64_t)object << 32 | run,
		.object = object,
		.flags = n > 1 ? PEN_UNIT_SHARED : 0,
	};
}

static int bad_value(const struct pen_format *f, const struct pen_row *r,
		     const struct pen_csv_stop *stop, struct pen_err *err)
{
	const struct pen_csv *p = f->priv;
	const struct pen_csv_text v = stop->text;
	const size_t n = (size_t)(v.e - v.p);
	char what[192], text[33];
	size_t i;

	for (i = 0; i < n && i < 32; i++)
		text[i] = v.p[i] >= ' ' && v.p[i] < 127 ? (char)v.p[i] : '?';
	text[i] = '\0';
	snprintf(what, sizeof(what),
		 "column %" PRIu32 ": '%s' is not a valid %s%s", stop->column,
		 text, pen_dtype_name(p->type),
		 stop->kind == PEN_CSV_MISSING && p->type >= PEN_F32
			 ? "; set format.missing=nan to accept it"
			 : "");
	return pen__sample_error(f, P_BAD_DATA_VALUE, r->object, r->k, what,
				 err);
}

static int csv_emit(const struct pen_format *f, const struct pen_row *r,
		    struct pen_err *err)
{
	const struct pen_csv_part *t = part_of(f, r->object);
	const uint64_t from = start_of(t, r->k) - r->units[0].offset;
	const uint64_t to = start_of(t, r->k + 1) - r->units[0].offset;
	const size_t size = t->nchosen * pen_dtype_size(f->field[0].dtype);
	const struct pen_span s = r->data[0];
	struct pen_csv_stop stop;

	if (to > s.n || from > to || r->dst_len[0] != size)
		return pen__sample_fail(
			f, r->object, r->k,
			"the bytes read do not match the row size", err);
	if (pen__csv_row(f->priv, t,
			 (struct pen_csv_text){ s.p + from, s.p + to },
			 r->dst[0], &stop))
		return 0;
	if (stop.kind != PEN_CSV_NUMBER)
		return bad_value(f, r, &stop, err);
	return pen__sample_fail(
		f, r->object, r->k,
		"the number of values differs from when the file was indexed",
		err);
}

static void csv_describe(const struct pen_format *f, struct pen_describe *d)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%zu",
		 f->field[0].shape[0] < 0 ? "at most " : "",
		 (size_t)f->field[0].max_bytes /
			 pen_dtype_size(f->field[0].dtype));
	d->fact(d->arg, "values a row", text);
	d->advice(d->arg, "text is parsed at a few hundred MB/s per core; npy "
			  "files are read at memory speed");
}

static const char *const csv_suffixes[] = { ".csv", NULL };

const struct pen_format_ops pen__format_csv = {
	.name = "csv",
	.help = "comma-separated numbers, one sample per row",
	.suffixes = csv_suffixes,
	.opts = csv_opts,
	.priv_size = sizeof(struct pen_csv),
	.open = csv_open,
	.close = csv_close,
	.index = pen__csv_index,
	.bind = csv_bind,
	.shape = csv_shape,
	.locate = csv_locate,
	.emit = csv_emit,
	.describe = csv_describe,
	.write = pen__csv_write,
};
