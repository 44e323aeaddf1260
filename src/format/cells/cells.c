/*
 * Single cells: a row of a matrix is a sample. Sparse rows become dense, or
 * stay lists (output=csr). The same row of other matrices and the columns of
 * obs become additional fields.
 *
 * Unsupported data is refused where it is found: matrices stored by column in
 * cells_index.c, files that do not fit together in cells_bind.c.
 */
#include "format/cells/cells.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/show.h"
#include "format/value.h"

#define MOST_LIST ((size_t)1 << 28) /* bytes of a list of genes */
#define FIELD_NAME (sizeof(((struct pen_field *)0)->name) - 1)

static const char *const outputs[] = { "dense", "csr", NULL };
static const char *const joins[] = { "same", "inner", "outer", NULL };

#define OFF(x) offsetof(struct pen_cells, x)
const struct pen_opt pen__zarr_opts[] = {
	PEN_PLAIN_OPTS,
	{ .name = "matrix",
	  .type = PEN_OPT_STR,
	  .off = OFF(matrix),
	  .dflt = "X",
	  .help = "matrices, comma-separated (X, raw, layers/NAME, obsm/NAME); "
		  "the first is field X, others use NAME" },
	{ .name = "output",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(output),
	  .dflt = "dense",
	  .choices = outputs,
	  .help = "dense: field X, one value per gene; csr: fields X_data and "
		  "X_indices, stored values only" },
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = OFF(dtype),
	  .help = "dtype of the values, a float or an integer (default: "
		  "float32; obsm as stored)" },
	{ .name = "normalize",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(normalize),
	  .dflt = "0",
	  .min = 0,
	  .max = 1e30,
	  .help = "scale each cell to this total over all genes (0: off)" },
	{ .name = "log1p",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(log1p),
	  .dflt = "false",
	  .help = "apply log(1 + x), after normalization" },
	{ .name = "genes",
	  .type = PEN_OPT_STR,
	  .off = OFF(genes),
	  .help = "subset of the genes: first:N, @FILE (one name per line) or "
		  "var:COLUMN (boolean); default: all" },
	{ .name = "join",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(join),
	  .dflt = "same",
	  .choices = joins,
	  .help = "files with different genes: same refuses them, inner keeps "
		  "shared genes, outer all genes (0 if absent)" },
	{ .name = "source",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(source),
	  .dflt = "false",
	  .help = "add a field `source`: the number of the file, counted from "
		  "0" },
	{ .name = "var",
	  .type = PEN_OPT_STR,
	  .off = OFF(var),
	  .help = "columns of var to keep with the data set: a,b,c or * for "
		  "all (_index: gene names)" },
	{ .name = "obs",
	  .type = PEN_OPT_STR,
	  .off = OFF(obs),
	  .help = "obs columns to load as fields: a,b,c or * for all; "
		  "categories and strings as int32 codes (_index: cell "
		  "names)" },
	{ .name = "copy",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(copy),
	  .dflt = "false",
	  .help = "read as `convert` does: stored dtypes, sparse matrices as "
		  "lists, obs columns not as fields" },
	{ .name = "filter",
	  .type = PEN_OPT_STR,
	  .off = OFF(filter),
	  .help = "subset of the cells: COLUMN:VALUE|VALUE, several conditions "
		  "joined with &" },
	{ .name = NULL },
};

/* ---- options ---- */

static int check_dtype(struct pen_cells *p, struct pen_err *err)
{
	const char *name = p->dtype ? p->dtype : "float32";
	int rc = pen__parse_dtype(name, &p->type, err);

	if (rc < 0)
		return rc;
	if (p->type == PEN_BOOL || p->type > PEN_F64)
		return pen__fail(err, P_BAD_VALUE, "dtype",
				 "'%s' is not a valid dtype for a matrix; use "
				 "a float or an integer type",
				 name);
	if (p->dtype && p->type < PEN_F16 && (p->log1p || p->normalize > 0))
		return pen__fail(
			err, P_CONFLICT, "dtype",
			"%s cannot represent the results of format.normalize= "
			"and format.log1p=; use a float type",
			name);
	return 0;
}

/* The last part of the path; for raw, the name of the group. */
static void name_slot(struct pen_cells_slot *t)
{
	const char *last = strrchr(t->path, '/');

	if (strcmp(t->path, "raw/X") == 0)
		last = NULL;
	snprintf(t->name, sizeof(t->name), "%.*s",
		 (int)(last ? strlen(last + 1) : strcspn(t->path, "/")),
		 last ? last + 1 : t->path);
}

static int add_slot(struct pen_cells *p, const char *s, size_t n,
		    struct pen_err *err)
{
	struct pen_cells_slot *t = &p->slot[p->nmatrices];
	const char *last;

	snprintf(t->path, sizeof(t->path), "%.*s", (int)n, s);
	last = strrchr(t->path, '/');
	if (!n || n >= sizeof(t->path) || (last && !last[1]) ||
	    (!p->copy && strlen(last ? last + 1 : t->path) >= sizeof(t->name)))
		return pen__fail(
			err, P_BAD_VALUE, "matrix",
			"'%.*s' is not a matrix name; use X, raw, layers/NAME "
			"or obsm/NAME, separated by commas",
			n < 100 ? (int)n : 100, s);
	t->frame = PEN_CELLS_VAR;
	if (strcmp(t->path, "raw") == 0 || strcmp(t->path, "raw/X") == 0)
		t->frame = PEN_CELLS_RAW_VAR;
	else if (strncmp(t->path, "obsm/", 5) == 0)
		t->frame = PEN_CELLS_NOVAR;
	if (!p->nmatrices)
		snprintf(t->name, sizeof(t->name), "X");
	else if (p->copy) /* these are never selected by name */
		snprintf(t->name, sizeof(t->name), "%" PRIu32, p->nmatrices);
	else
		name_slot(t);
	for (uint32_t i = 0; i < p->nmatrices; i++)
		if (strcmp(p->slot[i].name, t->name) == 0)
			return pen__fail(
				err, P_CONFLICT, "matrix",
				"%s and %s would both become the field '%s'",
				p->slot[i].path, t->path, t->name);
	p->nmatrices++;
	return 0;
}

static int check_matrix(struct pen_cells *p, struct pen_err *err)
{
	const char *s = p->matrix;
	int rc = 0;

	if (!s)
		return pen__fail(err, P_BAD_VALUE, "matrix",
				 "no matrix given; use X, raw, layers/NAME or "
				 "obsm/NAME");
	p->slot = pen__calloc(PEN_CELLS_MATRICES, sizeof(*p->slot));
	if (!p->slot)
		return pen__fail_nomem(err, "matrix", sizeof(*p->slot));
	while (rc >= 0 && s) {
		const size_t n = strcspn(s, ",");

		if (p->nmatrices == PEN_CELLS_MATRICES)
			return pen__fail(err, P_TOO_LONG, "matrix",
					 "more than %d matrices",
					 PEN_CELLS_MATRICES);
		rc = add_slot(p, s, n, err);
		s = s[n] ? s + n + 1 : NULL;
	}
	return rc;
}

/* Checks the column names given to option `what`: their count and length. */
static int check_names(const char *what, const char *list, uint32_t most,
		       size_t longest, struct pen_err *err)
{
	const char *s = list;

	if (s && strcmp(s, "*") == 0)
		return 0;
	for (uint32_t i = 0; s; i++) {
		const size_t n = strcspn(s, ",");

		if (!n || n > longest || i == most)
			return pen__fail(
				err, P_BAD_VALUE, what,
				"expected at most %" PRIu32
				" comma-separated names of 1 to %zu bytes",
				most, longest);
		if (pen__in_list(list, s, n) != (int)i)
			return pen__fail(err, P_BAD_VALUE, what,
					 "'%.*s' is listed twice", (int)n, s);
		s = s[n] ? s + n + 1 : NULL;
	}
	return 0;
}

static int read_list(struct pen_cells *p, const char *path, struct pen_err *err)
{
	FILE *in = fopen(path, "re");
	char piece[4096];
	size_t n;
	int rc = 0;

	if (!in)
		return pen__fail_sys(err, errno, path,
				     "cannot read the list of genes");
	while ((n = fread(piece, 1, sizeof(piece), in)) > 0 &&
	       p->list.n < MOST_LIST)
		pen__buf_put(&p->list, piece, n);
	if (ferror(in))
		rc = pen__fail_sys(err, errno, path,
				   "cannot read the list of genes");
	else if (p->list.bad)
		rc = pen__fail_nomem(err, path, p->list.n);
	else if (n)
		rc = pen__fail(err, P_TOO_LONG, path,
			       "the list of genes is larger than %s",
			       pen__show_bytes(MOST_LIST).s);
	fclose(in);
	return rc;
}

static int check_genes(struct pen_cells *p, struct pen_err *err)
{
	const char *s = p->genes;
	char *end;

	if (!s)
		return 0;
	if (*s == '@' && s[1])
		return read_list(p, s + 1, err);
	if (strncmp(s, "var:", 4) == 0 && s[4] && p->join != PEN_CELLS_SAME)
		return pen__fail(
			err, P_CONFLICT, "genes",
			"var:COLUMN selects genes per file and cannot be "
			"combined with format.join=; use first:N or @FILE");
	if (strncmp(s, "var:", 4) == 0 && s[4])
		return 0;
	if (strncmp(s, "first:", 6) == 0 && s[6] >= '1' && s[6] <= '9') {
		errno = 0;
		p->first = strtoull(s + 6, &end, 10);
		if (!*end && !errno)
			return 0;
	}
	return pen__fail(
		err, P_BAD_VALUE, "genes",
		"'%s' does not select genes; use first:N, @FILE or var:COLUMN",
		s);
}

int pen__cells_open(struct pen_format *f, struct pen_err *err)
{
	struct pen_cells *p = f->priv;
	const uint32_t most = 100000;
	int rc = check_dtype(p, err);

	if (rc >= 0)
		rc = check_matrix(p, err);
	if (rc >= 0)
		rc = check_names(
			"obs", p->obs,
			p->copy ? most : PEN_MAX_FIELDS - 2 * p->nmatrices - 1,
			p->copy ? PEN_CELLS_NAME - 1 : FIELD_NAME, err);
	if (rc >= 0)
		rc = check_names("var", p->var, most, PEN_CELLS_NAME - 1, err);
	if (rc >= 0)
		rc = check_genes(p, err);
	return rc;
}

void pen__cells_close(struct pen_format *f)
{
	struct pen_cells *p = f->priv;

	pen__cells_unbind(f);
	pen__free(p->slot);
	pen__buf_fini(&p->list);
}

/* ---- samples ---- */

static const struct pen_cells_view *view_of(const struct pen_format *f,
					    uint32_t object)
{
	const struct pen_cells *p = f->priv;

	return &p->view[f->ix->blob_of(f->ix, object)];
}

/* The slot a field belongs to; NULL: a column of obs. */
static const struct pen_cells_slot *slot_of(const struct pen_cells *p,
					    uint32_t field, uint32_t *matrix)
{
	for (*matrix = 0; *matrix < p->nmatrices; ++*matrix) {
		const struct pen_cells_slot *t = &p->slot[*matrix];

		if (field - t->field < (t->list ? 2u : 1u))
			return t;
	}
	return NULL;
}

void pen__cells_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct pen_cells_view *v = view_of(f, object);
	const struct pen_cells_slot *t;
	uint64_t at, end;
	uint32_t i;

	t = slot_of(f->priv, field, &i);
	if (!t)
		return;
	if (!t->list) {
		shape[0] = (int64_t)t->ntake;
		return;
	}
	if (!v->matrix[i].sparse) {
		shape[0] = (int64_t)pen__cells_most(&v->matrix[i]);
		return;
	}
	pen__cells_span(&v->matrix[i], pen__cells_row(v, k), &at, &end);
	shape[0] = (int64_t)(end - at);
}

/* Bytes that are already the row need not be emitted. */
static void mark_plain(const struct pen_cells_slot *t,
		       const struct pen_cells_matrix *m, struct pen_unit *units)
{
	struct pen_unit *u = &units[t->data], *g = &units[t->indices];

	if (m->plain && u->object != PEN_NO_OBJECT) {
		u->flags = PEN_UNIT_PLAIN;
		u->field = (uint16_t)t->field;
	}
	if (t->list && pen__cells_whole(m) &&
	    m->indices.layout == PEN_CHUNKED_FLAT && !m->indices.swap &&
	    m->indices.dtype == PEN_I32 && g->object != PEN_NO_OBJECT) {
		g->flags = PEN_UNIT_PLAIN;
		g->field = (uint16_t)(t->field + 1);
	}
}

void pen__cells_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *units)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_view *v = view_of(f, object);
	const uint64_t row = pen__cells_row(v, k);

	for (uint32_t i = 0; i < f->units_per_sample; i++)
		units[i] = (struct pen_unit){ .object = PEN_NO_OBJECT };
	for (uint32_t i = 0; i < p->nmatrices; i++) {
		const struct pen_cells_matrix *m = &v->matrix[i];
		const struct pen_cells_slot *t = &p->slot[i];

		pen__cells_array_locate(m, &m->data, row, units + t->data);
		if (m->sparse)
			pen__cells_array_locate(m, &m->indices, row,
						units + t->indices);
		mark_plain(t, m, units);
	}
	for (uint32_t i = 0; i < f->units_per_sample; i++) {
		if (units[i].object == PEN_NO_OBJECT)
			continue;
		units[i].object = units[i].object ? units[i].object - 1
						  : object;
		units[i].id |= (uint64_t)object << 32;
	}
}

/* The array a chunk belongs to: arrays number their chunks consecutively. */
static bool chunk_of(const struct pen_cells *p, const struct pen_cells_view *v,
		     uint32_t id, struct pen_chunk_job *c, uint32_t *matrix)
{
	for (*matrix = 0; *matrix < p->nmatrices; ++*matrix) {
		const struct pen_cells_matrix *m = &v->matrix[*matrix];

		for (int i = 0; i < (m->sparse ? 2 : 1); i++) {
			c->a = i ? &m->indices : &m->data;
			c->number = id - c->a->id0;
			if (c->number < c->a->nchunks)
				return true;
		}
	}
	return false;
}

/* The rows of the chunk are those of its group. */
static bool rows_of(const struct pen_cells_matrix *m,
		    const struct pen_chunk_job *c, struct pen_cellrows *r)
{
	const uint64_t row = c->number * c->a->group_rows;
	const uint64_t left = m->nrows - row;

	if (c->a->layout != PEN_CHUNKED_GROUPED || !m->indptr ||
	    row >= m->nrows)
		return false;
	r->width = m->width;
	r->starts = m->indptr + row * m->width;
	r->nrows =
		(uint32_t)(left < c->a->group_rows ? left : c->a->group_rows);
	return true;
}

#define MOST_USERS 65536u /* larger counts are not needed */

/* Walks the rows on either side until one is outside the chunk. */
uint64_t pen__cells_users(const struct pen_format *f, uint32_t object,
			  uint64_t k, const struct pen_unit *u)
{
	const struct pen_cells_view *v = view_of(f, object);
	struct pen_chunk_job c = { 0 };
	uint64_t n = 0, seen = 0, i;
	uint32_t matrix;
	bool any;

	if (!chunk_of(f->priv, v, (uint32_t)u->id, &c, &matrix) ||
	    c.a->layout == PEN_CHUNKED_FLAT)
		return 0;
	for (i = k; seen < MOST_USERS; i--, seen++) {
		if (pen__cells_side(&v->matrix[matrix], c.a, c.number,
				    pen__cells_row(v, i), &any))
			break;
		n += any;
		if (!i)
			break;
	}
	for (i = k + 1; i < v->nsamples && seen < MOST_USERS; i++, seen++) {
		if (pen__cells_side(&v->matrix[matrix], c.a, c.number,
				    pen__cells_row(v, i), &any))
			break;
		n += any;
	}
	return seen < MOST_USERS ? n : 0;
}

int pen__cells_unpack(const struct pen_format *f, const struct pen_unit *u,
		      struct pen_span raw, void *out, struct pen_scratch *s,
		      struct pen_err *err)
{
	/* a chunk may be a separate object */
	const struct pen_cells_view *v = view_of(f, (uint32_t)(u->id >> 32));
	const struct pen_cells *p = f->priv;
	struct pen_chunk_job c = { .raw = raw,
				   .out = out,
				   .size = (size_t)u->size,
				   .narrow = f->narrow,
				   .scratch = s };
	const struct pen_cells_matrix *m = NULL;
	const char *why = "the chunk does not exist";
	struct pen_cellrows rows;
	char name[256], where[640];
	int rc = PEN_EDATA;
	uint32_t i;

	if (chunk_of(p, v, (uint32_t)u->id, &c, &i)) {
		m = &v->matrix[i];
		if (rows_of(m, &c, &rows))
			c.rows = &rows;
		rc = pen__chunked_unpack(&c, &why);
	}
	if (rc >= 0)
		return rc;
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, f->ops->name, 0);
	f->ix->name_of(f->ix, u->object, name, sizeof(name));
	snprintf(where, sizeof(where), "%s:%s%s", name,
		 m ? p->slot[i].path : p->matrix,
		 !m || !m->sparse     ? ""
		 : c.a == &m->indices ? "/indices"
				      : "/data");
	return pen__fail(err, P_DAMAGED, where, "%s", why);
}

/* ---- for copying cells elsewhere ---- */

uint32_t pen__cells_nvar(const struct pen_format *f)
{
	return ((const struct pen_cells *)f->priv)->nvars;
}

const struct pen_cells_field *pen__cells_var(const struct pen_format *f,
					     uint32_t i)
{
	return &((const struct pen_cells *)f->priv)->vars[i];
}

uint32_t pen__cells_var_row(const struct pen_format *f, uint32_t column)
{
	return ((const struct pen_cells *)f->priv)->var_row[column];
}

struct pen_span pen__cells_gene(const struct pen_format *f, uint32_t column)
{
	return ((const struct pen_cells *)f->priv)->gene[column];
}

const struct pen_cells_field *pen__cells_obs(const struct pen_format *f,
					     uint32_t i)
{
	return &((const struct pen_cells *)f->priv)->view0->field[i];
}
